// SPDX-License-Identifier: MIT
// The parts of the core and how an event goes through them. Private to the core.
#pragma once
#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <optional>

#include "binding/classes.hpp"
#include "block/request_steps.hpp"
#include "core/core.hpp"
#include "core/holes.hpp"
#include "core/held_links.hpp"
#include "core/host_blocks.hpp"
#include "core/identities.hpp"
#include "core/lost_ends.hpp"
#include "core/membership.hpp"
#include "core/stage_states.hpp"
#include "core/stage_waits.hpp"
#include "core/states.hpp"
#include "event/merge.hpp"
#include "link/linker.hpp"
#include "output/csv_sink.hpp"
#include "output/run_tables.hpp"
#include "sched/numbers.hpp"
#include "stages/attribution.hpp"
#include "stages/lost_stages.hpp"
#include "statistics/op_statistics.hpp"
#include "stitch/stitcher.hpp"
#include "waits/wait_chains.hpp"

namespace opline {

struct Core::Impl {
    // so many changes of threads' states until the oldest are looked for
    static constexpr std::uint64_t kSchedChanges = 1u << 16;

    Plan plan;
    StringPool strings;
    NameIds names{strings};
    std::vector<std::unique_ptr<BoundClass>> classes;
    std::vector<StreamDecl> streams;
    std::vector<std::uint32_t> stream_hosts;
    ThreadNames thread_names;
    Identities identities;
    RunTables tables;
    Population population;
    Stitcher stitcher;
    Linker linker;
    Membership members;
    HostBlocks blocks;
    Attributor attributor;
    std::uint32_t no_block_events, lost_stage, lost_kind;  // pool ids
    Attribution scratch;
    std::optional<OpStatistics> statistics;
    std::optional<CsvSink> csv;
    std::vector<OpSink *> sinks{&tables};
    bool links_wanted = true;  // by one of them
    DeferredTotals deferred;
    HeldLinks held;
    SchedTimelines sched;
    WaitChains waits{sched, strings};
    FlatMap<std::uint64_t, std::int64_t> followed;  // threads besides the recorded processes', by host and number
    RequestSteps steps;                             // of whole requests, that are to come
    struct RequestThread {
        std::int32_t tid, pid;
        std::uint32_t comm;
    };
    FlatMap<std::uint64_t, RequestThread> threads;  // of whole requests, by host and the kernel's number
    Numbers numbers;
    std::uint64_t sched_events = 0;
    bool collects_states = false;    // threads' states come from a collector
    std::uint32_t sched_stream = 0;  // the first that had some

    std::map<std::uint32_t, std::string> device_names;
    struct Damage {
        std::string stream;
        std::int64_t from_ns;  // kNoTime: not known
        std::string why;
    };
    std::vector<Damage> damages;
    static constexpr std::uint32_t kMostCpus = 1u << 16;
    // of kernel streams, by host; of a host that is not here nothing is known
    FlatMap<std::uint32_t, std::vector<bool>> cpus;
    std::uint64_t streams_missing = 0;  // that events say were there
    Holes holes;
    LostEnds lost_ends;
    std::uint64_t events_missing = 0;  // at least, by what others show
    // block events by perf: its completions are not those of its issues (another length, no flushes)
    bool converted = false;
    std::uint64_t discarded_events = 0, discarded_packets = 0, discarded_unknown = 0;
    std::uint64_t events = 0, block_events = 0, out_of_order = 0;
    std::uint64_t ops_complete = 0, ops_incomplete = 0, ops_tainted = 0, ops_failed = 0, partition_violations = 0,
                  late_transitions = 0;
    std::uint64_t ops_unsplit = 0;  // complete, their latency exact, with stages in which events were lost
    std::uint64_t unlinked_ops = 0;
    std::uint64_t ops_by_shape = 0;  // whose stages were those of their shape (Attributor::by_shape)
    std::uint64_t collector_lost = 0;
    std::int64_t last_ns = kNoTime, first_ns = kNoTime;
    std::uint32_t current_host = 0;
    struct {
        std::int64_t ts_ns = kNoTime;
        std::uint32_t cpu = kNoCpu;
    } block_at;  // the block event at hand
    bool finishing = false, finished = false;
    bool has_block_classes = false;  // the trace has block events, or could have

    static std::vector<std::string> space_names(const Plan &plan) {
        std::vector<std::string> out;
        for (const auto &s : plan.key_spaces) out.push_back(s.name);
        return out;
    }

    // Gives what the plan says of several hosts the numbers of the joined run.
    static Hosts number_hosts(Plan &plan, StringPool &strings);

    explicit Impl(Plan compiled)
        : plan(std::move(compiled)),
          identities(number_hosts(plan, strings)),
          tables(strings, space_names(plan), identities.threads.hosts),
          population(plan.population, !plan.hosts.empty()),
          stitcher(plan, strings, names, identities.threads, population,
                   {[this](Op &op) { settle(op); }, [this](const Batch &b) { tables.batch(b); },
                    [this](Op &op, std::int64_t at_ns) { linker.wrote(op, at_ns); },
                    [this](Op &op, std::int64_t tid, std::int64_t at_ns) { linker.syncs().sync_begun(op, tid, at_ns); },
                    [this](Op &op, std::int64_t at_ns) {
                        if (const auto sync = linker.syncs().sync_ended(op, at_ns)) tables.batch(*sync->batch);
                    },
                    [this](const Transition &t, std::uint32_t host, MessageDo does, const Key &key) {
                        tables.message(t, host, does, key);
                    }}),
          linker(stitcher.locator(), plan, strings),
          members(population, linker),
          blocks(plan.match_by_sector ? BlockMatch::kSector : BlockMatch::kPointer, !plan.hosts.empty(),
                 {[this](const BlockEvent &ev, const Bio &bio) {
                      Owner owner = linker.bio_queued(ev, bio, current_host);
                      stitcher.ios().bio_opened(owner.op);
                      if (population.known()) members.queued(ev, bio, current_host);
                      return owner;
                  },
                  [this](const Request &r) { request_done(r); }, [this](const Bio &b) { bio_done(b); },
                  [this](const Request *of, std::uint32_t dev, std::int64_t begin_ns, std::int64_t end_ns) {
                      if (!converted) missed(dev, begin_ns, end_ns, 1, of);
                  },
                  [this](const Request &r) { return linker.checks().waiter(r); },
                  [this](const Owner &owner) { return linker.checks().end_of(owner.op); }}),
          attributor(plan, strings, stitcher.thread_points(), identities.threads.hosts),
          no_block_events(strings.intern("no_block_events")),
          lost_stage(strings.intern("unknown (events lost)")),
          lost_kind(strings.intern("unknown")) {}

    void settle(Op &op) {
        if (blocks.any_undecided())
            blocks.each([&](std::uint32_t, BlockModel &model) { model.decide(op.begin_ns, op.end_ns, last_ns); });
        if (attributor.attribute(op, scratch)) ++ops_by_shape;
        stitcher.details().name_late(op, scratch.first_tid);
        SettledOp settled{op, scratch};
        settled.complete = op.complete();
        const std::int64_t end_ns = settled.complete ? op.end_ns : last_ns;
        const bool lost = op.completion_missing || linker.lost().overlap(op.begin_ns, end_ns);
        settled.tainted = lost && (!settled.complete || lost_ends.overlap(op.begin_ns, end_ns));
        if (settled.complete) {
            ++ops_complete;
            if (lost && !settled.tainted)
                settled.unsplit =
                    forget_lost_stages(scratch, linker.lost(), op.completion_missing, lost_stage, lost_kind);
            check_partition(op);
        } else {
            ++ops_incomplete;
            settled.reason = strings.intern(op.io.end_untold                            ? "end_untold"
                                            : op.state == OpState::kEnded               ? "ends_before_begin"
                                            : stitcher.locator().owns_all_keys_lost(op) ? "key_reused"
                                                                                        : "no_end");
        }
        ops_tainted += settled.tainted;
        ops_unsplit += settled.unsplit;
        ops_failed += op.failed;
        if (population.known()) members.settle(settled, end_ns, scratch.first_comm);
        late_transitions += scratch.late;
        linker.checks().settled(op);
        if (scratch.requests.empty()) {
            if (tables.keeps_ops())
                settled.no_request =
                    has_block_classes ? strings.intern(linker.reasons().no_request(op)) : no_block_events;
            unlinked_ops += has_block_classes;
        }
        if (tables.keeps_states())
            split_states(op, scratch, identities.threads.hosts, sched_events == 0 ? nullptr : &sched,
                         tables.keeps_state_parts());
        scratch.waits.clear();
        if (tables.keeps_waits() && !scratch.states.empty() &&
            !explain_waits(op, scratch, identities.threads.hosts, waits))
            ++partition_violations;
        each_sink(!settled.is_others(), [&](OpSink &sink) { sink.op(settled); });
        for (const auto &bio : scratch.shared_bios) {
            LinkRow row;
            row.op = op.serial;
            row.rules = rule::kBatch;
            row.shared = true;
            tell_link(!settled.is_others(), row, bio, kNoTime, kNoTime);
        }
    }

    // Tables have all ops and say of each whose it is; statistics and CSV have those that count.
    template <class Function>  // void(OpSink &)
    void each_sink(bool counts, Function function) {
        for (OpSink *sink : sinks)
            if (counts || members.all_programs || sink == &tables) function(*sink);
    }

    // CSV counts the links of an op before its end; in the table it is said how sure each is. `all`: the trace is over.
    void tell_link(bool counts, const LinkRow &, const BatchBio &, std::int64_t since_ns, std::int64_t until_ns);
    void tell_held_links(bool all);

    static std::string stream_name(const StreamDecl &s) {
        return s.channel.empty() ? s.path : s.channel + "_" + std::to_string(s.instance);
    }
    auto numbers_missed() {
        return [this](const Numbers::Hole &h) {
            linker.discarded(h.begin_ns, h.end_ns), lost_ends.lost_by_number(h.begin_ns, h.end_ns), holes.add(h);
        };
    }
    // core/lost.cpp: events are lost, in a stream or anywhere.
    void lost_in(std::uint32_t stream, std::int64_t begin_ns, std::int64_t end_ns);
    void lost_anywhere(std::int64_t begin_ns, std::int64_t end_ns);
    void discarded(const Gap &gap);
    void damaged(const Gap &gap);
    void missing(std::string_view stream, Domain domain, std::int64_t begin_ns, std::int64_t end_ns,
                 std::uint64_t packets);
    void unreadable(const std::string &host, Domain domain, const std::string &channel, std::int64_t begin_ns,
                    std::int64_t end_ns);
    // Steps that must have happened in that interval are not in the trace. Where it is known whose completion it is,
    // nobody waits for it but its owners: what else ran is whole.
    void missed(std::optional<std::uint32_t> dev, std::int64_t begin_ns, std::int64_t end_ns, std::uint64_t count,
                const Request *of = nullptr);

    void cpu_named(std::int64_t cpu);

    void check_partition(const Op &op) {
        std::int64_t sum = scratch.unattributed_ns;
        for (const auto &s : scratch.stages) sum += s.duration_ns;
        if (sum != op.end_ns - op.begin_ns) ++partition_violations;
    }

    // By class name: a trace can have several classes of one.
    std::map<std::string, FateCounts> fates() const {
        std::map<std::string, FateCounts> out;
        for (const auto &c : classes)
            for (std::size_t f = 0; f < c->fates.size(); ++f) out[c->name][f] += c->fates[f];
        return out;
    }

    void request_ended(const Request &);
    void request_done(const Request &r);

    void bio_done(const Bio &b) {
        const BioLink *link = linker.links().link_of(b.id);
        const bool by_pointer = b.pointer != 0 && !plan.match_by_sector;
        tables.bio(b, link, population.known(), population.known() && link && members.has(*link));
        const BatchBio done{b.id, b.request, b.queue_ns, b.kind, by_pointer};
        if (links_wanted) {
            for (const auto &row : linker.rows().links(b))
                tell_link(members.counts(row.op), row, done, b.queue_ns, linker.rows().done_ns(b));
            tell_held_links(false);
        }
        for (const auto &row : linker.rows().deferred(b)) {
            if (members.counts(row.op)) deferred.add(row, linker.rows().done_ns(b));
            tables.deferred(row, b, *link, linker.rows().file_of(*link));
        }
        if (link && link->batch) link->batch->bios.push_back(done);
        linker.links().forget(b.id);
        stitcher.ios().bio_done(b);
    }

    Fate block_event(const BoundClass &cls, const Event &ev) {
        BlockEvent b = block_event_of(cls.block, ev);
        b.comm = names.of(ev, cls.comm_slot);
        identities.renumber(b, current_host);
        b.cgroup = identities.threads.cgroups.path(current_host, b.cgroup_number);
        if (cls.number.slot != kNoSlot) blocks.here(current_host).numbered();
        block_at = {b.ts_ns, b.cpu};
        return block_step(b);
    }
    Fate block_step(const BlockEvent &b) {
        ++block_events;
        if (b.kind == BlockKind::kBioRemap) linker.remapped(b);
        return blocks.here(current_host).event(b);
    }
    // Steps of whole requests up to that time; what became of the last one (core/whole.cpp).
    Fate take_steps(std::int64_t until_ns);
    void name_thread(BlockEvent &step) const;
    Fate whole(const BoundClass &, const Event &);

    [[gnu::always_inline]] Fate point_event(BoundClass &cls, const Event &ev) {
        return identities.renumbers(cls, ev)
                   ? stitcher.event(cls, identities.renumbered(cls, ev, current_host), current_host)
                   : stitcher.event(cls, ev, current_host);
    }

    void sched_event(const BoundClass &, const Event &);
    void woken(const BoundClass &, const Event &);
    void follow_event(const BoundClass &, const Event &);
    void forget_states();
    void states_lost(std::int64_t until_ns) { sched.lost(until_ns), waits.lost(); }
    void place_told(const BoundClass &, const Event &);

    bool carries_states(std::uint32_t stream) const;

    // The collector and the CPU that number the event.
    std::uint64_t counter_of(const BoundClass &cls, const Event &ev) const {
        return thread_key(current_host, number_in(ev, cls.number.cpu, 0)) ^
               static_cast<std::uint64_t>(cls.number.collector) << 40;
    }
    void number_passed(const BoundClass &cls, const Event &ev) {
        const std::int64_t number = number_in(ev, cls.number.slot, 0);
        if (number <= 0 || number_in(ev, cls.number.cpu, -1) < 0) return;
        numbers.passed(counter_of(cls, ev), static_cast<std::uint64_t>(number), ev.ts_ns, numbers_missed());
    }

    void collector_lost_some(const BoundClass &, const Event &);  // core/lost.cpp

    [[gnu::always_inline]] void take(const Event &ev) {
        if (steps.next_ns() <= ev.ts_ns) take_steps(ev.ts_ns);
        if (ev.ts_ns < last_ns) {
            ++out_of_order;
            first_ns = std::min(first_ns, ev.ts_ns);  // of a text that is not in order
        } else {
            last_ns = ev.ts_ns;
        }
        stitcher.advance(last_ns);
        BoundClass &cls = *classes[ev.cls];
        const bool passes = cls.kind >= ClassKind::kContext || (cls.only_wakes && !blocks.any_undecided());
        if (passes && cls.number.slot == kNoSlot) {
            ++cls.fates[static_cast<std::size_t>(cls.kind == ClassKind::kIgnored ? Fate::kIgnored : Fate::kContext)];
            return;
        }
        look_at(cls, ev);
    }

    [[gnu::noinline]] void look_at(BoundClass &cls, const Event &ev) {
        current_host = stream_hosts[ev.stream];
        if (cls.number.slot != kNoSlot) number_passed(cls, ev);
        if (cls.kind == ClassKind::kPoints) lost_ends.point(ev.stream, cls.number.slot != kNoSlot);
        const bool points = cls.kind == ClassKind::kPoints && cls.cpu_slot == kNoSlot;
        const Fate fate = points                          ? point_event(cls, ev)
                          : cls.kind == ClassKind::kBlock ? block_event(cls, ev)
                                                          : dispatch(cls, ev);
        ++cls.fates[static_cast<std::size_t>(fate)];
    }

    void learn_thread(const BoundClass &, const Event &);
    void tcp_call(const BoundClass &, const Event &);
    void name_device(const BoundClass &, const Event &);
    Fate dispatch(BoundClass &cls, const Event &ev) {
        switch (cls.kind) {
        case ClassKind::kPoints: {
            Event own = ev;
            if (cls.cpu_slot != kNoSlot) own.cpu = static_cast<std::uint32_t>(ev.slots[cls.cpu_slot].bits());
            return point_event(cls, own);
        }
        case ClassKind::kPlug:
            ++block_events;
            blocks.here(current_host).passed(ev.ts_ns);
            return Fate::kContext;
        case ClassKind::kDeviceName: name_device(cls, ev); return Fate::kContext;
        case ClassKind::kRequest:
        case ClassKind::kBio:
        case ClassKind::kRequestThread: return whole(cls, ev);
        case ClassKind::kCollectorLost: collector_lost_some(cls, ev); return Fate::kContext;
        case ClassKind::kThread: learn_thread(cls, ev); return Fate::kContext;
        case ClassKind::kCgroup:
        case ClassKind::kFilePath: place_told(cls, ev); return Fate::kContext;
        case ClassKind::kTcp: tcp_call(cls, ev); return Fate::kContext;
        case ClassKind::kSchedWake:
            if (cls.sched.wake == Wake::kWaking && blocks.any_undecided()) woken(cls, ev);
            if (!cls.only_wakes) sched_event(cls, ev);
            return Fate::kContext;
        case ClassKind::kSchedSwitch:
        case ClassKind::kRanInstead:
        case ClassKind::kOffCpu: sched_event(cls, ev); return Fate::kContext;
        case ClassKind::kFollow:
        case ClassKind::kFollowLost: follow_event(cls, ev); return Fate::kContext;
        case ClassKind::kProcess:
            if (cls.thread.tid != kNoSlot) learn_thread(cls, ev);
            members.process_step(cls, ev, current_host, identities.threads, names.of(ev, cls.comm_slot));
            return Fate::kContext;
        case ClassKind::kContext: return Fate::kContext;
        case ClassKind::kBlock:
        case ClassKind::kIgnored: break;
        }
        return Fate::kIgnored;
    }
};

}  // namespace opline
