// SPDX-License-Identifier: MIT
// Numbers and times of several hosts (identity/hosts.hpp, event/clock_map.hpp).
#include <doctest/doctest.h>

#include <random>

#include "identity/threads.hpp"

using namespace opline;

TEST_CASE("a run of one host keeps its numbers") {
    Hosts one;
    CHECK(one.thread(3, 17) == 17);
    CHECK(one.device(3, 800) == 800);
    CHECK(one.devices().empty());
    CHECK(one.time_since(3, 100, 7) == 107);
}

TEST_CASE("no number of a thread or a device is of two hosts") {
    StringPool strings;
    Hosts hosts({"a", "b"}, strings);
    const std::uint32_t a = strings.intern("a"), b = strings.intern("b");
    for (std::int64_t tid : {std::int64_t{1}, std::int64_t{17}, kOwnNumber}) {
        const std::int64_t of_a = hosts.thread(a, tid), of_b = hosts.thread(b, tid);
        CHECK(of_a != of_b);
        CHECK(hosts.thread(a, of_b) == of_b);  // it is of a host already
        CHECK(hosts.of_thread(of_a, 0) == a);
        CHECK(hosts.of_thread(of_b, 0) == b);
        CHECK(display_number(of_a) == tid);
        CHECK(display_number(of_b) == tid);
    }
    for (std::int64_t nobody : {std::int64_t{0}, std::int64_t{-1}}) CHECK(hosts.thread(b, nobody) == nobody);

    constexpr std::uint32_t kDisk = 8u << 20, kTaken = kDisk | 0xfffff;
    CHECK(hosts.device(a, kDisk) == kDisk);
    CHECK(hosts.device(a, kTaken) == kTaken);
    const std::uint32_t other = hosts.device(b, kDisk);
    CHECK((other >> 20) == (kDisk >> 20));
    CHECK(other != kDisk);
    CHECK(other != kTaken);
    CHECK(hosts.device(b, kDisk) == other);
    CHECK(hosts.of_device(kDisk) == a);
    CHECK(hosts.of_device(other) == b);
    CHECK(hosts.device(b, 0) == 0);
    CHECK(hosts.devices().size() == 3);
}

TEST_CASE("a map's own time is the first that the map makes this one") {
    std::mt19937_64 random(5);
    for (int round = 0; round < 200; ++round) {
        std::vector<ClockMap::Knot> knots{{1'000'000, 5'000'000'000}};
        for (int k = 0; k < 5; ++k) {
            const auto run = static_cast<std::int64_t>(random() % 1'000'000 + 1);
            const auto rise = run + static_cast<std::int64_t>(random() % 2001) - 1000;
            knots.emplace_back(knots.back().first + run, knots.back().second + std::max<std::int64_t>(rise, 0));
        }
        const ClockMap map(knots);
        for (int k = 0; k < 50; ++k) {
            const auto own = static_cast<std::int64_t>(random() % 6'000'000);
            const std::int64_t found = map.own_at(map.at(own));
            CHECK(map.at(found) == map.at(own));
            CHECK(found <= own);
        }
    }
}
