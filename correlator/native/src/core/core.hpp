// SPDX-License-Identifier: MIT
// The core: front ends push classes, streams and events in merge order; tables come out in chunks.
// Not thread-safe; one core per correlation. No printing; errors are thrown as std::runtime_error with one clear line.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/strings.hpp"
#include "base/table.hpp"
#include "block/block.hpp"
#include "event/event.hpp"
#include "event/ledger.hpp"
#include "output/csv/op_csv.hpp"

namespace opline {

struct Plan;

// Facts about a host's streams, known before reading.
struct KnownStreams {
    // Bytes of a channel that cannot be decoded, in [begin_ns, end_ns] (kNoTime: an open end). The gap itself comes
    // later, as soon as reading meets these bytes: by then ops of that time are settled.
    struct Unreadable {
        Domain domain;
        std::string channel;
        std::int64_t begin_ns, end_ns;
    };
    std::string host;
    // The CPUs of the kernel's streams. A CPU named by events and missing in this list has lost its stream.
    std::vector<std::uint32_t> kernel_cpus;
    std::vector<Unreadable> unreadable;
};

class Core final : public EventSink {
  public:
    // plan_json: the compiled model (docs/internals/stitching.md, "The plan"). Throws std::runtime_error.
    explicit Core(const std::string &plan_json);
    explicit Core(Plan);
    ~Core() override;
    Core(const Core &) = delete;
    Core &operator=(const Core &) = delete;

    ClassPlan add_class(const ClassDecl &) override;
    std::uint32_t add_stream(const StreamDecl &) override;
    // Events with a time of their own (time_slot) before the last event's time are counted and still applied.
    void event(const Event &ev) { events(&ev, &ev + 1); }
    void name_threads(Event *first, Event *past) override;
    void events(const Event *first, const Event *past) override;
    // Ops that overlap the gap are tainted; for damage, ops that continue after its begin.
    void gap(const Gap &) override;
    bool finish() override;
    // Before the first event: the stream's events in [begin_ns, end_ns] (kNoTime: an open end) are missing; packets 0:
    // unknown number.
    void missing(std::string_view stream, Domain, std::int64_t begin_ns, std::int64_t end_ns, std::uint64_t packets);
    // Before the first event: facts about a host's streams.
    void know(const KnownStreams &);

    // Fills only these tables; all other results stay the same. Before the first event. Throws std::runtime_error. With
    // "sched": adds the threads' states in the stages; otherwise sched events are not decoded.
    void keep_tables(const std::vector<std::string> &names);
    // Feeds `csv`, which must outlive the core, instead of any table; incomplete ops only with `all`. Before the first
    // event.
    void write_csv(OpCsv &csv, bool all);
    // Keeps statistics per stage of complete ops (statistics/op_statistics.hpp); tainted ops only with `tainted`; if
    // `classes` has names, only these classes. Before any stream.
    void keep_statistics(bool tainted, std::vector<std::string> classes, std::vector<std::string> without);
    // Statistics and CSV then have the ops of all programs, even in a recording that tells its processes. Before the
    // first event.
    void count_all_programs();
    std::string statistics_json();  // after the end
    // Attributes every op separately, also ops with the same points in the same order. For tests.
    void attribute_each();
    std::size_t shapes() const;  // how many are known
    // Tables fill as ops settle; take_ready(): a table has chunk_rows rows, or all tables are complete. The strings of
    // kDict columns are pool ids; strings new since the last call are returned first.
    bool take_ready() const;
    std::vector<Table> &tables();  // clear() each after reading
    // Adds rows of the open requests, without closing these requests: for a view of a running trace. Take tables before
    // and after.
    void show_open();
    // No more events from before now_ns: settles the same ops as the next event would. Returns whether there are rows.
    bool passed(std::int64_t now_ns);
    const StringPool &strings() const;
    // A row of the table losses: other parts besides the core also count losses.
    void loss(std::string_view name, std::string_view severity, std::string_view origin, std::uint64_t count);
    std::vector<std::string> take_new_strings();  // ids are consecutive from 0
    std::uint64_t events_seen() const;
    std::string summary_json() const;  // counts: events, classes × fates, hops, losses, discarded intervals

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace opline
