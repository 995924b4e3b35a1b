// SPDX-License-Identifier: MIT
// What events show of others that are missing though nobody counted them: halves of pairs, numbers of a collector's
// events. Of threads' states, requests and points others know (sched/sched.hpp, block/evidence.cpp, stages/ways.hpp).
#pragma once
#include "binding/classes.hpp"
#include "block/block.hpp"
#include "op/thread_points.hpp"
#include "sched/numbers.hpp"
#include "sched/pairs.hpp"

namespace opline {

struct Shown {
    Pairs pairs;
    Numbers numbers;

    void half(const BoundClass &cls, const Event &ev, std::uint32_t host) {
        const bool of_messenger = cls.half.on == Half::On::kMessenger;
        const bool of_thread = of_messenger || cls.half.on == Half::On::kThread || cls.half.on == Half::On::kShim;
        const std::int64_t where = of_thread ? number_in(ev, cls.tid_slot, -1) : static_cast<std::int64_t>(ev.cpu);
        if (where < 0 || (!of_thread && ev.cpu == kNoCpu)) return;
        if (of_messenger)
            return pairs.step(cls.half, thread_key(host, where), number_in(ev, cls.count_slot, -1), ev.ts_ns);
        const std::uint64_t within = cls.half.on == Half::On::kShim ? cls.half.pair : 0;
        pairs.passed(cls.half, thread_key(host, where) ^ static_cast<std::uint64_t>(cls.half.on) << 60 ^ within,
                     ev.ts_ns);
    }
    void plug(const BoundClass &cls, const Event &ev, std::uint32_t host) {
        const std::int64_t tid = number_in(ev, cls.tid_slot, -1);
        if (tid < 0) return;
        if (cls.block.blank.kind == BlockKind::kPlug) pairs.plugged(thread_key(host, tid), ev.ts_ns);
        else pairs.unplugged(thread_key(host, tid), ev.ts_ns);
    }
    void request(const BlockEvent &b, std::uint32_t host) {
        if (!pairs.follows_plugs()) return;
        const std::uint64_t place = mix64(b.sector ^ b.dev) | 1;
        const bool is_flush = rwbs::of_flush(b.rwbs);
        if (b.kind == BlockKind::kGetRq)
            pairs.allocated(thread_key(host, b.tid), place,
                            is_flush ? 0 : mix64(std::uint64_t{b.dev} << 32 | b.rwbs) | 1, b.ts_ns);
        else if ((b.kind == BlockKind::kRqInsert || b.kind == BlockKind::kRqIssue) && !is_flush)
            pairs.went_on(thread_key(host, b.tid), place, b.ts_ns, b.kind == BlockKind::kRqInsert);
    }
    template <class Missed>  // void(const Numbers::Hole &)
    void number(const BoundClass &cls, const Event &ev, std::uint32_t host, Missed missed) {
        const std::int64_t number = number_in(ev, cls.number.slot, 0);
        if (number <= 0 || number_in(ev, cls.number.cpu, -1) < 0) return;
        numbers.passed(counter_of(cls, ev, host), static_cast<std::uint64_t>(number), ev.ts_ns, missed);
    }
    // What a collector says that it has lost of a CPU's.
    void told(const BoundClass &cls, const Event &ev, std::uint32_t host) {
        if (number_in(ev, cls.number.cpu, -1) >= 0)
            numbers.told(counter_of(cls, ev, host), static_cast<std::uint64_t>(number_in(ev, cls.count_slot, 0)),
                         ev.ts_ns);
    }
    // Events are missing up to until_ns, and are counted.
    template <class Missed>
    void lost(std::int64_t until_ns, Missed missed) {
        pairs.lost(until_ns);
        numbers.end(missed);
    }

  private:
    static std::uint64_t counter_of(const BoundClass &cls, const Event &ev, std::uint32_t host) {
        return thread_key(host, number_in(ev, cls.number.cpu, 0)) ^ static_cast<std::uint64_t>(cls.number.collector)
                                                                        << 40;
    }
};

}  // namespace opline
