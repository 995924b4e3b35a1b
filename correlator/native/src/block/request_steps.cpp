// SPDX-License-Identifier: MIT
#include "block/request_steps.hpp"

#include <algorithm>

namespace opline {
namespace {

// The order of a request's steps.
std::uint32_t rank_of(BlockKind kind) {
    switch (kind) {
    case BlockKind::kBioRemap: return 0;
    case BlockKind::kBioQueue: return 1;
    case BlockKind::kRqIssue: return 4;
    case BlockKind::kRqBio: return 5;
    case BlockKind::kRqComplete:
    case BlockKind::kBioComplete: return 6;
    case BlockKind::kRqInsert: return 3;
    default: return 2;
    }
}

BlockEvent blank_of(const RequestRecord &r) {
    BlockEvent e{};
    e.tid = e.pid = -1;
    e.cpu = kNoCpu;
    e.dev = r.dev;
    e.sector = r.sector;
    e.nr_sectors = r.bytes >> 9;
    e.bio = r.bio;
    return e;
}

}  // namespace

void RequestSteps::add(BlockKind kind, std::int64_t ts_ns, const BlockEvent &like, std::uint32_t host) {
    if (ts_ns == kNoTime) return;
    std::uint32_t room = static_cast<std::uint32_t>(waiting_.size());
    if (free_.empty()) {
        waiting_.push_back({like, host});
    } else {
        room = free_.back();
        free_.pop_back();
        waiting_[room] = {like, host};
    }
    waiting_[room].event.kind = kind;
    waiting_[room].event.ts_ns = ts_ns;
    turns_.push_back({ts_ns, rank_of(kind), room, number_++});
    std::push_heap(turns_.begin(), turns_.end());
    next_ns_ = turns_.front().ts_ns;
}

BlockEvent RequestSteps::take(std::uint32_t &host) {
    std::pop_heap(turns_.begin(), turns_.end());
    const StepToCome &step = waiting_[turns_.back().room];
    free_.push_back(turns_.back().room);
    turns_.pop_back();
    next_ns_ = turns_.empty() ? kNone : turns_.front().ts_ns;
    host = step.host;
    return step.event;
}

// The steps of a bio before it belongs to a request.
void RequestSteps::begins(const RequestRecord &r, const BlockEvent &like, std::uint32_t host) {
    BlockEvent bio = like;
    bio.tid = r.tid;
    bio.cpu = r.cpu;
    bio.rwbs = r.bio_rwbs;
    bio.cgroup_number = r.cgroup_number;
    if (r.old_dev != 0) {
        BlockEvent remap = bio;
        remap.old_dev = r.old_dev;
        remap.old_sector = r.old_sector;
        add(BlockKind::kBioRemap, r.queue_ns, remap, host);
    }
    add(BlockKind::kBioQueue, r.queue_ns, bio, host);
    add(BlockKind::kGetRq, r.getrq_ns, bio, host);
    add(r.front ? BlockKind::kBioFrontmerge : BlockKind::kBioBackmerge, r.merge_ns, bio, host);
}

void RequestSteps::request(const RequestRecord &r, std::uint32_t host) {
    BlockEvent e = blank_of(r);
    begins(r, e, host);
    e.rwbs = r.rwbs;
    e.rq = r.rq;
    e.queue = r.hw_queue;
    BlockEvent went_on = e;
    // In a record with an issue, the inserting thread is the queueing thread, if the record has a Q.
    went_on.tid = r.issue_ns != kNoTime && r.queue_ns != kNoTime ? r.tid : r.issue_tid;
    add(BlockKind::kRqInsert, r.insert_ns, went_on, host);
    went_on.tid = r.issue_tid;
    went_on.cpu = r.issue_cpu;
    add(BlockKind::kRqIssue, r.issue_ns, went_on, host);
    e.cpu = r.complete_cpu;
    e.error = r.error;
    add(BlockKind::kRqComplete, r.complete_ns, e, host);
}

void RequestSteps::bio(const RequestRecord &r, std::uint32_t host) {
    BlockEvent e = blank_of(r);
    begins(r, e, host);
    e.rwbs = r.bio_rwbs;
    BlockEvent named = e;
    named.rq = r.rq;
    add(BlockKind::kRqBio, r.named_ns, named, host);
    e.error = r.error;
    add(BlockKind::kBioComplete, r.complete_ns, e, host);
}

}  // namespace opline
