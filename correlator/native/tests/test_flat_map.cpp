// SPDX-License-Identifier: MIT
// FlatMap against std::unordered_map over random operations.
#include <doctest/doctest.h>

#include <memory>
#include <random>
#include <string>
#include <unordered_map>

#include "base/flat_map.hpp"
#include "base/strings.hpp"

using opline::FlatMap;

TEST_CASE_TEMPLATE("random insertions and erasures agree with the standard map", Cell,
                   opline::FlatCell<std::uint64_t, std::uint64_t>,
                   opline::FlatCellByValue<std::uint64_t, std::uint64_t>) {
    std::mt19937_64 random(23);
    for (std::uint64_t keys : {7u, 100u, 5000u}) {
        FlatMap<std::uint64_t, std::uint64_t, opline::FlatHash<std::uint64_t>, Cell> ours;
        std::unordered_map<std::uint64_t, std::uint64_t> theirs;
        for (int i = 0; i < 100'000; ++i) {
            // Keys with equal low bits, as pointers have them.
            const std::uint64_t key = (random() % keys) << 12, value = random() | 1;
            switch (random() % 4) {
            case 0:
                ours[key] = value;
                theirs[key] = value;
                break;
            case 1: CHECK(ours.erase(key) == (theirs.erase(key) == 1)); break;
            case 2:
                if (auto *found = ours.find(key)) ours.erase_found(found);
                theirs.erase(key);
                break;
            default: {
                auto it = theirs.find(key);
                const auto *found = ours.find(key);
                REQUIRE((found != nullptr) == (it != theirs.end()));
                if (found) CHECK(*found == it->second);
            }
            }
            REQUIRE(ours.size() == theirs.size());
        }
        std::size_t seen = 0;
        ours.for_each([&](std::uint64_t k, std::uint64_t v) {
            ++seen;
            CHECK(theirs.at(k) == v);
        });
        CHECK(seen == theirs.size());
        ours.erase_if([](std::uint64_t k, std::uint64_t) { return (k >> 12) % 2 == 0; });
        for (auto it = theirs.begin(); it != theirs.end();) it = (it->first >> 12) % 2 == 0 ? theirs.erase(it) : ++it;
        CHECK(ours.size() == theirs.size());
        for (const auto &[k, v] : theirs) CHECK(*ours.find(k) == v);
    }
}

TEST_CASE("values that only move, keys that std::hash knows") {
    FlatMap<std::string, std::unique_ptr<int>> map;
    CHECK(map.find("none") == nullptr);
    CHECK_FALSE(map.erase("none"));
    for (int i = 0; i < 100; ++i) map.put("key" + std::to_string(i), std::make_unique<int>(i));
    for (int i = 0; i < 100; i += 2) CHECK(map.erase("key" + std::to_string(i)));
    for (int i = 1; i < 100; i += 2) CHECK(**map.find("key" + std::to_string(i)) == i);
    map.clear();
    CHECK(map.empty());
}

TEST_CASE("to insert what is there moves nothing") {
    for (int n = 1; n < 200; ++n) {
        FlatMap<std::uint64_t, int> map;
        for (int i = 0; i < n; ++i) map.put(static_cast<std::uint64_t>(i), i);
        const int *first = map.find(0);
        for (int i = 0; i < n; ++i) CHECK_FALSE(map.insert(static_cast<std::uint64_t>(i)).second);
        CHECK(map.find(0) == first);
    }
}

TEST_CASE("texts that differ in one place, or in length, are not the same") {
    for (std::size_t n = 0; n < 40; ++n) {
        const std::string one(n, 'x'), same = one;
        CHECK(opline::same_text(one, same));
        CHECK_FALSE(opline::same_text(one, one + 'x'));
        for (std::size_t i = 0; i < n; ++i) {
            std::string other = one;
            other[i] = 'y';
            CHECK_FALSE(opline::same_text(one, other));
        }
    }
}
