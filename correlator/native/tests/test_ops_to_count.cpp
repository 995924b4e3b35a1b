// SPDX-License-Identifier: MIT
// Statistics are the same whichever thread counts the ops.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "op_table.hpp"
#include "ops_to_count.hpp"

using namespace opline;

namespace {

constexpr int kOps = 100'000;

class Ops {
  public:
    Ops() { table.shapes().forget_details(); }
    // The ref of one that has ended, with up to 20 transitions.
    std::uint64_t make() {
        Op &op = table.create();
        op.hard = true;
        op.pid = static_cast<std::int32_t>(random_() % 3);
        std::int64_t ts_ns = op.begin_ns = static_cast<std::int64_t>(random_() % 1000);
        for (std::uint64_t n = 0, of = random_() % 20 + 1; n < of; ++n) {
            Transition t;
            t.point = static_cast<std::uint32_t>(n);
            t.ts_ns = op.end_ns = ts_ns;
            t.tid = 7;
            t.order = static_cast<std::uint32_t>(n);
            op.transitions.push_back(t);
            ts_ns += static_cast<std::int64_t>(random_() % 100'000);
        }
        op.end_order = op.transitions.last_order();
        op.state = OpState::kEnded;
        auto &cuts = attribution(op.transitions.shape()).cuts;
        for (auto i = static_cast<std::uint32_t>(cuts.size()); i + 1 < op.transitions.size(); ++i)
            cuts.push_back({strings.intern("stage " + std::to_string(i)), 0, 0, 0, i, i + 1, 0, false});
        return op_ref(op);
    }
    // A stage from each transition to the next.
    ShapeAttribution &attribution(std::uint32_t shape) { return attributions_[shape]; }
    bool often(unsigned times) { return random_() % times != 0; }

    OpTable table;
    StringPool strings;

  private:
    std::mt19937_64 random_{11};
    std::map<std::uint32_t, ShapeAttribution> attributions_;
};

enum class Help { kNone, kNever, kSoon };

// 500 ops are about at any time. Of `whole`, one is counted as it is; the others were put away.
std::string statistics(unsigned whole, Help help) {
    Ops ops;
    OpsToCount counted(true, ops.table.frozen_ops());
    std::atomic<bool> done{false};
    std::thread helper;
    if (help != Help::kNone) counted.share();
    if (help == Help::kSoon) {
        helper = std::thread([&] {
            while (!done)
                if (!counted.help()) std::this_thread::yield();
        });
    }
    std::vector<std::uint64_t> refs;
    std::uint32_t chunks = 0;
    for (int i = 0; i < kOps; ++i) {
        refs.push_back(ops.make());
        if (ops.often(whole)) ops.table.freeze(refs.back());
        if (refs.size() <= 500) continue;
        const std::uint64_t ref = refs[refs.size() - 501];
        if (const FrozenOps::Op *frozen = ops.table.frozen(ref)) {
            chunks = std::max(chunks, frozen->chunk + 1);
            counted.count(*frozen, ops.attribution(frozen->shape), i % 3 == 0);
            ops.table.release_frozen(ref);
        } else {
            Op &as_it_is = *ops.table.find(ref);
            counted.count(as_it_is.shaped(), ops.attribution(as_it_is.transitions.shape()), i % 3 == 0);
            ops.table.release(as_it_is);
        }
    }
    std::string out = counted.json(ops.strings).dump();
    done = true;
    if (helper.joinable()) helper.join();
    CHECK(chunks < 64);  // 300 without using any of them again
    return out;
}

}  // namespace

TEST_CASE("ops that were put away") { CHECK(statistics(~0u, Help::kSoon) == statistics(~0u, Help::kNone)); }

TEST_CASE("others between them") {
    CHECK(statistics(1000, Help::kSoon) == statistics(1000, Help::kNone));
    CHECK(statistics(3, Help::kSoon) == statistics(3, Help::kNone));
}

TEST_CASE("nobody has time to help") { CHECK(statistics(3000, Help::kNever) == statistics(3000, Help::kNone)); }
