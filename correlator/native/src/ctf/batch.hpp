// SPDX-License-Identifier: MIT
// Decoded events on their way from the streams to the consumer: blocks of one stream's, batches of all streams' in
// merge order. A batch's events lie side by side, so that who is on another processor has them without waiting for
// each; slots stay where they were decoded.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "event/event.hpp"

namespace opline::ctf {

// Events of one stream, in order. The slots lie one after the other in the caller's memory.
class EventBlock {
  public:
    explicit EventBlock(std::size_t events) : events_(events + 1) {}
    void clear() { past_ = events_.data(); }
    bool empty() const { return past_ == events_.data(); }
    bool full() const { return past_ == &events_.back(); }
    // The places of the next event and of its slots. grown() moves both, after the event is written.
    Event *next() const { return past_; }
    Event *last() { return &events_.back(); }
    Slot *next_slots() const { return past_slots_; }
    void grown(Event *past, Slot *past_slots) { past_ = past, past_slots_ = past_slots; }
    void go_on_at(Slot *slots) { past_slots_ = slots; }
    // The written events. After close(), an event at kNoTime follows the last one.
    Event *begin() { return events_.data(); }
    Event *end() { return past_; }
    void close() { past_->ts_ns = kNoTime; }

  private:
    std::vector<Event> events_;
    Event *past_ = nullptr;
    Slot *past_slots_ = nullptr;
};

struct EventBatch {
    static constexpr std::size_t kMost = 512;  // events

    struct Note {
        std::size_t before;  // the batch's event right after the gap
        Gap gap;             // without the text
        std::string why;
    };
    std::array<Event, kMost> events;
    std::size_t count = 0;
    std::vector<Note> notes;
    std::vector<Slot *> spent;     // slots free after this batch
    std::uint64_t bytes_read = 0;  // from the files by then

    // Calls the sink with the whole batch, in order.
    void replay(EventSink &) const;
};

// Memory for the slots of all streams' events, batches in progress included: pieces of two blocks' slots.
class SlotPool {
  public:
    // A block needs so many slots at most.
    explicit SlotPool(std::size_t block) : block_(block) {}
    std::size_t size() const { return 2 * block_; }  // of a piece
    // Whether a block's slots can go on there in the piece.
    bool fits(const Slot *piece, const Slot *next) const {
        return static_cast<std::size_t>(piece + size() - next) >= block_;
    }
    Slot *take() {
        if (free_.empty()) return all_.emplace_back(new Slot[size()]).get();
        Slot *out = free_.back();
        free_.pop_back();
        return out;
    }
    // The batch has been replayed: empties the batch.
    void reclaim(EventBatch &batch) {
        free_.insert(free_.end(), batch.spent.begin(), batch.spent.end());
        batch.spent.clear();
        batch.notes.clear();
        batch.count = 0;
    }

  private:
    std::size_t block_;
    std::vector<std::unique_ptr<Slot[]>> all_;
    std::vector<Slot *> free_;
};

}  // namespace opline::ctf
