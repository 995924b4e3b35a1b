// SPDX-License-Identifier: MIT
// Completions that fit several requests of one place: whose each is, and when that is known.
#include <doctest/doctest.h>

#include <map>
#include <optional>
#include <vector>

#include "block/block.hpp"

using namespace opline;

namespace {

constexpr std::uint32_t kDisk = 8u << 20;

// Threads write the same sectors. The op of a request has the number of its bio.
struct Place {
    explicit Place(bool has_wakes = false) {
        BlockModel::Hooks hooks;
        hooks.bio_queued = [this](const BlockEvent &, const Bio &) { return Owner{++bios, 0}; };
        hooks.request_done = [this](const Request &r) {
            done.push_back(r);
            if (r.complete_ns != kNoTime) complete_ns[r.owners.front().op] = r.complete_ns;
        };
        hooks.waiter = [this](const Request &r) {
            const auto it = ends.find(r.owners.front().op);
            return Waiter{waited_for, ends_with_it, it == ends.end() ? kNoTime : it->second};
        };
        shared.has_wakes = has_wakes;
        model.emplace(BlockMatch::kPointer, hooks, &shared);
    }
    BlockEvent at(BlockKind kind, std::int32_t tid, std::uint32_t cpu) {
        BlockEvent e{};
        e.kind = kind;
        e.ts_ns = now += 10;
        e.cpu = cpu;
        e.tid = tid;
        e.dev = kDisk;
        e.sector = 100;
        e.nr_sectors = 8;
        e.rwbs = rwbs::kWrite;
        return e;
    }
    void issue(std::int32_t tid) {
        for (const BlockKind kind : {BlockKind::kBioQueue, BlockKind::kGetRq, BlockKind::kRqIssue})
            model->event(at(kind, tid, 0));
    }
    std::int64_t complete(std::uint32_t cpu = 0) {
        model->event(at(BlockKind::kRqComplete, -1, cpu));
        return now;
    }
    void wake(std::int32_t tid, std::uint32_t cpu = 0) { model->woken(tid, cpu, now += 1); }
    void end(std::uint64_t op) { ends[op] = now += 10; }
    void later() { model->decide(0, now, now + 10), now += 10; }
    const Request &of(std::uint64_t op) const {
        for (const Request &r : done)
            if (r.owners.front().op == op) return r;
        FAIL("the request of op " << op << " is not done");
        return done.front();
    }

    BlockShared shared;
    std::optional<BlockModel> model;
    std::int64_t now = 1000;
    std::uint64_t bios = 0;
    bool waited_for = true, ends_with_it = false;
    std::map<std::uint64_t, std::int64_t> ends, complete_ns;
    std::vector<Request> done;
};

}  // namespace

TEST_CASE("the thread that is woken on the CPU of the completion waited for it") {
    Place p;
    p.issue(1), p.issue(2), p.issue(3);
    const std::int64_t first_ns = p.complete();
    CHECK(p.done.empty());
    p.wake(2);
    REQUIRE(p.done.size() == 1);
    const std::int64_t second_ns = p.complete();
    p.wake(1);
    const std::int64_t third_ns = p.complete();  // one is left
    CHECK(p.complete_ns == std::map<std::uint64_t, std::int64_t>{{1, second_ns}, {2, first_ns}, {3, third_ns}});
    for (const Request &r : p.done) CHECK_FALSE(r.ambiguous);
    CHECK(p.of(2).completion_by == CompletionBy::kTwo);
    CHECK(p.of(3).completion_by == CompletionBy::kMatch);
}

TEST_CASE("a wake-up is the only evidence where two completions may be its") {
    Place p(true);
    p.issue(1), p.issue(2), p.issue(3);
    const std::int64_t first_ns = p.complete(1), second_ns = p.complete(0);
    p.wake(2, 0);
    CHECK(p.complete_ns == std::map<std::uint64_t, std::int64_t>{{2, second_ns}});
    CHECK(p.of(2).completion_by == CompletionBy::kOrder);
    p.wake(1, 1);
    CHECK(p.complete_ns.at(1) == first_ns);
    CHECK(p.of(1).completion_by == CompletionBy::kTwo);  // the other one is gone
}

TEST_CASE("a wake-up says nothing on another CPU, of another thread, behind another event, or long after") {
    for (const int what : {0, 1, 2, 3}) {
        CAPTURE(what);
        Place p(true);
        p.issue(1), p.issue(2);
        const std::int64_t first_ns = p.complete();
        if (what == 2) {
            BlockEvent other = p.at(BlockKind::kBioQueue, 8, 0);
            other.sector = 900;
            p.model->event(other);
        }
        if (what == 3) p.now += 1'000'000;
        p.wake(what == 1 ? 7 : 2, what == 0 ? 1 : 0);
        CHECK(p.done.empty());
        p.complete();
        p.model->finish();
        CHECK(p.complete_ns.at(1) == first_ns);  // the one that was issued first
        CHECK(p.of(1).ambiguous);
        CHECK(p.of(2).ambiguous);
    }
}

TEST_CASE("who reaps several completions sees them in their order") {
    Place p;
    p.issue(1), p.issue(1), p.issue(1);
    const std::int64_t first_ns = p.complete(), second_ns = p.complete();
    p.end(3);
    p.end(1);
    p.later();
    const std::int64_t third_ns = p.complete();
    p.end(2);
    p.model->finish();
    CHECK(p.complete_ns == std::map<std::uint64_t, std::int64_t>{{1, second_ns}, {2, third_ns}, {3, first_ns}});
    CHECK(p.of(3).completion_by == CompletionBy::kOrder);
    for (const Request &r : p.done) CHECK_FALSE(r.ambiguous);
}

TEST_CASE("several threads need not go on in the order of their completions") {
    Place p;
    p.issue(1), p.issue(2);
    const std::int64_t first_ns = p.complete();
    p.complete();
    p.end(2);
    p.end(1);
    p.later();
    CHECK(p.complete_ns.at(1) == first_ns);  // the one that was issued first
    for (const Request &r : p.done) CHECK(r.ambiguous);
}

TEST_CASE("of one completion and one thread that went on behind it nothing else is possible") {
    Place p;
    p.issue(1), p.issue(2);
    const std::int64_t first_ns = p.complete();
    p.end(2);
    p.later();
    const std::int64_t second_ns = p.complete();
    CHECK(p.complete_ns == std::map<std::uint64_t, std::int64_t>{{1, second_ns}, {2, first_ns}});
    CHECK(p.of(2).completion_by == CompletionBy::kOrder);
    for (const Request &r : p.done) CHECK_FALSE(r.ambiguous);
}

TEST_CASE("as many completions as requests: the next one is another's") {
    Place p;
    p.issue(1), p.issue(1);
    p.complete(), p.complete();
    p.issue(2);
    const std::int64_t third_ns = p.complete();
    CHECK(p.complete_ns == std::map<std::uint64_t, std::int64_t>{{3, third_ns}});
    CHECK_FALSE(p.of(3).ambiguous);
}

TEST_CASE("who had gone on before the completion did not wait for it") {
    Place p;
    p.issue(1), p.issue(1), p.issue(1);
    p.complete();
    p.end(1);
    p.later();
    const std::int64_t second_ns = p.complete();
    CHECK(p.complete_ns.size() == 1);
    p.end(3);
    p.later();
    CHECK(p.complete_ns.at(3) == second_ns);
}

TEST_CASE("where nobody can show whose it is the one that was issued first gets it at once") {
    Place p;
    p.waited_for = false;
    p.issue(1), p.issue(2);
    const std::int64_t first_ns = p.complete();
    CHECK(p.complete_ns == std::map<std::uint64_t, std::int64_t>{{1, first_ns}});
    CHECK(p.of(1).ambiguous);
    CHECK(p.of(1).in_flight == 0);
}

TEST_CASE("an op that ends with its completion shows nothing, and does not wait") {
    Place p;
    p.ends_with_it = true;
    p.issue(1), p.issue(1);
    const std::int64_t first_ns = p.complete();
    CHECK(p.complete_ns == std::map<std::uint64_t, std::int64_t>{{1, first_ns}});
    CHECK(p.of(1).ambiguous);
}

TEST_CASE("where nobody waits the next event of the CPU is the end of the time for a wake-up") {
    for (const bool woken : {false, true}) {
        CAPTURE(woken);
        Place p(true);
        p.waited_for = false;
        p.issue(1), p.issue(2);
        const std::int64_t first_ns = p.complete();
        CHECK(p.done.empty());
        if (woken) p.wake(2);
        p.issue(3);
        CHECK(p.complete_ns == std::map<std::uint64_t, std::int64_t>{{woken ? 2 : 1, first_ns}});
        CHECK(p.done.front().ambiguous != woken);
    }
}

TEST_CASE("what has completed is not in flight, even if nobody knows which it is") {
    Place p;
    p.issue(1), p.issue(2);
    p.complete();
    p.issue(3);
    p.model->finish();
    CHECK(p.of(3).in_flight == 1);
}
