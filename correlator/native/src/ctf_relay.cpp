// SPDX-License-Identifier: MIT
#include "ctf_relay.hpp"

#include <utility>

namespace opline::ctf {
namespace {

constexpr std::size_t kBatches = 4, kSlotsPerEvent = 6;  // a batch is full of slots as well, where events have more

}  // namespace

Relay::Relay(std::function<void(Relay &)> produce, std::function<std::uint64_t()> bytes_read, std::vector<std::uint32_t> slots)
    : read_so_far_(std::move(bytes_read)), slots_of_(std::move(slots)) {
    filling_ = empty_batch();
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

Relay::Batch Relay::empty_batch() const {
    const std::size_t most = slots_of_.empty() ? 0 : *std::max_element(slots_of_.begin(), slots_of_.end());
    Batch out;
    out.events.resize(kEvents);
    out.slots.resize(std::max(most, kEvents * std::min(most, kSlotsPerEvent)));
    return out;
}

void Relay::discarded(std::uint32_t stream, std::int64_t begin_ns, std::int64_t end_ns, std::uint64_t count, bool packets) {
    filling_.notes.push_back({filling_.count, false, packets, stream, begin_ns, end_ns, count, {}});
}

void Relay::damaged(std::uint32_t stream, std::int64_t from_ns, const std::string &why) {
    filling_.notes.push_back({filling_.count, true, false, stream, from_ns, 0, 0, why});
}

// The batch goes to the consumer; false: it wants none.
bool Relay::pass_on() {
    filling_.bytes_read = read_so_far_();
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return unwanted_ || ready_.size() < kBatches; });
    if (unwanted_) return false;
    ready_.push_back(std::move(filling_));
    const bool another = spare_.empty();
    if (!another) {
        filling_ = std::move(spare_.back());
        spare_.pop_back();
    }
    changed_.notify_all();
    lock.unlock();
    if (another) filling_ = empty_batch();
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
    for (std::size_t i = 0; i < batch.count; ++i) {
        if (note != batch.notes.end()) tell(i);
        Event &e = batch.events[i];
        e.slots = slots;
        slots += slots_of_[e.cls];
        consumer.event(e);
    }
    tell(batch.count);
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
        done += batch.count;
        bytes_read_ = batch.bytes_read;
        batch.notes.clear();
        batch.count = batch.used = 0;
        const std::lock_guard<std::mutex> lock(mutex_);
        spare_.push_back(std::move(batch));
    }
    return true;
}

}  // namespace opline::ctf
