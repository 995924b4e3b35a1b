// SPDX-License-Identifier: MIT
// Where an event's class says which thread it is of. Recorders differ: contexts of LTTng, payload of collectors.
#pragma once
#include <cstdint>

#include "event/event.hpp"
#include "event/providers.hpp"
#include "model/plan.hpp"

namespace opline {

// Indices of ClassDecl::fields; kNoSlot: the class has no such field.
struct ThreadFields {
    std::int32_t tid = kNoSlot, pid = kNoSlot, comm = kNoSlot;
};

ThreadFields thread_fields(const ClassDecl &, const Providers &);

// From such a point on the thread works for an op or an open batch, which own the thread's bios.
inline bool claims_thread(const PointSpec &spec) {
    return spec.thread == ThreadRule::kEnter || spec.thread == ThreadRule::kSwitch || spec.sync == IoWindow::kBegin ||
           spec.batch_do != BatchDo::kNone;
}
// At a begin for the op; where the thread is claimed for ThreadStates::same_thread.
inline bool needs_name(const PointSpec &spec) {
    return spec.role == Role::kBegin || spec.role == Role::kSoftBegin || spec.ios || claims_thread(spec);
}

}  // namespace opline
