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

// Events of one stream, in its order. Their slots are one after the other, in memory that the caller owns.
class EventBlock {
  public:
    explicit EventBlock(std::size_t events) : events_(events + 1) {}
    void clear() { past_ = events_.data(); }
    bool empty() const { return past_ == events_.data(); }
    bool full() const { return past_ == &events_.back(); }
    // The next event's place and that of its slots; when they are written, those of the one after it.
    Event *next() const { return past_; }
    Event *last() { return &events_.back(); }
    Slot *next_slots() const { return past_slots_; }
    void grown(Event *past, Slot *past_slots) { past_ = past, past_slots_ = past_slots; }
    void go_on_at(Slot *slots) { past_slots_ = slots; }
    // What was written. Behind it stands an event at kNoTime, once it is closed.
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
        std::size_t before;  // the event in the batch that it comes before
        Gap gap;             // but for its words
        std::string why;
    };
    std::array<Event, kMost> events;
    std::size_t count = 0;
    std::vector<Note> notes;
    std::vector<Slot *> spent;     // room that no later batch needs
    std::uint64_t bytes_read = 0;  // from the files by then

    // All of it in its order.
    void replay(EventSink &) const;
};

// Room for the slots of all streams' events, those in batches that are under way included: pieces of two blocks' slots.
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
    // The batch has been replayed: it is as new.
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
