// SPDX-License-Identifier: MIT
#include "stitch/own_requests.hpp"

#include <algorithm>
#include <array>
#include <string>

namespace opline {
namespace {

struct FirstStep {
    std::int64_t RequestState::*time;
    const char *point, *event;
};

constexpr std::array<FirstStep, 3> kFirstSteps{{{&RequestState::queue_ns, "queued", "block_bio_queue"},
                                                {&RequestState::insert_ns, "inserted", "block_rq_insert"},
                                                {&RequestState::first_issue_ns, "issued", "block_rq_issue"}}};

}  // namespace

Op *OwnRequests::op_of(std::uint32_t host, const Request &r) {
    if (!threads_.any() || r.absorbed_by != 0) return nullptr;
    const auto *first = std::find_if(kFirstSteps.begin(), kFirstSteps.end(),
                                     [&](const FirstStep &step) { return r.*step.time != kNoTime; });
    const bool queued = r.queue_comm != 0 || r.queue_tid > 0;
    const std::uint32_t comm = queued ? r.queue_comm : r.issue_comm;
    const std::uint32_t group = threads_.group_of(comm);
    if (first == kFirstSteps.end() || group == 0) return nullptr;
    const std::int32_t tid = queued ? r.queue_tid : r.issue_tid;
    Op &op = lives_.new_op(host, -1, tid, r.*first->time);
    if (op.cgroup == 0) op.cgroup = r.cgroup;
    op.has_length = r.nr_sectors > 0;
    op.length_bytes = std::int64_t{r.nr_sectors} * 512;
    op.op_class = threads_.class_of(group, r.kind);
    Transition t;
    t.ts_ns = op.begin_ns;
    t.point = s_.strings.intern(first->point);
    t.event = s_.strings.intern(first->event);
    t.spec = kNoSpec;
    t.tid = tid;
    t.cpu = queued ? r.queue_cpu : r.issue_cpu;
    t.comm = comm;
    t.evidence = Evidence::kBegin;
    lives_.add_transition(op, t);
    if (r.complete_ns == kNoTime) return &op;
    op.io.is_io = op.io.own = true;
    t = Transition{};
    t.ts_ns = std::max(r.end_ns, r.complete_ns);
    t.point = s_.strings.intern("completed");
    t.spec = kNoSpec;
    t.evidence = Evidence::kCompletion;
    lives_.end_op(op, t.ts_ns, lives_.add_transition(op, t));
    return &op;
}

}  // namespace opline
