// SPDX-License-Identifier: MIT
// What is thrown in either thread reaches who asked for events, after all that came before it, and nobody waits for the
// other for ever.
#include <doctest/doctest.h>

#include <chrono>
#include <functional>
#include <random>
#include <stdexcept>
#include <thread>

#include "counting_sink.hpp"
#include "ctf/relay.hpp"

using namespace opline;

namespace {

// Of one event.
class OneStream {
  public:
    bool operator()(ctf::EventBatch &batch) {
        if (made == most) throw std::runtime_error("no more");
        batch.count = 1;
        batch.events[0] = event_;
        ++made;
        return true;
    }
    std::uint64_t made = 0, most = 1'000'000'000;

  private:
    Event event_{0, 0, 0, kNoCpu, 1, nullptr};
};

struct Limited final : CountingSink {
    Limited() { add_class({}); }
    void event(const Event &e) override {
        if (count == most) throw std::runtime_error("no room");
        CountingSink::event(e);
    }
    std::uint64_t most = 1'000'000'000;
};

}  // namespace

TEST_CASE("what the decoding thread throws comes behind all events that were decoded") {
    Limited consumer;
    OneStream stream;
    stream.most = 500;
    ctf::Relay relay([&](ctf::EventBatch &batch) { return stream(batch); }, consumer);
    CHECK_THROWS_WITH_AS(relay.deliver(1000), "no more", std::runtime_error);
    CHECK(consumer.count == 500);
    CHECK_FALSE(relay.deliver(1000));
    CHECK(consumer.count == 500);
}

TEST_CASE("nobody asks for more events") {
    Limited consumer;
    OneStream stream;
    ctf::Relay relay([&](ctf::EventBatch &batch) { return stream(batch); }, consumer);
    CHECK(relay.deliver(1));
    CHECK(consumer.count == 1);
}

TEST_CASE("what the consumer throws") {
    Limited consumer;
    consumer.most = 3;
    OneStream stream;
    ctf::Relay relay([&](ctf::EventBatch &batch) { return stream(batch); }, consumer);
    CHECK_THROWS_WITH_AS(relay.deliver(1000), "no room", std::runtime_error);
    CHECK(consumer.count == 3);
}

TEST_CASE("all batches arrive, whoever is slower at the time") {
    constexpr std::uint64_t kBatches = 40'000;
    std::mt19937 produces(1), consumes(2);
    // Now and then it takes as long as many batches.
    auto pause = [](std::mt19937 &random) {
        if (random() % 200 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
    };
    struct Slow final : CountingSink {
        std::function<void()> pause;
        void event(const Event &e) override {
            pause();
            in_order = in_order && e.ts_ns == static_cast<std::int64_t>(count);
            CountingSink::event(e);
        }
        bool in_order = true;
    } consumer;
    consumer.add_class({});
    consumer.pause = [&] { pause(consumes); };
    OneStream stream;
    ctf::Relay relay(
        [&](ctf::EventBatch &batch) {
            pause(produces);
            stream(batch);
            batch.events[0].ts_ns = static_cast<std::int64_t>(stream.made - 1);
            return stream.made != kBatches;
        },
        consumer);
    while (relay.deliver(100)) {}
    CHECK(consumer.count == kBatches);
    CHECK(consumer.in_order);
}
