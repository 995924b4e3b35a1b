// SPDX-License-Identifier: MIT
// From babeltrace2's event classes and fields to the core's declarations and slots.
#pragma once
#include <babeltrace2/babeltrace.h>

#include <cstdint>
#include <vector>

#include "event/event.hpp"

namespace opline::bt2 {

// Where a wanted field lies in an event, and how to read it.
struct FieldPath {
    enum class Part : std::uint8_t { kPayload, kCommonContext, kSpecificContext };
    enum class Read : std::uint8_t { kUnsigned, kSigned, kReal32, kReal64, kString, kBool, kBits, kLast, kNone };
    Part part = Part::kPayload;
    Read read = Read::kNone;
    std::vector<std::uint64_t> members;  // index in each structure on the way
};

struct EventClassState {
    ClassPlan plan;
    std::vector<FieldPath> paths;  // one per slot
};

// Declares the class to the consumer. Fields in the order payload, common context, specific context.
EventClassState declare(const bt_event_class *, Domain, EventSink &);
// Fills one slot per path.
void read_slots(const EventClassState &, const bt_event *, Slot *slots);

}  // namespace opline::bt2
