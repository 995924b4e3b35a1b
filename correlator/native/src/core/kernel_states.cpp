// SPDX-License-Identifier: MIT
#include "core/kernel_states.hpp"

#include <algorithm>

#include "core/states.hpp"

namespace opline {

void KernelStates::event(const BoundClass &cls, const Event &ev) {
    if (events_++ == 0) stream_ = ev.stream;
    const auto &threads = common_.identities.threads;
    if (cls.kind == ClassKind::kLockWait) note_lock(waits.locks, threads, cls, ev, common_.now.host, common_.names);
    else note_state(timelines, waits.runs, waits.told, threads, cls, ev, common_.now.host, common_.names);
    if (timelines.changes() >= kChanges) forget_old();
}

void KernelStates::follow(const BoundClass &cls, const Event &ev) {
    const std::uint32_t host = common_.now.host;
    if (cls.kind == ClassKind::kFollowLost) {
        followed_.for_each([&](std::uint64_t, std::int64_t tid) { timelines.gone(host, tid, kNoTime); });
        return;
    }
    const std::int64_t tid = common_.identities.threads.of_root(host, number_in(ev, cls.sched.tid, -1));
    if (number_in(ev, cls.sched.level, 0) >= 0) {
        followed_[thread_key(host, tid)] = tid;
        return;
    }
    followed_.erase(thread_key(host, tid));
    timelines.gone(host, tid, ev.ts_ns);
}

void KernelStates::request_ended(const Request &r, const Flush *flush) {
    DoneRequest done;
    done.request = r.id;
    done.queue_ns = r.queue_ns;
    done.getrq_ns = r.getrq_ns;
    done.preflush_ns = r.preflush_ns;
    done.issue_ns = flush ? flush->issue_ns : r.issue_ns;
    done.done_ns = std::max(r.complete_ns, r.end_ns);
    done.dev = r.dev;
    done.queue_tid = r.queue_tid;
    done.queue_comm = r.queue_comm;
    const Now &now = common_.now;
    waits.requests.add(now.host, done.done_ns == now.block_ns ? now.block_cpu : r.complete_cpu, done);
    if (waits.requests.added() >= kChanges) forget_old();
}

bool KernelStates::in_stream(std::uint32_t stream) const {
    const auto &streams = common_.streams.declared;
    if (streams[stream].domain == Domain::kKernel) return true;
    return from_collector_ && (none() || streams[stream].channel == streams[stream_].channel);
}

void KernelStates::forget_old() {
    std::int64_t oldest = common_.now.last_ns;
    ops_.for_each_live([&](const Op &op) { oldest = std::min(oldest, op.begin_ns); });
    timelines.forget_before(oldest);
    waits.forget_before(oldest);
}

}  // namespace opline
