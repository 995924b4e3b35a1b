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
    // `produce` runs in a thread of its own; it fills a batch that was reclaimed, and says whether there are more.
    Relay(std::function<bool(EventBatch &)> produce, EventSink &consumer);
    ~Relay();
    Relay(const Relay &) = delete;
    Relay &operator=(const Relay &) = delete;

    // Whole batches, until there were at least `events`. False: that was all. Throws what the producer threw.
    bool deliver(std::uint64_t events);
    std::uint64_t bytes_read() const { return bytes_read_; }  // by what has been delivered

  private:
    static constexpr std::size_t kBatches = 64;
    static constexpr int kTurns = 40;  // given to other threads before it sleeps: to be woken takes longer
    // What one thread writes and the other looks at.
    struct alignas(128) Side {
        std::atomic<std::uint64_t> batches{0};  // that it has done with since the beginning
        std::atomic<bool> asleep{false};
    };
    void run(const std::function<bool(EventBatch &)> &produce);
    template <class Ready>
    void wait_until(Side &own, Ready);
    void wake(const Side &);

    // a ring: those that are filled and not taken are the consumer's, the others the producer's
    std::vector<std::unique_ptr<EventBatch>> batches_;
    EventSink &consumer_;
    Side filled_, taken_;
    std::atomic<bool> ended_{false}, unwanted_{false};
    std::mutex mutex_;  // of falling asleep
    std::condition_variable changed_;
    std::exception_ptr error_;  // of the producer, until it ended
    std::uint64_t bytes_read_ = 0;
    std::thread thread_;
};

}  // namespace opline::ctf
