// SPDX-License-Identifier: MIT
// Events of a feed on their way to the consumer, which gets them in batches.
#pragma once
#include <array>
#include <cstddef>

#include "event/event.hpp"

namespace opline::feed {

template <std::size_t kMostSlots>  // of an event
class EventBuffer {
  public:
    explicit EventBuffer(EventSink &to) : to_(to) {}
    // Room for the slots of the next event.
    Slot *slots() { return &slots_[ready_ * kMostSlots]; }
    void add(const Event &event) {
        batch_[ready_] = event;
        if (++ready_ == kBatch) flush();
    }
    // Sends the buffered events to the consumer: needed before anything else with a place among the events.
    void flush() {
        if (ready_) to_.events(batch_.data(), batch_.data() + ready_);
        ready_ = 0;
    }

  private:
    static constexpr std::size_t kBatch = 256;
    EventSink &to_;
    std::array<Event, kBatch> batch_;
    std::array<Slot, kBatch * kMostSlots> slots_;
    std::size_t ready_ = 0;
};

}  // namespace opline::feed
