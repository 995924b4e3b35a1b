// SPDX-License-Identifier: MIT
// What ops were given before its time. Events that go along with another (Alongs) are given to its op together with it, long before their turn
// in merge order, and mostly nobody can tell: who asks for an op in between sees it as it is then, and what it was given too early
// comes back to where it belongs.
#pragma once
#include <cstdint>
#include <limits>
#include <queue>
#include <vector>

#include "event.hpp"
#include "op.hpp"

namespace opline {

class Ahead {
  public:
    Ahead() = default;
    Ahead(const Ahead &) = delete;  // what comes back is ordered by this one's streams
    Ahead &operator=(const Ahead &) = delete;
    // In the order of their ids; `kind`: of those that may go along with others, else nullptr.
    void add_class(KnownKind *kind) { kinds_.push_back(kind); }
    void add_stream() { given_.emplace_back(); }
    // Of each stream its place among events of equal times.
    void rank(std::vector<std::uint32_t> ranks) { ranks_ = std::move(ranks); }

    // The event that is at hand, and the largest time until then.
    void now(std::int64_t last_ns, std::uint32_t stream) {
        now_ns_ = last_ns;
        now_stream_ = stream;
    }
    // The op got the first of what goes along with an event, until last_ns, and nothing else since that event.
    void give(Op &op, std::int64_t last_ns, const Event &event, const Alongs &with, std::uint32_t count) {
        op.ahead_ns = last_ns;
        op.ahead_in = event.stream;
        given_[event.stream] = {op.serial, event, &with, count, static_cast<std::uint32_t>(op.transitions.size())};
    }
    // Whoever asks for an op calls this first.
    [[gnu::always_inline]] void see(Op &op) {
        if (op.ahead_ns >= now_ns_) hold_back(op);
    }

    // What goes along with an event, from `first` on, comes back: its op can't be given it.
    void give_back(const Event &event, const Alongs &with, std::uint32_t first, std::uint32_t past);
    // Before that time nothing is to be taken back.
    std::int64_t back_ns() const { return back_ns_; }
    // The first of what came back, if its turn is before the event's. False: it is not, or there is nothing. Its slots are valid until that of the next event
    // of its stream.
    bool take_back(const Event &before, std::int64_t last_ns, Event &out);

  private:
    struct Given {
        std::uint64_t serial = 0;
        Event event{};
        const Alongs *with = nullptr;
        std::uint32_t count = 0, size = 0;  // size: of the op's list then
    };
    struct Back {
        Event event;
        std::uint32_t place;  // among those that go along with one event: no stream has others here
    };
    struct Later {
        const Ahead *self;
        bool operator()(const Back &a, const Back &b) const;
    };
    bool before(std::int64_t a_ns, std::uint32_t a, std::int64_t b_ns, std::uint32_t b) const { return a_ns != b_ns ? a_ns < b_ns : ranks_[a] < ranks_[b]; }
    [[gnu::noinline]] void hold_back(Op &);

    static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
    std::int64_t now_ns_ = kNoTime + 1, back_ns_ = kNever;
    std::uint32_t now_stream_ = 0;
    std::vector<KnownKind *> kinds_;
    std::vector<Given> given_;  // by stream: what was, last
    std::vector<std::uint32_t> ranks_;
    std::priority_queue<Back, std::vector<Back>, Later> back_{Later{this}};
};

}  // namespace opline
