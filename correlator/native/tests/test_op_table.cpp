// SPDX-License-Identifier: MIT
// Ops are the same when they are asked for, whatever happened to others in the meantime.
#include <doctest/doctest.h>

#include <random>
#include <unordered_map>
#include <vector>

#include "op/op_table.hpp"

using namespace opline;

namespace {

struct Copy {
    std::uint64_t serial;
    std::int64_t begin_ns, end_ns, length_bytes;
    std::vector<Key> keys;
    std::vector<std::pair<std::int64_t, std::int64_t>> passed;  // (time, thread)
};

Op &make(OpTable &ops, std::mt19937_64 &random, Copy &copy) {
    Op &op = ops.create();
    op.hard = true;
    op.begin_ns = static_cast<std::int64_t>(random() % 1000);
    op.length_bytes = static_cast<std::int64_t>(random() % 4096);
    op.has_length = true;
    for (std::uint64_t n = random() % 3 + 1; n > 0; --n) op.keys.push_back({random(), random()});
    std::int64_t ts = op.begin_ns;
    for (std::uint32_t n = 0, of = static_cast<std::uint32_t>(random() % 20 + 1); n < of; ++n) {
        Transition t;
        t.point = n;
        t.ts_ns = ts;
        t.tid = static_cast<std::int64_t>(n / 4);
        t.pid = 7;
        t.order = n;
        op.transitions.push_back(t);
        copy.passed.emplace_back(t.ts_ns, t.tid);
        ts += static_cast<std::int64_t>(random() % 100);
    }
    op.end_ns = copy.passed.back().first;
    op.end_order = op.transitions.last_order();
    op.state = OpState::kEnded;
    copy.serial = op.serial;
    copy.begin_ns = op.begin_ns;
    copy.end_ns = op.end_ns;
    copy.length_bytes = op.length_bytes;
    copy.keys = op.keys;
    return op;
}

void check_same(const Op &op, const Copy &copy) {
    CHECK(op.serial == copy.serial);
    CHECK(op.state == OpState::kEnded);
    CHECK(op.hard);
    CHECK(op.has_length);
    CHECK_FALSE(op.has_offset);
    CHECK(op.begin_ns == copy.begin_ns);
    CHECK(op.end_ns == copy.end_ns);
    CHECK(op.length_bytes == copy.length_bytes);
    CHECK(op.keys == copy.keys);
    REQUIRE(op.transitions.size() == copy.passed.size());
    REQUIRE(op.transitions.shape() != 0);
    std::vector<Transition> in_full;
    op.transitions.copy_to(in_full);
    for (std::size_t i = 0; i < copy.passed.size(); ++i) {
        CHECK(in_full[i].ts_ns == copy.passed[i].first);
        CHECK(in_full[i].tid == copy.passed[i].second);
        CHECK(in_full[i].point == i);
    }
}

}  // namespace

TEST_CASE("made, asked for and released in any order") {
    std::mt19937_64 random(5);
    OpTable ops;
    ops.shapes().forget_details();
    std::unordered_map<std::uint64_t, Copy> live;
    std::vector<std::uint64_t> refs, gone;
    for (int i = 0; i < 20'000; ++i) {
        if (refs.empty() || random() % 2 == 0) {
            Copy copy;
            const std::uint64_t ref = op_ref(make(ops, random, copy));
            live[ref] = copy;
            refs.push_back(ref);
        }
        if (random() % 3 == 0) {
            const std::size_t at = random() % refs.size();
            Op *op = ops.find(refs[at]);
            REQUIRE(op);
            check_same(*op, live.at(refs[at]));
            if (random() % 2 == 0) {
                live.erase(refs[at]);
                gone.push_back(refs[at]);
                ops.release(*op);
                refs[at] = refs.back();
                refs.pop_back();
            }
        }
        if (!gone.empty()) CHECK(ops.find(gone[random() % gone.size()]) == nullptr);
        REQUIRE(ops.live() == live.size());
    }
    std::size_t seen = 0;
    ops.for_each_live([&](const Op &op) {
        ++seen;
        check_same(op, live.at(op_ref(op)));
    });
    CHECK(seen == live.size());
}
