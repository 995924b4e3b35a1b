// SPDX-License-Identifier: MIT
// Requests that many others overtake: whose is their completion, and when are they given up.
#include <doctest/doctest.h>

#include <algorithm>

#include "block/block.hpp"

using namespace opline;

namespace {

// Requests of one device, and what became of them.
struct OneDevice {
    void event(BlockKind kind, std::uint64_t sector, std::uint32_t cpu, std::uint32_t rwbs) {
        BlockEvent e{};
        e.kind = kind;
        e.dev = 8u << 20;
        e.sector = sector;
        e.nr_sectors = 8;
        e.rwbs = rwbs;
        e.tid = 5;
        e.comm = 1;
        e.cpu = cpu;
        e.ts_ns = now_ns += 1000;
        model.event(e);
    }
    void issue(std::uint64_t sector, std::uint32_t cpu, std::uint32_t rwbs = rwbs::kWrite) {
        for (auto kind : {BlockKind::kBioQueue, BlockKind::kGetRq, BlockKind::kRqIssue}) event(kind, sector, cpu, rwbs);
    }
    void complete(std::uint64_t sector, std::uint32_t cpu, std::uint32_t rwbs = rwbs::kWrite) {
        event(BlockKind::kRqComplete, sector, cpu, rwbs);
    }
    // 300 requests of CPU 1 at sector 0, one after the other.
    void overtake_at_its_place() {
        for (int i = 0; i < 300; ++i) {
            issue(0, 1);
            complete(0, 1);
        }
    }
    // Every request has its completion, and every completion its request.
    void finish_whole() {
        model.finish();
        CHECK(model.counts().presumed_lost == 0);
        CHECK(model.counts().unmatched_complete == 0);
        CHECK(open == 0);
    }

    BlockModel::Hooks hooks() {
        BlockModel::Hooks its;
        its.bio_queued = [](const BlockEvent &e, const Bio &) { return Owner{e.comm, 0}; };
        its.request_done = [this](const Request &r) {
            if (r.complete_ns == kNoTime) ++open;
            else longest_ns = std::max(longest_ns, r.complete_ns - r.issue_ns);
        };
        return its;
    }

    std::int64_t now_ns = 0, longest_ns = 0;
    std::uint64_t open = 0;
    BlockModel model{BlockMatch::kSector, hooks()};
};

}  // namespace

TEST_CASE("where a CPU's requests complete says nothing of those that another CPU issued") {
    OneDevice device;
    for (std::uint64_t i = 1; i <= 200; ++i) {
        device.issue(i * 8, 1);
        device.complete(i * 8, 1);
    }
    device.issue(0, 0);  // the first of its CPU: its completion is on CPU 1 as well
    device.overtake_at_its_place();
    device.complete(0, 1);
    device.finish_whole();
    CHECK(device.longest_ns < 20'000);
}

TEST_CASE("one that others may have been taken for is not given up for being overtaken") {
    OneDevice device;
    for (int i = 0; i < 10; ++i) {  // the last in, the first out: the direction tells which is which
        device.issue(0, 1, rwbs::kRead);
        device.issue(0, 1, rwbs::kWrite);
        device.complete(0, 1, rwbs::kWrite);
        device.complete(0, 1, rwbs::kRead);
    }
    device.issue(0, 1);
    device.overtake_at_its_place();
    device.complete(0, 1);
    device.finish_whole();
}

TEST_CASE("a completion that is late because its CPU was busy is not another CPU's") {
    OneDevice device;
    for (std::uint64_t i = 1; i <= 200; ++i) {
        for (std::uint32_t cpu : {0u, 1u}) {
            device.issue(i * 8, cpu);
            device.complete(i * 8, cpu);
        }
    }
    device.longest_ns = 0;
    device.issue(0, 0);
    const std::int64_t issued_ns = device.now_ns;
    device.overtake_at_its_place();
    device.issue(0, 1);
    device.complete(0, 0);
    const std::int64_t completed_ns = device.now_ns;
    device.complete(0, 1);
    device.finish_whole();
    CHECK(device.longest_ns == completed_ns - issued_ns);
}
