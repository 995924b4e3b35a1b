// SPDX-License-Identifier: MIT
// A trace that grows while it is followed: in pieces of any length, in which packets, their headers and the metadata's
// files come as the file system likes. In the end it is what the reader of whole traces gives. With damaged bytes, too,
// it comes to its end, and nothing is read that is not there (the sanitizers look): a flipped time is one, and what a
// flipped length says is still being written is never taken in. The run that is made in the end is the whole reader's.
#include <doctest/doctest.h>

#include <fstream>
#include <limits>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "counting_sink.hpp"
#include "ctf/follower.hpp"
#include "ctf/reader.hpp"
#include "ctf_maker.hpp"
#include "scratch_trace.hpp"

using namespace opline;

namespace {

using Chance = std::mt19937;

std::size_t one_of(Chance &chance, std::size_t count) { return chance() % count; }

void put_at(std::string &bytes, std::size_t at, std::uint64_t value) {
    for (std::size_t i = 0; i < 8; ++i) bytes[at + i] = static_cast<char>(value >> 8 * i);
}

// Packets of events with a text of any length, each packet later than the one before.
std::string some_stream(Chance &chance, std::uint64_t instance) {
    std::string out;
    std::uint32_t now = 100;
    const std::size_t packets = 1 + one_of(chance, 6);
    for (std::size_t n = 0; n < packets; ++n) {
        const std::uint32_t begin = now;
        std::string events;
        for (std::size_t i = one_of(chance, 8); i > 0; --i)
            events += event(now += 1 + static_cast<std::uint32_t>(one_of(chance, 20)),
                            std::string(one_of(chance, 30), 'x') + '\0');
        const std::size_t at = out.size();
        out += packet(events, n, -1, -1, instance);
        put_at(out, at + 16, begin);
        put_at(out, at + 24, now);
    }
    return out;
}

struct InOrder final : CountingSink {
    void event(const Event &e) override {
        if (last_ns != kNoTime && e.ts_ns < last_ns) backwards = true;
        CountingSink::event(e);
    }
    bool backwards = false;
};

// What follows a growing trace: begun anew where it says so, as its users do.
class Follow {
  public:
    explicit Follow(const std::string &path) : path_(path) { begin(); }
    // False: the trace is damaged so that nobody reads it.
    bool look(std::int64_t until_ns) {
        if (!follower_->grow()) {
            begin();
            if (!follower_->grow()) return false;
            ++anew;
        }
        while (follower_->run(until_ns, 3)) {}
        return true;
    }
    std::unique_ptr<InOrder> sink;
    std::size_t anew = 0;

  private:
    void begin() {
        sink = std::make_unique<InOrder>();
        follower_ = std::make_unique<ctf::Follower>(std::vector<std::string>{path_});
        follower_->open(*sink);
    }
    std::string path_;
    std::unique_ptr<ctf::Follower> follower_;
};

// Appends what is left of `streams` in pieces, looking between them up to any time. False: given up.
bool grow(Chance &chance, const ScratchTrace &folder, const std::vector<std::string> &streams, Follow &follow) {
    std::vector<std::size_t> written(streams.size(), 0);
    std::int64_t until_ns = 0;
    for (bool more = true; more;) {
        more = false;
        for (std::size_t i = 0; i < streams.size(); ++i) {
            const std::size_t left = streams[i].size() - written[i];
            const std::size_t now = left == 0 ? 0 : one_of(chance, left + 1);
            std::ofstream out(folder.path() + "/ch_" + std::to_string(i), std::ios::binary | std::ios::app);
            out.write(streams[i].data() + written[i], static_cast<std::streamsize>(now));
            written[i] += now;
            more = more || written[i] < streams[i].size();
        }
        if (one_of(chance, 2) == 0) until_ns += static_cast<std::int64_t>(one_of(chance, 40));
        if (!follow.look(until_ns)) return false;
    }
    return follow.look(std::numeric_limits<std::int64_t>::max());
}

}  // namespace

TEST_CASE("in the end it has what a reader of the whole trace has") {
    std::size_t anew = 0, events = 0;
    for (unsigned seed = 0; seed < 300; ++seed) {
        CAPTURE(seed);
        Chance chance(seed);
        const ScratchTrace folder;
        folder.write("metadata", metadata_of("string s;"));
        std::vector<std::string> streams;
        for (std::size_t i = 1 + one_of(chance, 3); i > 0; --i) streams.push_back(some_stream(chance, streams.size()));
        Follow follow(folder.path());
        REQUIRE(grow(chance, folder, streams, follow));
        ctf::Reader reader({folder.path()});
        InOrder whole;
        reader.open(whole);
        while (reader.run(1000)) {}
        CHECK(follow.sink->count == whole.count);
        CHECK(follow.sink->sum == whole.sum);
        CHECK(follow.sink->streams == whole.streams);
        CHECK_FALSE(follow.sink->backwards);
        CHECK(follow.sink->damages == 0);
        anew += follow.anew;
        events += whole.count;
    }
    CHECK(anew > 10);
    CHECK(events > 3000);
}

TEST_CASE("damaged bytes while it grows") {
    std::size_t damaged = 0, refused = 0;
    for (unsigned seed = 0; seed < 600; ++seed) {
        CAPTURE(seed);
        Chance chance(seed);
        const ScratchTrace folder;
        folder.write("metadata", metadata_of("string s;"));
        std::vector<std::string> streams;
        std::size_t bytes = 0;
        for (std::size_t i = 1 + one_of(chance, 3); i > 0; --i) {
            streams.push_back(some_stream(chance, streams.size()));
            for (std::size_t flips = one_of(chance, 4); flips > 0; --flips)
                streams.back()[one_of(chance, streams.back().size())] = static_cast<char>(chance());
            bytes += streams.back().size();
        }
        std::unique_ptr<Follow> follow;
        try {
            follow = std::make_unique<Follow>(folder.path());
            refused += !grow(chance, folder, streams, *follow);
        } catch (const std::runtime_error &error) {  // one line that says where
            ++refused;
            CHECK(std::string(error.what()).find(folder.path()) != std::string::npos);
        }
        if (!follow) continue;
        damaged += follow->sink->damages > 0;
        CHECK(follow->sink->count * 5 <= bytes);  // an event has five bytes at least
    }
    CHECK(damaged > 30);
    CHECK(refused > 10);
}
