// SPDX-License-Identifier: MIT
// Hands batches of events from the thread that decodes and merges them to the one that consumes them, through a bounded
// queue. The room of their slots is free again when the batch has been consumed.
#pragma once
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "ctf/batch.hpp"
#include "event/event.hpp"

namespace opline::ctf {

class Relay {
  public:
    // `produce` runs in a separate thread, fills a reclaimed batch, and returns whether more follow.
    Relay(std::function<bool(EventBatch &)> produce, EventSink &consumer);
    ~Relay();
    Relay(const Relay &) = delete;
    Relay &operator=(const Relay &) = delete;

    // Delivers whole batches with at least `events` events. False: the end. Rethrows the producer's exception.
    bool deliver(std::uint64_t events);
    std::uint64_t bytes_read() const { return bytes_read_; }  // by the delivered batches

  private:
    static constexpr std::size_t kBatches = 64;
    static constexpr int kTurns = 40;  // yields before sleeping: a wake-up takes longer
    // Written by one thread and read by the other.
    struct alignas(128) Side {
        std::atomic<std::uint64_t> batches{0};  // finished batches since the begin
        std::atomic<bool> asleep{false};
    };
    void run(const std::function<bool(EventBatch &)> &produce);
    template <class Ready>
    void wait_until(Side &own, Ready);
    void wake(const Side &);

    // a ring: filled and not taken batches belong to the consumer, the others to the producer
    std::vector<std::unique_ptr<EventBatch>> batches_;
    EventSink &consumer_;
    Side filled_, taken_;
    std::atomic<bool> ended_{false}, unwanted_{false};
    std::mutex mutex_;  // of falling asleep
    std::condition_variable changed_;
    std::exception_ptr error_;  // of the producer, before its end
    std::uint64_t bytes_read_ = 0;
    std::thread thread_;
};

}  // namespace opline::ctf
