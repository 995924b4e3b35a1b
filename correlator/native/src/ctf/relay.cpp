// SPDX-License-Identifier: MIT
#include "ctf/relay.hpp"

#include <utility>

namespace opline::ctf {

Relay::Relay(std::function<bool(EventBatch &)> produce, EventSink &consumer) : consumer_(consumer) {
    for (std::size_t i = 0; i < kBatches; ++i) batches_.push_back(std::make_unique<EventBatch>());
    thread_ = std::thread([this, produce = std::move(produce)] {
        try {
            run(produce);
        } catch (...) {
            error_ = std::current_exception();
        }
        ended_ = true;
        wake(taken_);
    });
}

Relay::~Relay() {
    unwanted_ = true;
    wake(filled_);
    thread_.join();
}

// The awaited value changes before wake(), and is checked after `asleep` is set: so a thread sees at least one of the
// two changes.
template <class Ready>
void Relay::wait_until(Side &own, Ready ready) {
    for (int turns = 0; !ready();) {
        if (turns++ < kTurns) {
            std::this_thread::yield();
            continue;
        }
        std::unique_lock<std::mutex> lock(mutex_);
        own.asleep = true;
        changed_.wait(lock, ready);
        own.asleep = false;
    }
}

void Relay::wake(const Side &other) {
    if (!other.asleep) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    changed_.notify_all();
}

void Relay::run(const std::function<bool(EventBatch &)> &produce) {
    std::uint64_t filled = 0;
    for (bool more = true; more;) {
        // A full queue gets no batch until half empty: a wake-up takes longer than the filling of a batch.
        if (filled - taken_.batches == kBatches)
            wait_until(filled_, [&] { return unwanted_ || filled - taken_.batches <= kBatches / 2; });
        if (unwanted_) return;
        more = produce(*batches_[filled % kBatches]);
        filled_.batches = ++filled;
        wake(taken_);
    }
}

bool Relay::deliver(std::uint64_t events) {
    for (std::uint64_t done = 0; done < events;) {
        std::uint64_t taken = taken_.batches;
        wait_until(taken_, [&] { return ended_ || filled_.batches != taken; });
        if (filled_.batches == taken) {
            if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
            return false;
        }
        const EventBatch &batch = *batches_[taken % kBatches];
        batch.replay(consumer_);
        done += batch.count;
        bytes_read_ = batch.bytes_read;
        taken_.batches = ++taken;
        if (filled_.batches - taken == kBatches / 2) wake(filled_);
    }
    return true;
}

}  // namespace opline::ctf
