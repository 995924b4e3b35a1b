// SPDX-License-Identifier: MIT
// blktrace's files: the events of all CPUs in the order of their times, and damaged bytes are read nowhere beyond the
// file (a block of memory of its own, which the sanitizers watch).
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "counting_sink.hpp"
#include "feed/blktrace.hpp"

using namespace opline;

namespace {

constexpr std::uint32_t kDev = 8 << 20;

template <class T>
void append(std::string &to, T value) {
    to.append(reinterpret_cast<const char *>(&value), sizeof value);
}

std::string record(std::uint64_t ns, std::uint32_t sequence, std::uint32_t action, std::uint32_t cpu,
                   std::string_view more = {}) {
    std::string found;
    append<std::uint32_t>(found, 0x65617407);
    append(found, sequence);
    append(found, ns);
    append<std::uint64_t>(found, 64);
    append<std::uint32_t>(found, 4096);
    append(found, action);
    append<std::uint32_t>(found, 7);
    append(found, kDev);
    append(found, cpu);
    append<std::uint16_t>(found, 0);
    append(found, static_cast<std::uint16_t>(more.size()));
    found += more;
    return found;
}

constexpr std::uint32_t kWrite = 2u << 16, kQueue = kWrite | 1, kIssue = kWrite | 7, kComplete = kWrite | 8, kPlug = 9,
                        kUnplug = 10, kNote = 1u << 26;

const std::string kReleased{"\0\0\0\0\0\0\0\2", 8};

std::vector<std::string> two_cpus() {
    return {record(10, 1, kQueue, 0) + record(11, 2, kPlug, 0) + record(30, 3, kIssue, 0) + record(70, 7, kQueue, 0),
            record(5, 0, kNote, 1, "name") + record(20, 1, kUnplug, 1, kReleased) + record(40, 2, kComplete, 1)};
}

// As blocks of memory that are exactly so long.
struct Exact {
    std::vector<std::unique_ptr<char[]>> kept;
    std::vector<std::string_view> files;
    explicit Exact(const std::vector<std::string> &all) {
        for (const std::string &one : all) {
            kept.push_back(std::make_unique<char[]>(one.size()));
            std::copy(one.begin(), one.end(), kept.back().get());
            files.emplace_back(kept.back().get(), one.size());
        }
    }
};

}  // namespace

TEST_CASE("blktrace's files of two CPUs, or one file of both") {
    const std::vector<std::string> all = two_cpus();
    for (const bool one : {false, true}) {
        const Exact exact(one ? std::vector{all[1] + all[0]} : all);
        CountingSink sink;
        feed::BlktraceFeed feed(sink, exact.files, one);
        std::uint64_t runs = 0;
        while (feed.run(1)) ++runs;
        CHECK(runs >= 3);
        CHECK(feed.events() == 4);
        CHECK(sink.count == 4);
        CHECK(sink.last_ns == 70);
        CHECK(sink.lost == 3);
        const auto plugs = feed.plugs().told();
        REQUIRE(plugs.size() == 1);
        CHECK(plugs[0].first == kDev);
        CHECK(plugs[0].second.plugs == 1);
        CHECK(plugs[0].second.ios == 2);
        CHECK(plugs[0].second.plugged_ns == 9);
        for (const feed::BlktraceFile &file : feed.files()) CHECK(file.unread() == 0);
    }
}

TEST_CASE("what is no file of blktrace") {
    std::string other = record(1, 1, kQueue, 0);
    other[0] = 6;
    for (const auto &[bytes, version] : {std::pair<std::string, int>{"\1\2", feed::BlktraceFile::kNoRecord},
                                         {std::string(60, 'x'), feed::BlktraceFile::kNoRecord},
                                         {other, 6}}) {
        const Exact exact({bytes});
        CountingSink sink;
        feed::BlktraceFeed feed(sink, exact.files, false);
        CHECK(!feed.run(100));
        REQUIRE(feed.files()[0].other_version());
        CHECK(*feed.files()[0].other_version() == version);
    }
}

TEST_CASE("damaged files of blktrace") {
    std::mt19937 random(29);
    for (int round = 0; round < 20000; ++round) {
        std::vector<std::string> all = two_cpus();
        for (std::string &bytes : all) {
            for (int changes = static_cast<int>(random() % 4); changes-- && !bytes.empty();) {
                const std::size_t at = random() % bytes.size();
                switch (random() % 3) {
                case 0: bytes[at] = static_cast<char>(random()); break;
                case 1: bytes.erase(at, 1 + random() % 60); break;
                default: bytes.insert(at, bytes.substr(random() % bytes.size(), random() % 60));
                }
            }
        }
        const Exact exact(all);
        CountingSink sink;
        feed::BlktraceFeed feed(sink, exact.files, false);
        while (feed.run(2)) continue;
        CHECK(feed.events() == sink.count);
        std::size_t size = 0;
        for (const feed::BlktraceFile &file : feed.files()) size += file.unread();
        CHECK(size + feed.bytes() == exact.files[0].size() + exact.files[1].size());
    }
}
