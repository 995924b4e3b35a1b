// SPDX-License-Identifier: MIT
// I/Os of a ring: when the application has taken the completion of those that have events of their own; when those of
// the others are done whose bios another thread queues. See stitch/ios.hpp, and docs/internals/model.md, "I/Os that
// outlive their call".
#include <algorithm>

#include "stitch/async_ios.hpp"

namespace opline {

// The ring's completions are in order, as are the I/Os in `done`. A lower number than before belongs to a new ring.
void AsyncIos::take_up_to(IoQueue &q, std::uint32_t taken) {
    auto reaches = [](std::uint32_t number, std::uint32_t other) {
        return static_cast<std::int32_t>(number - other) >= 0;
    };
    if (q.taken && !reaches(taken, *q.taken)) complete_all(q);
    q.taken = taken;
    while (!q.done.empty()) {
        Op *op = ops_.find(q.done.front());
        if (op && op->state == OpState::kOpen) {
            if (!reaches(taken, op->io.posted)) return;
            end_at_completion(*op, &q.returned);
        }
        q.done.pop_front();
    }
}

// Keeps the I/Os in flight, at most the `most` youngest. An older I/O without a bio of the submitting thread ends: no
// event in the trace tells its completion. (A worker, the polling thread or the block layer queued the bio, or the data
// was in memory.)
void AsyncIos::forget_done(IoQueue &q, std::size_t most) {
    auto over = [this](std::uint64_t ref) {
        const Op *op = ops_.find(ref);
        return !op || op->state != OpState::kOpen || op->io.done;
    };
    q.in_flight.erase(std::remove_if(q.in_flight.begin(), q.in_flight.end(), over), q.in_flight.end());
    const std::size_t surplus = q.in_flight.size() - std::min(q.in_flight.size(), most);
    const auto kept = q.in_flight.begin() + static_cast<std::ptrdiff_t>(surplus);
    for (auto ref = q.in_flight.begin(); ref != kept; ++ref) {
        Op *op = ops_.find(*ref);
        if (op->io.data) continue;
        op->io.end_untold = true;
        ++s_.counts.ends_untold;
        end_io(*op, op->transitions.last_ns(), op->transitions.last_order());
    }
    q.in_flight.erase(q.in_flight.begin(), kept);
    q.look_at = std::max(IoQueue::kLookAtFirst, 2 * q.in_flight.size());
}

// The call returned because the awaited number of completions was there. If no more I/Os were in flight, all of them
// are done by now.
void AsyncIos::end_waited_for(IoQueue &q, const IoCall &call, Transition t) {
    forget_done(q, IoQueue::kMostInFlight);
    if (static_cast<std::int64_t>(q.in_flight.size()) > call.least) return;
    t = taken_at(t, reaped_);
    for (const auto ref : q.in_flight)
        if (Op *op = ops_.find(ref); !op->io.data) end_io(*op, t.ts_ns, lives_.add_transition(*op, t));
    forget_done(q, IoQueue::kMostInFlight);
}

}  // namespace opline
