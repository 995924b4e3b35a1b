// SPDX-License-Identifier: MIT
#include "ctf_relay.hpp"

#include <utility>

namespace opline::ctf {
namespace {

constexpr std::size_t kEventsPerBatch = 2048, kBatches = 8;

}  // namespace

Relay::Relay(std::function<void(Relay &)> produce, std::function<std::uint64_t()> bytes_read, std::vector<std::uint32_t> slots)
    : read_so_far_(std::move(bytes_read)), slots_of_(std::move(slots)) {
    thread_ = std::thread([this, produce = std::move(produce)] {
        std::exception_ptr error;
        try {
            produce(*this);
            pass_on();
        } catch (...) {
            error = std::current_exception();
        }
        const std::lock_guard<std::mutex> lock(mutex_);
        error_ = error;
        ended_ = true;
        changed_.notify_all();
    });
}

Relay::~Relay() {
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        unwanted_ = true;
        changed_.notify_all();
    }
    thread_.join();
}

bool Relay::event(const Event &e) {
    filling_.events.push_back(e);
    filling_.slots.insert(filling_.slots.end(), e.slots, e.slots + slots_of_[e.cls]);
    return filling_.events.size() < kEventsPerBatch || pass_on();
}

void Relay::discarded(std::uint32_t stream, std::int64_t begin_ns, std::int64_t end_ns, std::uint64_t count, bool packets) {
    filling_.notes.push_back({filling_.events.size(), false, packets, stream, begin_ns, end_ns, count, {}});
}

void Relay::damaged(std::uint32_t stream, std::int64_t from_ns, const std::string &why) {
    filling_.notes.push_back({filling_.events.size(), true, false, stream, from_ns, 0, 0, why});
}

// The batch goes to the consumer; false: it wants none.
bool Relay::pass_on() {
    filling_.bytes_read = read_so_far_();
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return unwanted_ || ready_.size() < kBatches; });
    if (unwanted_) return false;
    ready_.push_back(std::move(filling_));
    filling_ = Batch();
    if (!spare_.empty()) {
        filling_ = std::move(spare_.back());
        spare_.pop_back();
    }
    changed_.notify_all();
    return true;
}

void Relay::replay(Consumer &consumer, Batch &batch) {
    auto note = batch.notes.begin();
    const Slot *slots = batch.slots.data();
    auto tell = [&](std::size_t until) {
        for (; note != batch.notes.end() && note->before <= until; ++note) {
            if (note->is_damage) consumer.damaged(note->stream, note->begin_ns, note->why);
            else consumer.discarded(note->stream, note->begin_ns, note->end_ns, note->count, note->packets);
        }
    };
    for (std::size_t i = 0; i < batch.events.size(); ++i) {
        if (note != batch.notes.end()) tell(i);
        Event &e = batch.events[i];
        e.slots = slots;
        slots += slots_of_[e.cls];
        consumer.event(e);
    }
    tell(batch.events.size());
}

bool Relay::deliver(Consumer &consumer, std::uint64_t events) {
    for (std::uint64_t done = 0; done < events;) {
        Batch batch;
        {
            std::unique_lock<std::mutex> lock(mutex_);
            changed_.wait(lock, [&] { return ended_ || !ready_.empty(); });
            if (ready_.empty()) {
                if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
                return false;
            }
            batch = std::move(ready_.front());
            ready_.pop_front();
            changed_.notify_all();
        }
        replay(consumer, batch);
        done += batch.events.size();
        bytes_read_ = batch.bytes_read;
        batch.clear();
        const std::lock_guard<std::mutex> lock(mutex_);
        spare_.push_back(std::move(batch));
    }
    return true;
}

}  // namespace opline::ctf
