// SPDX-License-Identifier: MIT
// What the kernel says of threads' states, and what threads waited for.
#pragma once
#include <cstdint>

#include "base/flat_map.hpp"
#include "binding/classes.hpp"
#include "block/block.hpp"
#include "core/common.hpp"
#include "link/linking.hpp"
#include "op/op_table.hpp"
#include "sched/sched.hpp"
#include "waits/wait_chains.hpp"

namespace opline {

class KernelStates {
  public:
    KernelStates(Common &common, OpTable &ops) : waits(timelines, common.strings), common_(common), ops_(ops) {}
    KernelStates(const KernelStates &) = delete;

    SchedTimelines timelines;
    WaitChains waits;

    // The events come from a collector.
    void collected() { from_collector_ = true; }
    // The trace has none so far: nothing is known of any thread.
    bool none() const { return events_ == 0; }
    const SchedTimelines *known() const { return none() ? nullptr : &timelines; }

    // A switch, a wake-up, or an event that stands for both.
    void event(const BoundClass &, const Event &);
    // The trace also has waits of some threads outside the recorded processes, as long as the recorder follows these
    // threads.
    void follow(const BoundClass &, const Event &);
    // The thread woken by a completion may have waited for the request.
    void request_ended(const Request &, const Flush *);

    // Whether a loss in this stream can be a loss of such events.
    bool in_stream(std::uint32_t stream) const;
    void lost(std::int64_t until_ns) { timelines.lost(until_ns), waits.lost(); }
    void lost_from(std::int64_t begin_ns) { timelines.lost_from(begin_ns); }

  private:
    // so many changes of threads' states until the oldest are looked for
    static constexpr std::uint64_t kChanges = 1u << 16;
    void forget_old();

    Common &common_;
    OpTable &ops_;
    FlatMap<std::uint64_t, std::int64_t> followed_;  // threads besides the recorded processes', by host and number
    std::uint64_t events_ = 0;
    std::uint32_t stream_ = 0;  // the first stream with such events
    bool from_collector_ = false;
};

}  // namespace opline
