// SPDX-License-Identifier: MIT
#include "stitch/own_bios.hpp"

#include <memory>

namespace opline {

Op *OwnBios::op_of(std::uint32_t host, const BlockEvent &ev, const Bio &bio) {
    if (!meant_.any() || ev.tid <= 0 || ev.kind != BlockKind::kBioQueue) return nullptr;
    const std::uint32_t group = meant_.group_of(ev.comm);
    if (group == 0) return nullptr;
    ThreadState &ts = threads_.of(host, ev.tid);
    ts.last_ns = ev.ts_ns;
    ts.last_pid = ev.pid;
    if (!ts.own) ts.own = std::make_unique<OwnBio>();
    Op *op = ts.own->last.continued_by(bio) ? lives_.ops().find(ts.own->op) : nullptr;
    ts.own->last.remember(bio);
    if (op && op->state == OpState::kOpen) {
        add_length(*op, bio);
        return op;
    }
    Op &made = lives_.new_op(host, ev.pid, ev.tid, ev.ts_ns, true);
    if (made.cgroup == 0) made.cgroup = bio.cgroup;
    made.io.is_io = made.io.own = true;
    add_length(made, bio);
    made.op_class = meant_.class_of(group, bio.kind);
    Transition t;
    t.ts_ns = ev.ts_ns;
    t.point = queued_;
    t.event = event_;
    t.spec = kNoSpec;
    t.tid = ev.tid;
    t.pid = ev.pid;
    t.cpu = ev.cpu;
    t.comm = ev.comm;
    t.evidence = Evidence::kBegin;
    lives_.add_transition(made, t);
    ts.own->op = op_ref(made);
    return &made;
}

}  // namespace opline
