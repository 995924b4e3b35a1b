// SPDX-License-Identifier: MIT
// Lines of text and records of the BPF ring in whatever pieces give the same events; damaged ones are read nowhere
// beyond their bytes (each piece is a block of memory of its own, which the sanitizers watch).
#include <doctest/doctest.h>

#include <memory>
#include <random>
#include <stdexcept>
#include <string>

#include "counting_sink.hpp"
#include "feed/ring.hpp"
#include "feed/text.hpp"

using namespace opline;

namespace {

const std::string kText = R"(    tar 16072 [001] 2199495.030133: block:block_rq_issue: 202,16 R 0 () 21997888 + 8 [tar]
    swapper    0 [000] 2199495.030286: block:block_rq_complete: 202,16 R () 21997888 + 8 [0]
  my program-7 (  7) [003] .... 5.000001: block_bio_remap: 259,1 WS 5 + 8 <- (253,0) 9
CPU:1 [LOST 7 EVENTS]
 [odd] name 12 [003] 5.000001: block_split: 8,0 W 16 / 24 [x]
x 1 [000] 1.5: block:block_rq_issue: 8,0 WFS 0 (2a (00) 00) 16 + 8 none,0,0 [a b]
x 1 [000] 1.5: block:block_rq_issue: 8,0 something new
)";

// As a block of memory that is exactly so long.
template <class Feed>
void feed_exactly(Feed &feed, std::string_view bytes) {
    const auto copy = std::make_unique<char[]>(bytes.size());
    std::copy(bytes.begin(), bytes.end(), copy.get());
    feed.feed({copy.get(), bytes.size()});
}

template <class Feed>
void feed_in_pieces(Feed &feed, std::string_view bytes, std::size_t size) {
    for (std::size_t at = 0; at < bytes.size(); at += size) feed_exactly(feed, bytes.substr(at, size));
}

std::string record(std::uint64_t ns, unsigned char kind, const char *name) {
    std::string found(feed::RingFeed::kRecordSize, '\1');
    found.replace(0, sizeof ns, reinterpret_cast<const char *>(&ns), sizeof ns);
    found[82] = static_cast<char>(kind);
    found.replace(88, 16, std::string(name).append(16, '\0'), 0, 16);
    return found;
}

std::string damaged(std::string text, std::mt19937 &random) {
    for (int changes = 1 + static_cast<int>(random() % 6); changes-- && !text.empty();) {
        const std::size_t at = random() % text.size();
        switch (random() % 4) {
        case 0: text[at] = static_cast<char>(random()); break;
        case 1: text.erase(at, 1 + random() % 9); break;
        case 2: text.insert(at, 1, " []()+/-:,9\n"[random() % 12]); break;
        default: text.insert(at, text.substr(random() % text.size(), random() % 30));
        }
    }
    return text;
}

}  // namespace

TEST_CASE("text in pieces of any size is the same text") {
    for (const std::size_t size : {std::size_t{1}, std::size_t{7}, std::size_t{64}, kText.size()}) {
        CountingSink sink;
        feed::TextFeed text(sink);
        feed_in_pieces(text, kText, size);
        text.end();
        CHECK(text.lines() == 7);
        CHECK(sink.count == 5);
        CHECK(sink.lost == 7);
        CHECK(text.unreadable() == 1);
        REQUIRE(text.first_unread().size() == 1);
        CHECK(text.first_unread()[0].number == 7);
    }
}

TEST_CASE("a line without an end does not fill the memory") {
    CountingSink sink;
    feed::TextFeed text(sink);
    const std::string much(1 << 16, 'x');
    CHECK_THROWS_WITH(
        [&] {
            for (int i = 0; i < 32; ++i) text.feed(much);
        }(),
        "a line of more than a mebibyte");
}

TEST_CASE("records in pieces of any size are the same records") {
    const std::string all = record(5, 255, "") + record(10, 0, "a thread's name!") + record(20, 13, "") +
                            record(30, 254, "") + record(40, 77, "");
    for (const std::size_t size : {std::size_t{1}, std::size_t{103}, std::size_t{105}, all.size()}) {
        CountingSink sink;
        feed::RingFeed ring(sink);
        feed_in_pieces(ring, all, size);
        CHECK(ring.events() == 2);
        CHECK(ring.first_ns() == 5);
        CHECK(ring.until_ns() == 5);
        CHECK(ring.lost() == 0x0101010101010101);
        CHECK(sink.last_ns == 20);
        CHECK(ring.processes().size() == 1);
    }
}

TEST_CASE("damaged text and records") {
    std::mt19937 random(22);
    const std::string records = record(5, 255, "") + record(10, 4, "x") + record(20, 12, "y");
    for (int round = 0; round < 20000; ++round) {
        CountingSink sink;
        feed::TextFeed text(sink);
        try {
            feed_exactly(text, damaged(kText, random));
        } catch (const std::runtime_error &) {  // damaged times fall back, as differences do
            continue;
        }
        text.end();
        CHECK(text.events() == sink.count);
        if (round % 10) continue;
        feed::RingFeed ring(sink);
        feed_exactly(ring, damaged(records, random));
    }
}
