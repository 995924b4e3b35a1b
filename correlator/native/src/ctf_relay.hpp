// SPDX-License-Identifier: MIT
// Hands events from the thread that decodes and merges them to the one that consumes them, in batches through a bounded queue.
// Calls arrive in the order in which they were made, so that the consumer can't tell the difference.
#pragma once
#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "event.hpp"

namespace opline::ctf {

class Relay {
  public:
    // `produce` runs in a thread of its own; it calls event() and the rest, and returns at the end or when event() says so. `slots`: how many
    // an event of each of the consumer's classes has.
    // `bytes_read`: how much has been read by now, asked in that thread.
    Relay(std::function<void(Relay &)> produce, std::function<std::uint64_t()> bytes_read, std::vector<std::uint32_t> slots);
    ~Relay();
    Relay(const Relay &) = delete;
    Relay &operator=(const Relay &) = delete;

    // The producer's side. False: nobody wants more.
    bool event(const Event &e) {
        const std::uint32_t slots = slots_of_[e.cls];
        if (filling_.count == kEvents || filling_.used + slots > filling_.slots.size()) {
            if (!pass_on()) return false;
        }
        filling_.events[filling_.count++] = e;
        std::copy_n(e.slots, slots, filling_.slots.data() + filling_.used);
        filling_.used += slots;
        return true;
    }
    void discarded(std::uint32_t stream, std::int64_t begin_ns, std::int64_t end_ns, std::uint64_t count, bool packets);
    void damaged(std::uint32_t stream, std::int64_t from_ns, const std::string &why);

    // The consumer's side: whole batches, until there were at least `events`. False: that was all. Throws what the producer threw.
    bool deliver(Consumer &, std::uint64_t events);
    std::uint64_t bytes_read() const { return bytes_read_; }  // by what has been delivered

  private:
    struct Note {
        std::size_t before;  // the event in the batch that it comes before
        bool is_damage, packets;
        std::uint32_t stream;
        std::int64_t begin_ns, end_ns;
        std::uint64_t count;
        std::string why;
    };
    static constexpr std::size_t kEvents = 1024;  // in a batch, at most
    struct Batch {
        std::vector<Event> events;
        std::vector<Slot> slots;  // of all events, one after the other
        std::size_t count = 0, used = 0;
        std::vector<Note> notes;
        std::uint64_t bytes_read = 0;
    };
    Batch empty_batch() const;
    bool pass_on();
    void replay(Consumer &, Batch &);

    const std::function<std::uint64_t()> read_so_far_;
    const std::vector<std::uint32_t> slots_of_;
    Batch filling_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Batch> ready_, spare_;
    bool ended_ = false, unwanted_ = false;
    std::exception_ptr error_;
    std::uint64_t bytes_read_ = 0;
    std::thread thread_;
};

}  // namespace opline::ctf
