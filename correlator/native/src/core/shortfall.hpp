// SPDX-License-Identifier: MIT
// Events that are lost, as readers, tracers, collectors and other events tell.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "binding/classes.hpp"
#include "core/common.hpp"
#include "core/core.hpp"
#include "core/holes.hpp"
#include "core/kernel_states.hpp"
#include "core/lost_ends.hpp"
#include "link/linker.hpp"
#include "output/run_tables.hpp"
#include "sched/numbers.hpp"
#include "stitch/stitcher.hpp"

namespace opline {

struct Damage {
    std::string stream;
    std::int64_t from_ns;  // kNoTime: not known
    std::string why;
};

struct ShortfallCounts {
    std::uint64_t discarded_events = 0, discarded_packets = 0, discarded_unknown = 0, collector_lost = 0;
    std::uint64_t streams_missing = 0;  // known from events
    std::uint64_t events_missing = 0;   // a lower bound, known from other events
    std::vector<Damage> damages;
};

class Shortfall {
  public:
    Shortfall(Common &common, Stitcher &stitcher, Linker &linker, KernelStates &states, RunTables &tables)
        : common_(common), stitcher_(stitcher), linker_(linker), states_(states), tables_(tables) {}

    const ShortfallCounts &counts() const { return counts_; }
    // An op of the time may miss its first or last event.
    const LostEnds &ends() const { return ends_; }

    // Before the first event.
    void add_stream(const StreamDecl &decl) { ends_.add_stream(decl); }
    void know(const KnownStreams &);
    void missing(std::string_view stream, Domain, std::int64_t begin_ns, std::int64_t end_ns, std::uint64_t packets);
    void lost_anywhere(std::int64_t begin_ns, std::int64_t end_ns);

    void discarded(const Gap &);
    void damaged(const Gap &);
    // An event numbered by its collector; an event with a collector's count of losses; the last event.
    void number_passed(const BoundClass &, const Event &);
    void collector_told(const BoundClass &, const Event &);
    void last_number();
    // A point of an op is in the stream.
    void point(std::uint32_t stream, bool numbered) { ends_.point(stream, numbered); }
    // The kernel of the current host ran something on the CPU.
    void cpu_named(std::int64_t cpu);
    // Necessary steps in the interval are missing in the trace. `of`: with a known request only the request's owners
    // wait for the missing completion; all other work is whole.
    void steps_missing(std::optional<std::uint32_t> dev, std::int64_t begin_ns, std::int64_t end_ns,
                       std::uint64_t count, const Request *of);

  private:
    static constexpr std::uint32_t kMostCpus = 1u << 16;
    void lost_in(std::uint32_t stream, std::int64_t begin_ns, std::int64_t end_ns);
    // The collector and the CPU of the event's number.
    std::uint64_t counter_of(const BoundClass &, const Event &) const;
    auto hole_found() {
        return [this](const Numbers::Hole &h) {
            linker_.discarded(h.begin_ns, h.end_ns), ends_.lost_by_number(h.begin_ns, h.end_ns), holes_.add(h);
        };
    }

    Common &common_;
    Stitcher &stitcher_;
    Linker &linker_;
    KernelStates &states_;
    RunTables &tables_;
    ShortfallCounts counts_;
    LostEnds ends_;
    Numbers numbers_;
    Holes holes_;
    // of kernel streams, by host; for a host without an entry nothing is known
    FlatMap<std::uint32_t, std::vector<bool>> cpus_;
};

}  // namespace opline
