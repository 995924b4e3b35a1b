// SPDX-License-Identifier: MIT
// Whole requests taken apart into steps: in the order of time, and of equal times as a request takes them.
#include <doctest/doctest.h>

#include <vector>

#include "block/request_steps.hpp"

using namespace opline;

namespace {

std::vector<BlockEvent> until(RequestSteps &steps, std::int64_t ns) {
    std::vector<BlockEvent> out;
    std::uint32_t host = 0;
    while (steps.next_ns() <= ns) out.push_back(steps.take(host));
    return out;
}

RequestRecord request(std::uint64_t rq, std::int64_t queue_ns) {
    RequestRecord r;
    r.rq = rq;
    r.bio = rq + 1;
    r.sector = 8;
    r.bytes = 4096;
    r.queue_ns = queue_ns;
    r.getrq_ns = queue_ns + 10;
    r.issue_ns = queue_ns + 20;
    r.complete_ns = queue_ns + 100;
    r.tid = 7;
    r.issue_tid = 9;
    r.error = -5;
    return r;
}

}  // namespace

TEST_CASE("a request's steps come when their time has come") {
    RequestSteps steps;
    CHECK(steps.next_ns() == RequestSteps::kNone);
    steps.request(request(100, 1000), 3);
    REQUIRE(until(steps, 1000).size() == 1);
    CHECK(steps.next_ns() == 1010);
    const auto more = until(steps, 1099);
    REQUIRE(more.size() == 2);
    CHECK(more[0].kind == BlockKind::kGetRq);
    CHECK(more[0].tid == 7);
    CHECK(more[0].rq == 0);
    CHECK(more[1].kind == BlockKind::kRqIssue);
    CHECK(more[1].tid == 9);
    CHECK(more[1].nr_sectors == 8);
    CHECK(more[1].error == 0);
    std::uint32_t host = 0;
    const BlockEvent done = steps.take(host);
    CHECK(done.kind == BlockKind::kRqComplete);
    CHECK(done.error == -5);
    CHECK(done.tid == -1);
    CHECK(host == 3);
    CHECK(steps.next_ns() == RequestSteps::kNone);
}

TEST_CASE("steps of several requests are in the order of time, those of equal times in a request's own") {
    RequestSteps steps;
    RequestRecord merged = request(200, 1005);
    merged.issue_ns = merged.complete_ns = merged.getrq_ns = kNoTime;
    merged.merge_ns = 1008;
    merged.named_ns = 1020;  // when the first one is issued
    merged.rq = 100;
    steps.bio(merged, 1);
    steps.request(request(100, 1000), 1);
    std::vector<BlockKind> kinds;
    std::int64_t last_ns = 0;
    for (const BlockEvent &e : until(steps, RequestSteps::kNone - 1)) {
        CHECK(e.ts_ns >= last_ns);
        last_ns = e.ts_ns;
        kinds.push_back(e.kind);
    }
    using K = BlockKind;
    CHECK(kinds == std::vector<K>{K::kBioQueue, K::kBioQueue, K::kBioBackmerge, K::kGetRq, K::kRqIssue, K::kRqBio,
                                  K::kRqComplete});
}

TEST_CASE("what another record has is no step, and a partition's remap comes before its bio") {
    RequestSteps steps;
    RequestRecord rest = request(100, 1000);
    rest.queue_ns = rest.getrq_ns = rest.issue_ns = kNoTime;
    steps.request(rest, 1);
    CHECK(until(steps, 2000).size() == 1);
    RequestRecord bio = request(100, 3000);
    bio.old_dev = 77;
    bio.old_sector = 2;
    steps.request(bio, 1);
    const auto first = until(steps, 3000);
    REQUIRE(first.size() == 2);
    CHECK(first[0].kind == BlockKind::kBioRemap);
    CHECK(first[0].old_dev == 77);
    CHECK(first[1].kind == BlockKind::kBioQueue);
}
