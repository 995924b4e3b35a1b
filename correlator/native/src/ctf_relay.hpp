// SPDX-License-Identifier: MIT
// Hands batches of events from the thread that decodes and merges them to the one that consumes them, through a bounded queue. Nothing is
// copied: who decodes writes into blocks that the batch refers to, and has them back when it has been consumed.
#pragma once
#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "ctf_batch.hpp"
#include "event.hpp"

namespace opline::ctf {

class Relay {
  public:
    // `produce` runs in a thread of its own; it fills a batch that was reclaimed, and says whether there are more. That thread helps the
    // consumer while there is no room for more.
    Relay(std::function<bool(Batch &)> produce, Consumer &consumer);
    ~Relay();
    Relay(const Relay &) = delete;
    Relay &operator=(const Relay &) = delete;

    // Whole batches, until there were at least `events`. False: that was all. Throws what the producer threw.
    bool deliver(std::uint64_t events);
    std::uint64_t bytes_read() const { return bytes_read_; }  // by what has been delivered

  private:
    static constexpr std::size_t kBatches = 16;
    void run(const std::function<bool(Batch &)> &produce);

    // A ring: those from taken_ to filled_ are the consumer's, the others the producer's.
    std::vector<std::unique_ptr<Batch>> batches_;
    Consumer &consumer_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::uint64_t filled_ = 0, taken_ = 0;
    bool ended_ = false, unwanted_ = false;
    std::exception_ptr error_;
    std::uint64_t bytes_read_ = 0;
    std::thread thread_;
};

}  // namespace opline::ctf
