// SPDX-License-Identifier: MIT
// What is thrown in either thread reaches who asked for events, after all that came before it, and nobody waits for the other for ever.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <random>
#include <stdexcept>
#include <thread>

#include "counting_consumer.hpp"
#include "ctf_relay.hpp"

using namespace opline;

namespace {

// Set once, awaited by another thread.
class Flag {
  public:
    void set() {
        const std::lock_guard<std::mutex> lock(mutex_);
        set_ = true;
        changed_.notify_all();
    }
    void wait() {
        std::unique_lock<std::mutex> lock(mutex_);
        changed_.wait(lock, [this] { return set_; });
    }

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    bool set_ = false;
};

// Of one event.
class OneStream {
  public:
    bool operator()(ctf::Batch &batch) {
        batch.count = 1;
        batch.events[0] = event_;
        ++made;
        return true;
    }
    std::uint64_t made = 0;

  private:
    Event event_{{0, 0}, {0, kNoCpu}, 1, nullptr};
};

class Helper final : public CountingConsumer {
  public:
    Helper() { add_class({}); }
    // The first event is not done with until the other thread has come to help, and that has failed.
    void event(const Event &e) override {
        if (events == 0 && waits) helped.wait();
        CountingConsumer::event(e);
    }
    bool help() override {
        if ((std::this_thread::get_id() == consumes) != own) return false;
        helped.set();
        throw std::runtime_error("no help");
    }
    bool waits = true, own = false;  // own: it is the consumer's own thread that fails
    Flag helped;
    const std::thread::id consumes = std::this_thread::get_id();
};

}  // namespace

TEST_CASE("what the decoding thread throws while it helps comes behind all events that were decoded") {
    Helper consumer;
    OneStream stream;
    ctf::Relay relay([&](ctf::Batch &batch) { return stream(batch); }, consumer);
    CHECK_THROWS_WITH_AS(relay.deliver(1000), "no help", std::runtime_error);
    CHECK(consumer.events > 1);
    CHECK(consumer.events == stream.made);
    CHECK_FALSE(relay.deliver(1000));
    CHECK(consumer.events == stream.made);
}

TEST_CASE("the same, where nobody asks for more events") {
    Helper consumer;
    OneStream stream;
    ctf::Relay relay([&](ctf::Batch &batch) { return stream(batch); }, consumer);
    CHECK(relay.deliver(1));
    CHECK(consumer.events == 1);
}

TEST_CASE("what the consumer's own thread throws while it waits for events") {
    Helper consumer;
    consumer.own = true;
    ctf::Relay relay(
        [&](ctf::Batch &) {
            consumer.helped.wait();
            return true;
        },
        consumer);
    CHECK_THROWS_WITH_AS(relay.deliver(1), "no help", std::runtime_error);
    CHECK(consumer.events == 0);
}

TEST_CASE("all batches arrive, whoever is slower at the time") {
    constexpr std::uint64_t kBatches = 40'000;
    std::mt19937 produces(1), consumes(2);
    // Now and then it takes as long as many batches.
    auto pause = [](std::mt19937 &random) {
        if (random() % 200 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
    };
    struct Slow final : CountingConsumer {
        std::function<void()> pause;
        void event(const Event &e) override {
            pause();
            in_order = in_order && e.ts_ns == static_cast<std::int64_t>(events);
            CountingConsumer::event(e);
        }
        bool in_order = true;
    } consumer;
    consumer.add_class({});
    consumer.pause = [&] { pause(consumes); };
    OneStream stream;
    ctf::Relay relay(
        [&](ctf::Batch &batch) {
            pause(produces);
            stream(batch);
            batch.events[0].ts_ns = static_cast<std::int64_t>(stream.made - 1);
            return stream.made != kBatches;
        },
        consumer);
    while (relay.deliver(100)) {
    }
    CHECK(consumer.events == kBatches);
    CHECK(consumer.in_order);
}

TEST_CASE("what decoding throws comes behind the events before it") {
    Helper consumer;
    consumer.waits = false;
    OneStream stream;
    ctf::Relay relay(
        [&](ctf::Batch &batch) {
            if (stream.made == 3) throw std::runtime_error("no events");
            return stream(batch);
        },
        consumer);
    CHECK_THROWS_WITH_AS(relay.deliver(1000), "no events", std::runtime_error);
    CHECK(consumer.events == 3);
}
