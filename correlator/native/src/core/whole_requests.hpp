// SPDX-License-Identifier: MIT
// Whole requests and bios as collectors hand them on, until their steps go into the block model.
#pragma once
#include <cstdint>

#include "base/flat_map.hpp"
#include "binding/classes.hpp"
#include "block/request_steps.hpp"
#include "identity/threads.hpp"

namespace opline {

class WholeRequests {
  public:
    // When the next step is; RequestSteps::kNone: none waits.
    std::int64_t next_ns() const { return steps_.next_ns(); }

    // Numbers and name of a thread of such records. `comm`: pool id.
    void thread(const RecordSlots &slots, const Event &ev, std::uint32_t host, std::uint32_t comm) {
        threads_[thread_key(host, slots.number(ev, RecordSlots::kKernelTid, -1))] = {
            static_cast<std::int32_t>(slots.number(ev, RecordSlots::kTid, -1)),
            static_cast<std::int32_t>(slots.number(ev, RecordSlots::kPid, -1)), comm};
    }
    void add(const BoundClass &cls, const Event &ev, const Hosts &hosts, std::uint32_t host) {
        const RequestRecord r = record_of(*cls.record, ev, hosts, host);
        if (cls.kind == ClassKind::kRequest) steps_.request(r, host);
        else steps_.bio(r, host);
    }
    // The next step and its host. The step's thread is the thread known at the step's time: a record stands at the Q of
    // its request, and the issuing thread may become known later.
    BlockEvent take(std::uint32_t &host) {
        BlockEvent step = steps_.take(host);
        if (step.tid < 0) return step;
        const Traced *known = threads_.find(thread_key(host, step.tid));
        step.tid = known ? known->tid : -1;
        step.pid = known ? known->pid : -1;
        step.comm = known ? known->comm : 0;
        return step;
    }

  private:
    struct Traced {
        std::int32_t tid, pid;
        std::uint32_t comm;
    };
    RequestSteps steps_;
    FlatMap<std::uint64_t, Traced> threads_;  // by host and the kernel's number
};

}  // namespace opline
