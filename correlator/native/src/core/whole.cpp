// SPDX-License-Identifier: MIT
// Whole requests on their way into the block model.
#include "core/impl.hpp"

namespace opline {

Fate Core::Impl::take_steps(std::int64_t until_ns) {
    Fate fate = Fate::kContext;
    while (steps.next_ns() <= until_ns) {
        BlockEvent step = steps.take(current_host);
        last_ns = std::max(last_ns, step.ts_ns);
        name_thread(step);
        stitcher.advance(last_ns);
        identities.renumber(step, current_host);
        step.cgroup = identities.threads.cgroups.path(current_host, step.cgroup_number);
        block_at = {step.ts_ns, step.cpu};
        fate = block_step(step);
    }
    return fate;
}

// Who took the step, as known at its time: a record stands where the request was queued, and the thread that issued it
// may be told of between the two.
void Core::Impl::name_thread(BlockEvent &step) const {
    if (step.tid < 0) return;
    const RequestThread *known = threads.find(thread_key(current_host, step.tid));
    step.tid = known ? known->tid : -1;
    step.pid = known ? known->pid : -1;
    step.comm = known ? known->comm : 0;
}

Fate Core::Impl::whole(const BoundClass &cls, const Event &ev) {
    const RecordSlots &slots = *cls.record;
    if (cls.kind == ClassKind::kRequestThread) {
        threads[thread_key(current_host, slots.number(ev, RecordSlots::kKernelTid, -1))] = {
            static_cast<std::int32_t>(slots.number(ev, RecordSlots::kTid, -1)),
            static_cast<std::int32_t>(slots.number(ev, RecordSlots::kPid, -1)), names.of(ev, cls.comm_slot)};
        return Fate::kContext;
    }
    if (identities.threads.hosts.several()) blocks.here(current_host).whole();
    const RequestRecord r = record_of(slots, ev, identities.threads.hosts, current_host);
    if (cls.kind == ClassKind::kRequest) steps.request(r, current_host);
    else steps.bio(r, current_host);
    return take_steps(ev.ts_ns);
}

}  // namespace opline
