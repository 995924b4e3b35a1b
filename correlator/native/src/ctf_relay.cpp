// SPDX-License-Identifier: MIT
#include "ctf_relay.hpp"

#include <utility>

namespace opline::ctf {

Relay::Relay(std::function<bool(Batch &)> produce, Consumer &consumer) : consumer_(consumer) {
    consumer.expect_help();
    for (std::size_t i = 0; i < kBatches; ++i) batches_.push_back(std::make_unique<Batch>());
    thread_ = std::thread([this, produce = std::move(produce)] {
        std::exception_ptr error;
        try {
            run(produce);
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

void Relay::run(const std::function<bool(Batch &)> &produce) {
    for (bool more = true; more;) {
        {
            std::unique_lock<std::mutex> lock(mutex_);
            // Once the queue is full it is left alone until it is half empty: to wake a thread takes longer than to fill a batch.
            auto go_on = [&] { return unwanted_ || filled_ - taken_ <= kBatches / 2; };
            bool helps = filled_ - taken_ == kBatches;
            while (helps && !go_on()) {
                lock.unlock();
                helps = consumer_.help();
                lock.lock();
                if (!helps) changed_.wait(lock, go_on);
            }
            if (unwanted_) return;
        }
        more = produce(*batches_[filled_ % kBatches]);
        const std::lock_guard<std::mutex> lock(mutex_);
        if (filled_++ == taken_) changed_.notify_all();
    }
}

bool Relay::deliver(std::uint64_t events) {
    for (std::uint64_t done = 0; done < events;) {
        {
            std::unique_lock<std::mutex> lock(mutex_);
            auto go_on = [&] { return ended_ || filled_ != taken_; };
            while (!go_on()) {
                lock.unlock();
                const bool helped = consumer_.help();
                lock.lock();
                if (!helped) changed_.wait(lock, go_on);
            }
            if (filled_ == taken_) {
                if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
                return false;
            }
        }
        const Batch &batch = *batches_[taken_ % kBatches];
        batch.replay(consumer_);
        done += batch.count;
        bytes_read_ = batch.bytes_read;
        const std::lock_guard<std::mutex> lock(mutex_);
        if (filled_ - ++taken_ == kBatches / 2) changed_.notify_all();
    }
    return true;
}

}  // namespace opline::ctf
