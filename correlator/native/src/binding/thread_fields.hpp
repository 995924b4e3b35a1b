// SPDX-License-Identifier: MIT
// Where an event's class says which thread it is of. Recorders differ: contexts of LTTng, payload of collectors.
#pragma once
#include <cstdint>

#include "event/event.hpp"

namespace opline {

// Indices of ClassDecl::fields; kNoSlot: the class does not say it.
struct ThreadFields {
    std::int32_t tid = kNoSlot, pid = kNoSlot, comm = kNoSlot;
};

ThreadFields thread_fields(const ClassDecl &);

}  // namespace opline
