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

// What is known of a host's streams before they are read.
struct KnownStreams {
    // Bytes of a channel that cannot be decoded, in [begin_ns, end_ns] (kNoTime: since, or until, whenever). The gap
    // itself comes later, where reading meets these bytes: by then ops of that time are settled.
    struct Unreadable {
        Domain domain;
        std::string channel;
        std::int64_t begin_ns, end_ns;
    };
    std::string host;
    // The CPUs that the kernel's streams are of. One that events name, and that is not among them, lost its stream.
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
    // Events whose own time (time_slot) lies before the last one's are counted and still applied.
    void event(const Event &ev) { events(&ev, &ev + 1); }
    void name_threads(Event *first, Event *past) override;
    void events(const Event *first, const Event *past) override;
    // Ops that overlap it are tainted; of damage, those that reach beyond its begin.
    void gap(const Gap &) override;
    bool finish() override;
    // Before the first event. Of a stream is missing what it had in [begin_ns, end_ns] (kNoTime: since, or until,
    // whenever); packets 0: not known how many.
    void missing(std::string_view stream, Domain, std::int64_t begin_ns, std::int64_t end_ns, std::uint64_t packets);
    // Before the first event: what is known of a host's streams.
    void know(const KnownStreams &);

    // Leaves all tables but these empty; everything else is as before. Before the first event. Throws
    // std::runtime_error. "sched" among them: with what threads did in the stages, else sched events are not decoded.
    void keep_tables(const std::vector<std::string> &names);
    // Feeds `csv`, which must outlive the core, instead of any table; incomplete ops only with `all`. Before the first
    // event.
    void write_csv(OpCsv &csv, bool all);
    // Keeps statistics per stage of complete ops, tainted ones only if wanted, of these classes only if there are any
    // (statistics/op_statistics.hpp). Before any stream.
    void keep_statistics(bool tainted, std::vector<std::string> classes, std::vector<std::string> without);
    // Statistics and CSV have every program's ops, where the recording says which processes it is about. Before the
    // first event.
    void count_all_programs();
    std::string statistics_json();  // once it has finished
    // Attributes every op by itself, also those that pass the same points in the same order. For tests.
    void attribute_each();
    std::size_t shapes() const;  // how many are known
    // Tables fill as ops settle; take_ready(): a table has chunk_rows rows or all are complete.
    // The strings of kDict columns are the pool's; new ones since the last call are handed over first.
    bool take_ready() const;
    std::vector<Table> &tables();  // clear() each after reading
    // Rows of the requests that are open now, which stay open, for who looks on while events come: take tables before
    // and after.
    void show_open();
    // Nothing from before now_ns comes any more: ops that this settles are rows, as the next event would have made
    // them. Whether there are any rows.
    bool passed(std::int64_t now_ns);
    const StringPool &strings() const;
    // A row of the table losses: who counts them is not the core alone.
    void loss(std::string_view name, std::string_view severity, std::string_view origin, std::uint64_t count);
    std::vector<std::string> take_new_strings();  // ids are consecutive from 0
    std::uint64_t events_seen() const;
    std::string summary_json() const;  // counts: events, classes × fates, hops, losses, discarded intervals

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace opline
