// SPDX-License-Identifier: MIT
// Decoded events on their way from the streams to the consumer: blocks of one stream's, batches of all streams' in merge order.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "event.hpp"

namespace opline::ctf {

// Events of one stream, in its order, with their slots one after the other.
class EventBlock {
  public:
    // For so many events, of which each has at most `most_slots`.
    EventBlock(std::size_t events, std::size_t most_slots) : events_(events + 1), slots_(events * most_slots + 1) {}
    void clear() { past_ = events_.data(), past_slots_ = slots_.data(); }
    bool empty() const { return past_ == events_.data(); }
    bool full() const { return past_ == &events_.back(); }
    // The next event's place and that of its slots; when they are written, those of the one after it.
    Event *next() const { return past_; }
    Event *last() { return &events_.back(); }
    Slot *next_slots() const { return past_slots_; }
    void grown(Event *past, Slot *past_slots) { past_ = past, past_slots_ = past_slots; }
    // What was written. Behind it stands an event at kNoTime, once it is closed.
    Event *begin() { return events_.data(); }
    Event *end() { return past_; }
    void close() { past_->ts_ns = kNoTime; }

  private:
    std::vector<Event> events_;
    std::vector<Slot> slots_;
    Event *past_ = nullptr;
    Slot *past_slots_ = nullptr;
};

struct Batch {
    static constexpr std::size_t kMost = 512;  // events

    struct Note {
        std::size_t before;  // the event in the batch that it comes before
        bool is_damage, packets;
        std::uint32_t stream;
        std::int64_t begin_ns, end_ns;
        std::uint64_t count;
        std::string why;
    };
    std::array<const Event *, kMost> events;
    std::size_t count = 0;  // of the events
    std::vector<Note> notes;
    std::vector<EventBlock *> spent;  // no later batch needs them
    std::uint64_t bytes_read = 0;     // from the files by then

    // All of it in its order.
    void replay(Consumer &) const;
};

// The blocks of all streams, and of the batches that are under way.
class BlockPool {
  public:
    BlockPool(std::size_t events, std::size_t most_slots) : events_(events), most_slots_(most_slots) {}
    EventBlock *take() {
        if (free_.empty()) {
            blocks_.push_back(std::make_unique<EventBlock>(events_, most_slots_));
            return blocks_.back().get();
        }
        EventBlock *out = free_.back();
        free_.pop_back();
        return out;
    }
    // The batch has been replayed: it is as new.
    void reclaim(Batch &batch) {
        free_.insert(free_.end(), batch.spent.begin(), batch.spent.end());
        batch.spent.clear();
        batch.notes.clear();
        batch.count = 0;
    }

  private:
    std::size_t events_, most_slots_;
    std::vector<std::unique_ptr<EventBlock>> blocks_;
    std::vector<EventBlock *> free_;
};

}  // namespace opline::ctf
