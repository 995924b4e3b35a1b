// SPDX-License-Identifier: MIT
// The parts of a block matcher, each fed alone with the parts below it (block/engine.hpp).
#include <doctest/doctest.h>

#include "block/flushes.hpp"
#include "block/lost_requests.hpp"
#include "block/merges.hpp"
#include "block/reissues.hpp"

using namespace opline;
using namespace opline::block_model;

namespace {

constexpr std::uint32_t kDisk = 8u << 20, kUpper = 253u << 20;

struct Parts {
    explicit Parts(bool pointers = false) : m(pointers, &hooks) {
        hooks.bio_queued = [this](const BlockEvent &, const Bio &) { return Owner{++bios_seen, 0}; };
        hooks.request_done = [this](const Request &r) { done.push_back(r); };
        hooks.bio_done = [this](const Bio &b) { bios_done.push_back(b); };
        hooks.missed = [this](const Request *, std::uint32_t, std::int64_t begin_ns, std::int64_t end_ns) {
            missed.emplace_back(begin_ns, end_ns);
        };
        hooks.owner_ended = [this](const Owner &owner) { return owner.op == ended_op ? m.last_ns - 1 : kNoTime; };
        hooks.waiter = [this](const Request &r) {
            const bool ended = !r.owners.empty() && r.owners.front().op == ended_op;
            return Waiter{true, false, ended ? m.last_ns - 1 : kNoTime};
        };
    }
    // The next event, 10 ns after the one before.
    BlockEvent next(BlockKind kind, std::uint64_t sector, std::uint32_t count = 8, std::uint32_t flags = rwbs::kWrite) {
        BlockEvent e{};
        e.kind = kind;
        m.last_ns = m.first_ns == kNoTime ? m.first_ns = 1000 : m.last_ns + 10;
        e.ts_ns = m.last_ns;
        ++m.now;
        e.cpu = 0;
        e.tid = 7;
        e.dev = kDisk;
        e.sector = sector;
        e.nr_sectors = count;
        e.rwbs = flags;
        return e;
    }
    Index bio(std::uint64_t sector, std::uint32_t count = 8, std::uint32_t flags = rwbs::kWrite) {
        return bios.queued(next(BlockKind::kBioQueue, sector, count, flags));
    }
    // A request in the device, of a bio of its own.
    Index issued(std::uint64_t sector) {
        const Index b = bio(sector), r = requests.make(next(BlockKind::kGetRq, sector), sector, 8);
        requests.attach(b, r, false, false);
        requests.places().enter(r);
        requests.begin_issue(next(BlockKind::kRqIssue, sector), r);
        return r;
    }

    BlockModel::Hooks hooks;
    std::uint64_t bios_seen = 0, ended_op = 0;
    std::vector<Request> done;
    std::vector<Bio> bios_done;
    std::vector<std::pair<std::int64_t, std::int64_t>> missed;
    Matching m;
    StepEvidence evidence{m};
    Bios bios{m, evidence};
    Requests requests{m, evidence, bios};
    Finder finder{m, evidence, bios, requests};
};

}  // namespace

TEST_CASE("bios: a split's remainder keeps owner and times of the bio that it was cut from") {
    Parts p;
    const Index whole = p.bio(100, 24);
    BlockEvent split = p.next(BlockKind::kSplit, 100, 24);
    split.new_sector = 108;
    CHECK(p.bios.split(split) == Fate::kRequestStep);
    const Index rest = p.bios.first_at({kDisk, 108});
    REQUIRE(rest != kNil);
    CHECK(p.bios[whole].bio.nr_sectors == 8);
    CHECK(p.bios[rest].bio.nr_sectors == 16);
    CHECK(p.bios[rest].bio.split_from == p.bios[whole].bio.id);
    CHECK(p.bios[rest].bio.since_ns == p.bios[whole].bio.queue_ns);
    CHECK(p.bios[rest].bio.queue_ns == kNoTime);
    CHECK(p.m.counts.splits == 1);
    p.bios.finish();
    CHECK(p.bios.live() == 0);
    CHECK(p.bios_done.size() == 2);
}

TEST_CASE("bios: one that was remapped stays until the bio below it is done") {
    Parts p;
    BlockEvent upper = p.next(BlockKind::kBioQueue, 40);
    upper.dev = kUpper;
    p.bios.queued(upper);
    BlockEvent remap = p.next(BlockKind::kBioRemap, 2088);
    remap.old_dev = kUpper;
    remap.old_sector = 40;
    p.bios.remap(remap);
    const Index lower = p.bio(2088);
    CHECK(p.bios[lower].bio.parent == 1);
    CHECK(p.bios.live() == 2);
    BlockEvent complete = upper;
    complete.kind = BlockKind::kBioComplete;
    CHECK(p.bios.complete(complete) == Fate::kRequestStep);
    CHECK(p.bios.live() == 2);  // the lower one refers to it
    p.bios.close(lower);
    CHECK(p.bios.live() == 0);
}

TEST_CASE("requests: a pointer that comes back closes the request that had it") {
    Parts p(true);
    const Index first = p.issued(100);
    p.requests.set_pointer(first, 0xabc);
    const Index second = p.requests.make(p.next(BlockKind::kGetRq, 200), 200, 8);
    p.requests.set_pointer(second, 0xabc);
    REQUIRE(p.done.size() == 1);
    CHECK(p.done[0].reused);
    CHECK(p.done[0].complete_ns == kNoTime);
    CHECK(p.m.counts.pointer_reuse == 1);
    CHECK(p.missed.size() == 1);
    CHECK(*p.requests.by_pointer(0xabc) == second);
    CHECK(p.requests.live() == 1);
}

TEST_CASE("requests: places follow what is left, and ends are kept from the first question on") {
    Parts p;
    const Index r = p.requests.make(p.next(BlockKind::kGetRq, 100), 100, 8);
    p.requests.places().enter(r);
    CHECK(p.requests.places().first({kDisk, 100}) == r);
    CHECK(p.requests.places().first_ending({kDisk, 108}) == r);
    p.requests.places().rekey(r, 92, 16);  // merged in front
    CHECK(p.requests.places().first({kDisk, 100}) == kNil);
    CHECK(p.requests.places().first({kDisk, 92}) == r);
    CHECK(p.requests.places().first_ending({kDisk, 108}) == r);
    p.requests.begin_issue(p.next(BlockKind::kRqIssue, 92, 16), r);
    CHECK(p.requests.places().first_ending({kDisk, 108}) == kNil);  // it cannot grow any more
    p.requests.places().leave(r);
    CHECK(p.requests.places().first({kDisk, 92}) == kNil);
}

TEST_CASE("requests: no interval is negative") {
    Parts p;
    const Index r = p.issued(100);
    p.requests[r].r.getrq_ns = p.m.last_ns + 5;  // behind its issue
    p.requests.completed(p.next(BlockKind::kRqComplete, 100), r);
    p.requests.close(r);
    REQUIRE(p.done.size() == 1);
    CHECK(p.done[0].getrq_ns == kNoTime);
    CHECK(p.done[0].complete_ns > p.done[0].issue_ns);
    CHECK(p.m.counts.interval_violations == 1);
}

TEST_CASE("finder: of two requests of one place the first is found, and both fit as well") {
    Parts p;
    const Index first = p.issued(100), second = p.issued(100);
    const Found found = p.finder.request_for(p.next(BlockKind::kRqComplete, 100), BlockKind::kRqComplete);
    CHECK(found.index == first);
    CHECK(found.ambiguous);
    std::vector<Index> equals;
    p.finder.fit_as_well(p.next(BlockKind::kRqComplete, 100), first, equals);
    REQUIRE(equals.size() == 2);
    CHECK(equals[0] == first);
    CHECK(equals[1] == second);
    CHECK_FALSE(p.finder.request_for(p.next(BlockKind::kRqComplete, 500), BlockKind::kRqComplete));
}

TEST_CASE("finder: a length tells requests of one place apart") {
    Parts p;
    p.issued(100);
    const Index longer = p.requests.make(p.next(BlockKind::kGetRq, 100, 16), 100, 16);
    p.requests.places().enter(longer);
    p.requests.begin_issue(p.next(BlockKind::kRqIssue, 100, 16), longer);
    const Found found = p.finder.request_for(p.next(BlockKind::kRqComplete, 100, 16), BlockKind::kRqComplete);
    CHECK(found.index == longer);
    CHECK_FALSE(found.ambiguous);
}

TEST_CASE("merges: behind, in front, and a request into another") {
    Parts p;
    Merges merges(p.m, p.evidence, p.bios, p.requests, p.finder);
    const Index r = p.requests.make(p.next(BlockKind::kGetRq, 100), 100, 8);
    p.requests.places().enter(r);
    p.bio(108);
    CHECK(merges.merge(p.next(BlockKind::kBioBackmerge, 108), false) == Fate::kRequestStep);
    p.bio(92);
    CHECK(merges.merge(p.next(BlockKind::kBioFrontmerge, 92), true) == Fate::kRequestStep);
    CHECK(p.requests[r].r.sector == 92);
    CHECK(p.requests[r].r.nr_sectors == 24);
    CHECK(p.requests[r].r.bios == std::vector<std::uint64_t>{2, 1});
    const Index before = p.requests.make(p.next(BlockKind::kGetRq, 84), 84, 8);
    p.requests.places().enter(before);
    CHECK(merges.rq_merge(p.next(BlockKind::kRqMerge, 92, 24)) == Fate::kRequestStep);
    CHECK(p.requests[before].r.nr_sectors == 32);
    REQUIRE(p.done.size() == 1);
    CHECK(p.done[0].absorbed_by == p.requests[before].r.id);
    CHECK(p.done[0].bios.empty());
    CHECK(p.m.counts.unmatched_merge == 0);
}

TEST_CASE("merges: a pointer moves a bio to the request that has it") {
    Parts p(true);
    Merges merges(p.m, p.evidence, p.bios, p.requests, p.finder);
    BlockEvent q = p.next(BlockKind::kBioQueue, 108);
    q.bio = 0xb1;
    const Index bio = p.bios.queued(q);
    const Index wrong = p.issued(100), right = p.issued(300);
    p.requests.set_pointer(right, 0xa1);
    p.requests.attach(bio, wrong, false, false);
    BlockEvent named = p.next(BlockKind::kRqBio, 108);
    named.rq = 0xa1;
    named.bio = 0xb1;
    merges.rq_bio(named);
    CHECK(p.bios[bio].request == right);
    CHECK(p.requests[wrong].r.bios.size() == 1);
    CHECK(p.m.counts.corrected_merges == 1);
}

TEST_CASE("reissues: a second issue of one place is the same request, until a second completion tells two apart") {
    Parts p;
    Reissues reissues(p.m, p.bios, p.requests, p.finder);
    const Index r = p.issued(100);
    reissues.note_issue(p.next(BlockKind::kRqIssue, 100), r);
    const BlockEvent again = p.next(BlockKind::kRqIssue, 100);
    CHECK(reissues.issued_again(again) == r);
    reissues.note_reissue(again, r);
    CHECK(p.requests[r].r.requeues == 1);
    const Index second = reissues.second_of_reissue(p.next(BlockKind::kRqComplete, 100));
    REQUIRE(second != kNil);
    CHECK(p.requests[second].r.issue_ns == again.ts_ns);
    CHECK(p.requests[second].r.ambiguous);
    CHECK(reissues.second_of_reissue(p.next(BlockKind::kRqComplete, 100)) == kNil);
}

TEST_CASE("lost requests: one that very many others overtook is given up") {
    Parts p;
    LostRequests lost(p.m, p.evidence, p.requests);
    p.issued(100);
    p.m.devices.of(kDisk).completions = 16'384;
    lost.look();
    CHECK(p.done.empty());
    ++p.m.devices.of(kDisk).completions;
    lost.look();
    CHECK(p.done.size() == 1);
    CHECK(p.m.counts.presumed_lost == 1);
    CHECK(p.missed == std::vector<std::pair<std::int64_t, std::int64_t>>{{p.done[0].issue_ns, p.m.last_ns}});
    CHECK(p.requests.live() == 0);
}

TEST_CASE("flush runs: what a flush was for completes until its CPU does something else") {
    FlushRuns runs;
    Device device;
    ReqRec waiter;
    waiter.flush_done = true;
    waiter.done_cpu = 1;
    waiter.waits_for = 5;
    BlockEvent e{};
    e.kind = BlockKind::kRqComplete;
    e.cpu = 1;
    runs.saw(1, 10);
    FlushCpu &cpu = device.flush_cpus[1];
    cpu.done = 5;
    runs.begin(cpu, e, 10);
    CHECK(runs.goes_on(device, waiter));
    runs.saw(0, 11);  // another CPU
    CHECK(runs.goes_on(device, waiter));
    runs.saw(1, 12);
    runs.keep(&cpu, e, 12);  // another request of the flush
    CHECK(runs.goes_on(device, waiter));
    runs.saw(1, 13);  // something else
    CHECK_FALSE(runs.goes_on(device, waiter));
}

TEST_CASE("flush line: a flush is for those that wait when it is issued, not for the one that comes later") {
    Parts p;
    FlushRuns runs;
    FlushLine line(p.m, p.evidence, p.bios, p.requests, runs);
    const std::uint32_t flags = rwbs::kWrite | rwbs::kPreflush;
    auto waiter = [&] {
        const Index b = p.bio(0, 0, flags), r = p.requests.make(p.next(BlockKind::kGetRq, 0, 0, flags), 0, 0);
        p.requests.attach(b, r, false, false);
        line.note_flush_entry(r, flags);
        return r;
    };
    auto flush = [&] {
        const BlockEvent e = p.next(BlockKind::kRqIssue, kNoSector, 0, rwbs::kFlush);
        const Index f = p.requests.make(e, kNoSector, 0);
        p.requests[f].is_flush = true;
        enlist(p.m.devices.of(kDisk).flushes, f);
        line.serve_by(e, f);
        p.requests.begin_issue(e, f);
        return f;
    };
    const Index a = waiter(), first = flush(), b = waiter();
    const Device &device = p.m.devices.of(kDisk);
    CHECK(line.flush_of(device, p.requests[a]) == first);
    CHECK(line.flush_of(device, p.requests[b]) == kNil);
    CHECK(p.requests[first].r.owners.size() == 1);
    line.flush_completed(p.next(BlockKind::kRqComplete, kNoSector, 0, rwbs::kFlush), first);
    CHECK(p.requests[a].flush_done);
    CHECK_FALSE(p.requests[b].flush_done);
    FlushTurns turns(p.m, p.bios, p.requests, line);
    CHECK(turns.empty_to_complete(p.next(BlockKind::kRqComplete, 0, 0, rwbs::kWrite)).index == a);
}
