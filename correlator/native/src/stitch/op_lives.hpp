// SPDX-License-Identifier: MIT
// An op's life but for its last moment: begun, given transitions, its bytes in flight, its syncs, its end. What has
// ended waits here until it settles (stitch/settling.hpp).
#pragma once
#include <algorithm>
#include <deque>
#include <limits>
#include <vector>

#include "stitch/stitching.hpp"

namespace opline {

class OpLives {
  public:
    // settle: settles an op at once, if there is no room for another op.
    OpLives(Stitching &s, std::function<void(Op &)> settle) : s_(s), settle_(std::move(settle)) {}

    OpTable &ops() { return ops_; }
    // Ops between their io begin and io end points.
    const std::vector<std::uint64_t> &io_windows() const { return io_windows_; }
    // The ops that threads worked for; empty if no stage is cut by such points.
    const ThreadPoints &thread_points() const { return thread_points_; }
    void thread_ended(std::uint64_t key) { thread_points_.ended(key); }

    // `bio`: the op is a bio of its own.
    Op &new_op(std::uint32_t host, std::int32_t pid, std::int64_t tid, std::int64_t begin_ns, bool bio = false) {
        if (ops_.full()) evict_oldest();
        Op &op = ops_.create();
        op.begin_ns = begin_ns;
        op.target = thread_key(host, pid);
        op.host = op.target_host = host;
        op.pid = pid;
        op.cgroup = s_.identities.cgroups.of_thread(host, pid, tid);
        if (s_.population.known()) {
            op.program_run = s_.population.run_of(host, pid, bio);
            s_.population.begun(op.serial, op.program_run != 0);
        }
        op.hard = true;
        return op;
    }
    std::uint64_t begin_child(Op &, std::uint32_t parent, std::uint32_t &child);
    std::uint32_t add_transition(Op &, Transition);
    void note_thread(const Passage &p, std::uint64_t ref) {
        if (s_.plan.behind && !p.spec.aside) keep_thread_point(p.who.host, p.t.tid, {p.t.ts_ns, ref, p.t.point});
    }
    void keep_thread_point(std::uint32_t host, std::int64_t tid, const ThreadPoint &);

    void open_io_window(Op &, std::uint32_t host);
    void close_io_window(Op &);
    void take_window(Op &, std::uint64_t ref, std::uint64_t gone_ref);
    void end_sync(Op &, std::int64_t ts_ns);
    void leave_sync(ThreadState &, const Op &next);

    void end_op(Op &, std::int64_t ts_ns, std::uint32_t order);
    void soften_end(Op &, std::int64_t ts_ns, std::uint32_t order);

    // Ops that ended, in order of the end events: (end, op ref).
    bool any_ended() const { return !ended_.empty(); }
    std::pair<std::int64_t, std::uint64_t> take_ended();
    // After this time the first ended op settles.
    std::int64_t settles_ns() const { return settles_ns_; }

  private:
    void evict_oldest();
    void next_settles() {
        settles_ns_ =
            ended_.empty() ? std::numeric_limits<std::int64_t>::max() : ended_.front().first + s_.plan.linger_ns;
    }

    Stitching &s_;
    std::function<void(Op &)> settle_;
    OpTable ops_;
    std::deque<std::pair<std::int64_t, std::uint64_t>> ended_;
    std::int64_t settles_ns_ = std::numeric_limits<std::int64_t>::max();
    std::vector<std::uint64_t> io_windows_;
    ThreadPoints thread_points_;
};

}  // namespace opline
