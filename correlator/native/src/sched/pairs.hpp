// SPDX-License-Identifier: MIT
// Events that come in pairs, one after the other: the entry and the exit of a system call on its thread, of an
// interrupt on its CPU, of a call that the shim for Ceph sees (within which others may come). Where two of a kind
// follow each other, one of the other kind is missing. So is a thread's plug, where requests that it allocated are let
// go without one, or pile up without one; an unplug, where they go on while they are held back; and the waking of a
// messenger of Ceph, where it receives after it has sent.
#pragma once
#include <cstdint>
#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/flat_map.hpp"
#include "event/event.hpp"

namespace opline {

// Of a class of events: which half of which pair it is.
struct Half {
    enum class On : std::uint8_t { kNothing, kThread, kHardIrq, kSoftIrq, kShim, kMessenger };
    On on = On::kNothing;
    bool ends = false;
    std::uint32_t pair = 0;  // from 1; of kMessenger which of its steps
};

class Pairs {
  public:
    // By LTTng's name of the class; on kNothing: of no pair.
    Half half_of(std::string_view name);
    // `where`: the thread's or the CPU's key. What was open before the trace is not known, nor is it missing.
    void passed(const Half &, std::uint64_t where, std::int64_t ts_ns);
    // A messenger's thread woke for so many events of epoll (-1: not known), or sent or received a part of a message.
    void step(const Half &, std::uint64_t thread, std::int64_t events, std::int64_t ts_ns);
    // The trace has plugs, with their threads.
    void follow_plugs() { follows_plugs_ = true; }
    bool follows_plugs() const { return follows_plugs_; }
    // The thread allocated a request, of a place that is never 0; began to hold requests back; let them go. `kind`: of
    // the request, and its device; 0: a flush, which is not held back.
    void allocated(std::uint64_t thread, std::uint64_t place, std::uint64_t kind, std::int64_t ts_ns);
    void plugged(std::uint64_t thread, std::int64_t ts_ns);
    void unplugged(std::uint64_t thread, std::int64_t ts_ns);
    // It inserted a request that is no flush, or issued it.
    void went_on(std::uint64_t thread, std::uint64_t place, std::int64_t ts_ns, bool inserted);
    // Events are missing up to until_ns, which may be later than now.
    void lost(std::int64_t until_ns);
    // Events are missing from there on, for good.
    void lost_from(std::int64_t from_ns) { ends_ns_ = std::min(ends_ns_, from_ns); }
    std::uint64_t missing() const { return missing_; }

  private:
    std::uint32_t number_of(const std::string &both);
    bool knows(std::int64_t ts_ns) const { return ts_ns > begins_ns_ && ts_ns <= ends_ns_; }
    static constexpr std::uint32_t kNone = ~std::uint32_t{0};
    struct Seen {
        bool begin = false, end = false;  // a trace may have one of the two alone
        bool no_end = false;              // it does not return, or as something else
    };
    std::unordered_map<std::string, std::uint32_t> numbers_;  // by what both halves are called
    std::vector<Seen> seen_{1};                               // by pair
    FlatMap<std::uint64_t, std::uint32_t> open_;              // by where: its pair, kNone between two
    struct Plug {
        bool seen = false;                      // an event of the pair: what was before is known
        bool open = false;                      // a plug without an unplug
        bool allocated = false;                 // a request, since the last unplug
        std::uint64_t last = 0, last_kind = 0;  // place and kind of the request that it allocated last
        std::uint64_t held = 0;                 // of the first one that the last plug held back, until it goes on
        std::uint64_t first = 0;                // of those that it has allocated and that have not gone on, 0: none
        std::uint64_t kind = 0;                 // of that one
        bool is_held = false;                   // a plug came since then
    };
    static void pile_begins(Plug &);
    void pile_ends(std::uint64_t thread, Plug &);
    struct Messenger {
        std::int64_t events = -1;  // for which it woke
        bool sent = false;         // since then
    };
    FlatMap<std::uint64_t, Messenger> messengers_;  // by thread
    // So many in turn are a rule: that what a plug held back goes on after an unplug is one of the kernel's, that a
    // thread has a plug for its requests one of what it does.
    static constexpr std::uint64_t kUnplugsInTurn = 16, kPlugsInTurn = 32;
    bool follows_plugs_ = false;
    FlatMap<std::uint64_t, Plug> plugs_;  // by thread
    // How many plugs in turn ended with an unplug, by what came next: the first request was issued, or inserted.
    std::array<std::uint64_t, 2> in_turn_{};
    FlatMap<std::uint64_t, std::uint64_t> held_in_turn_;  // by thread and kind: piles that a plug held back
    std::int64_t begins_ns_ = kNoTime, ends_ns_ = std::numeric_limits<std::int64_t>::max();
    std::uint64_t missing_ = 0;
};

}  // namespace opline
