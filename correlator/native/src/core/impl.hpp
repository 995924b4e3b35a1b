// SPDX-License-Identifier: MIT
// The parts of the core and how an event goes through them. Private to the core.
#pragma once
#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <optional>

#include "binding/classes.hpp"
#include "core/core.hpp"
#include "core/shown.hpp"
#include "event/merge.hpp"
#include "link/linker.hpp"
#include "output/csv_sink.hpp"
#include "output/run_tables.hpp"
#include "stages/attribution.hpp"
#include "statistics/op_statistics.hpp"
#include "stitch/steps.hpp"

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
    RunTables tables;
    Stitcher stitcher;
    Linker linker;
    BlockModel block;
    Attributor attributor;
    std::uint32_t no_block_events;  // pool id
    Attribution scratch;
    std::optional<OpStatistics> statistics;
    std::optional<CsvSink> csv;
    std::vector<OpSink *> sinks{&tables};
    bool links_wanted = true;  // by one of them
    struct {
        std::uint64_t rows = 0, bytes = 0, done = 0;
        std::int64_t wait_ns = 0;  // from the write to the disk, of those that are done
    } deferred;
    SchedTimelines sched;
    Shown shown;
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
    std::uint64_t events_missing = 0;   // at least, by what others show
    // block events by perf: its completions are not those of its issues (another length, no flushes)
    bool converted = false;
    std::uint64_t discarded_events = 0, discarded_packets = 0, discarded_unknown = 0;
    std::uint64_t events = 0, block_events = 0, out_of_order = 0;
    std::uint64_t ops_complete = 0, ops_incomplete = 0, ops_tainted = 0, ops_failed = 0, partition_violations = 0,
                  late_transitions = 0;
    std::uint64_t unlinked_ops = 0;
    std::uint64_t ops_by_shape = 0;  // whose stages were those of their shape (Attributor::by_shape)
    std::uint64_t collector_lost = 0;
    std::int64_t last_ns = kNoTime, first_ns = kNoTime;
    std::uint32_t current_host = 0;
    bool names_requests = true;  // tables show the threads of block events
    struct {
        const Event *event = nullptr;
        std::int32_t comm_slot = kNoSlot;
    } block_at;  // the block event at hand
    bool finishing = false, finished = false;
    bool has_block_classes = false;  // the trace has block events, or could have

    static std::vector<std::string> space_names(const Plan &plan) {
        std::vector<std::string> out;
        for (const auto &s : plan.key_spaces) out.push_back(s.name);
        return out;
    }

    explicit Impl(Plan compiled)
        : plan(std::move(compiled)),
          tables(strings, space_names(plan)),
          stitcher(plan, strings, names,
                   {[this](Op &op) { settle(op); }, [this](const Batch &b) { tables.batch(b); },
                    [this](Op &op, std::int64_t at_ns) { linker.wrote(op, at_ns); },
                    [this](Op &op, std::int64_t tid, std::int64_t at_ns) { linker.sync_begun(op, tid, at_ns); },
                    [this](Op &op, std::int64_t at_ns) {
                        if (const auto sync = linker.sync_ended(op, at_ns)) tables.batch(*sync->batch);
                    }}),
          linker(stitcher, plan, strings),
          block(plan.match_by_sector ? BlockMatch::kSector : BlockMatch::kPointer,
                {[this](const BlockEvent &ev, Bio &bio) {
                     if (bio.comm == 0 && bio.split_from == 0) bio.comm = names.of(*block_at.event, block_at.comm_slot);
                     Owner owner = linker.bio_queued(ev, bio, current_host);
                     stitcher.bio_opened(owner.op);
                     return owner;
                 },
                 nullptr, [this](const Request &r) { request_done(r); }, [this](const Bio &b) { bio_done(b); },
                 [this](const Request *of, std::uint32_t dev, std::int64_t begin_ns, std::int64_t end_ns) {
                     if (!converted) missed(dev, begin_ns, end_ns, 1, of);
                 },
                 [this](const Request &r) { return linker.waiter_ended(r); },
                 [this](const Owner &owner) { return linker.end_of(owner.op); }}),
          attributor(plan, strings, stitcher.thread_points()),
          no_block_events(strings.intern("no_block_events")) {}

    void settle(Op &op) {
        std::int64_t past_ns = 0;  // its end; beyond 64 bits where a clock is damaged, or there is none
        const bool all_seen = !__builtin_sub_overflow(last_ns, op.end_ns, &past_ns) && past_ns >= plan.linger_ns;
        if (attributor.attribute(op, scratch, all_seen)) ++ops_by_shape;
        SettledOp settled{op, scratch};
        settled.complete = op.complete();
        const std::int64_t end_ns = settled.complete ? op.end_ns : last_ns;
        settled.tainted = op.completion_missing || linker.lost_between(op.begin_ns, end_ns);
        if (settled.complete) {
            ++ops_complete;
            check_partition(op);
        } else {
            ++ops_incomplete;
            settled.reason = strings.intern(op.state == OpState::kEnded       ? "ends_before_begin"
                                            : stitcher.owns_all_keys_lost(op) ? "key_reused"
                                                                              : "no_end");
        }
        ops_tainted += settled.tainted;
        ops_failed += op.failed;
        late_transitions += scratch.late;
        linker.settled(op);
        if (scratch.requests.empty()) {
            if (tables.keeps_ops())
                settled.no_request = has_block_classes ? strings.intern(linker.no_request(op)) : no_block_events;
            unlinked_ops += has_block_classes;
        }
        if (tables.keeps_states()) split_states(op);
        for (OpSink *sink : sinks) sink->op(settled);
        for (const auto &bio : scratch.shared_bios) {
            LinkRow row;
            row.op = op.serial;
            row.rules = rule::kBatch;
            row.shared = true;
            for (OpSink *sink : sinks) sink->link(row, bio);
        }
    }

    static std::string stream_name(const StreamDecl &s) {
        return s.channel.empty() ? s.path : s.channel + "_" + std::to_string(s.instance);
    }
    void discarded(const Gap &gap) {
        const bool packets = gap.kind == Gap::Kind::kPackets;
        stitcher.events_lost();
        if (carries_states(gap.stream)) sched.lost(gap.end_ns);
        shown.lost(gap.end_ns, numbers_missed());
        if (gap.begin_ns != kNoTime && gap.end_ns != kNoTime) linker.discarded(gap.begin_ns, gap.end_ns);
        (packets ? discarded_packets : discarded_events) += gap.count;
        discarded_unknown += gap.count == 0;
        tables.discarded(stream_name(streams[gap.stream]), gap.begin_ns, gap.end_ns, gap.count, packets);
    }

    void damaged(const Gap &gap) {
        if (carries_states(gap.stream)) sched.lost_from(gap.begin_ns);
        shown.pairs.lost_from(gap.begin_ns);
        linker.discarded(gap.begin_ns, std::numeric_limits<std::int64_t>::max());
        damages.push_back({stream_name(streams[gap.stream]), gap.begin_ns, std::string(gap.why)});
    }

    void missing(std::string_view stream, Domain domain, std::int64_t begin_ns, std::int64_t end_ns,
                 std::uint64_t packets) {
        constexpr auto kFirst = std::numeric_limits<std::int64_t>::min(),
                       kLast = std::numeric_limits<std::int64_t>::max();
        linker.discarded(begin_ns == kNoTime ? kFirst : begin_ns, end_ns == kNoTime ? kLast : end_ns);
        const bool for_good = end_ns == kNoTime;
        const std::int64_t from_ns = begin_ns == kNoTime ? kFirst : begin_ns;
        if (domain == Domain::kKernel) for_good ? sched.lost_from(from_ns) : sched.lost(end_ns);
        for_good ? shown.pairs.lost_from(from_ns) : shown.lost(end_ns, numbers_missed());
        stitcher.events_lost();
        discarded_packets += packets;
        tables.discarded(stream, begin_ns, end_ns, packets, true);
    }

    // Steps that must have happened in that interval are not in the trace. Where it is known whose completion it is,
    // nobody waits for it but its owners: what else ran is whole.
    void missed(std::optional<std::uint32_t> dev, std::int64_t begin_ns, std::int64_t end_ns, std::uint64_t count,
                const Request *of = nullptr) {
        events_missing += count;
        tables.missed(dev, begin_ns, end_ns, count);
        if (!of || !linker.waiters_known(*of)) return linker.discarded(begin_ns, end_ns);
        linker.doubt(*of);
        for (const Owner &owner : of->owners)
            if (Op *op = stitcher.ops().find(owner.op)) op->completion_missing = true;
    }
    struct NumbersMissed {
        Impl &impl;
        void operator()(const Numbers::Hole &hole) const {
            impl.missed(std::nullopt, hole.begin_ns, hole.end_ns, hole.missing);
        }
    };
    NumbersMissed numbers_missed() { return {*this}; }

    // The kernel of this host ran something on that CPU.
    void cpu_named(std::int64_t cpu) {
        std::vector<bool> *known = cpus.find(current_host);
        if (!known || cpu < 0 || cpu >= kMostCpus ||
            (static_cast<std::size_t>(cpu) < known->size() && (*known)[static_cast<std::size_t>(cpu)]))
            return;
        if (known->size() <= static_cast<std::size_t>(cpu)) known->resize(static_cast<std::size_t>(cpu) + 1);
        (*known)[static_cast<std::size_t>(cpu)] = true;
        ++streams_missing;
        missing("CPU " + std::to_string(cpu), Domain::kKernel, kNoTime, kNoTime, 0);
    }

    // What threads did in each stage.
    void split_states(const Op &op) {
        scratch.states.clear();
        scratch.state_parts.clear();
        if (sched_events == 0) return;
        scratch.states.resize(scratch.stages.size());
        std::int64_t waits = -1;  // the thread that a completion lets go on: that of the next stage
        for (std::size_t i = scratch.stages.size(); i-- > 0;) {
            if (scratch.stages[i].tid > 0) waits = scratch.stages[i].tid;
            scratch.states[i].tid = waits;
        }
        std::vector<StatePart> *parts = tables.keeps_state_parts() ? &scratch.state_parts : nullptr;
        for (std::uint32_t i = 0; i < scratch.stages.size(); ++i) {
            const StageCut &s = scratch.stages[i];
            const std::int64_t tid = scratch.states[i].tid, end_ns = s.begin_ns + s.duration_ns;
            scratch.states[i] =
                tid > 0 ? sched.split(op.host, tid, s.begin_ns, end_ns, scratch.requests, i, parts) : StateSplit{};
        }
    }

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

    void request_done(const Request &r) {
        const Served served = linker.request_done(r);
        stitcher.request_done(r);
        tables.request(r, linker.flush_of(r), served);
    }

    void bio_done(const Bio &b) {
        const BioLink *link = linker.link_of(b.id);
        const bool by_pointer = b.pointer != 0 && !plan.match_by_sector;
        tables.bio(b, link);
        const BatchBio done{b.id, b.request, b.queue_ns, b.kind, by_pointer};
        if (links_wanted)
            for (const auto &row : linker.links(b))
                for (OpSink *sink : sinks) sink->link(row, done);
        for (const auto &row : linker.deferred(b)) {
            ++deferred.rows;
            deferred.bytes += row.bytes;
            if (const auto done_ns = linker.done_ns(b); done_ns != kNoTime) {
                ++deferred.done;
                deferred.wait_ns += done_ns - row.written_ns;
            }
            tables.deferred(row, b, *link, linker.file_of(*link));
        }
        if (link && link->batch) link->batch->bios.push_back(done);
        linker.forget(b.id);
        stitcher.bio_done(b);
    }

    // Of the thread's name, where each event of the class is asked for it. Of a block event that no table shows, where
    // a bio begins.
    std::int32_t name_slot(const BoundClass &cls) const {
        if (cls.kind != ClassKind::kBlock) return cls.comm_slot;
        return names_requests || cls.block.blank.kind == BlockKind::kBioQueue ? cls.block.comm : kNoSlot;
    }

    Fate block_event(const BoundClass &cls, const Event &ev) {
        BlockEvent b = block_event_of(cls.block, ev);
        b.comm = names.of(ev, name_slot(cls));
        block_at = {&ev, cls.block.comm};
        ++block_events;
        if (b.kind == BlockKind::kBioRemap) linker.remapped(b);
        shown.request(b, current_host);
        return block.event(b);
    }

    // Woken before it was off: while it was about to sleep.
    void off_cpu(const BoundClass &cls, const Event &ev) {
        const SchedSlots &s = cls.sched;
        const std::int64_t tid = number_in(ev, s.tid, -1), off_ns = number_in(ev, s.off_at, 0),
                           woken_ns = number_in(ev, s.woken_at, 0);
        if (off_ns > 0) sched.on_switch(current_host, kNoCpu, off_ns, tid, number_in(ev, s.prev_state, 0), -1);
        sched.on_wake(current_host, std::max(woken_ns, off_ns), Wake::kWaking, woken_ns > 0 ? tid : -1,
                      number_in(ev, cls.tid_slot, -1), names.of(ev, cls.comm_slot));
        sched.on_switch(current_host, kNoCpu, ev.ts_ns, -1, 0, tid);
    }

    void sched_event(const BoundClass &cls, const Event &ev) {
        auto number = [&](std::int32_t slot) { return number_in(ev, slot, -1); };
        if (sched_events++ == 0) sched_stream = ev.stream;
        const SchedSlots &s = cls.sched;
        if (cls.kind == ClassKind::kOffCpu) off_cpu(cls, ev);
        else if (cls.kind == ClassKind::kSchedSwitch)
            sched.on_switch(current_host, ev.cpu, ev.ts_ns, number(s.prev_tid), number(s.prev_state),
                            number(s.next_tid));
        else
            sched.on_wake(current_host, ev.ts_ns, s.wake, number(s.tid), number(cls.tid_slot),
                          names.of(ev, cls.comm_slot));
        cpu_named(number(s.cpu));
        if (sched.changes() < kSchedChanges) return;
        std::int64_t oldest = last_ns;
        stitcher.ops().for_each_live([&](const Op &op) { oldest = std::min(oldest, op.begin_ns); });
        sched.forget_before(oldest);
    }

    // Could events of threads' states be missing where this stream's are?
    bool carries_states(std::uint32_t stream) const {
        const StreamDecl &at = streams[stream];
        if (at.domain == Domain::kKernel) return true;
        return collects_states && (sched_events == 0 || at.channel == streams[sched_stream].channel);
    }

    void collector_lost_some(const BoundClass &cls, const Event &ev) {
        if (cls.count_slot != kNoSlot && ev.slots[cls.count_slot].is_number())
            collector_lost += ev.slots[cls.count_slot].u;
        shown.pairs.lost(ev.ts_ns);
        shown.told(cls, ev, current_host);
        if (cls.sched.loses) sched.lost(std::max(ev.ts_ns, number_in(ev, cls.sched.until, ev.ts_ns)));
    }

    [[gnu::always_inline]] void take(const Event &ev) {
        if (ev.ts_ns < last_ns) ++out_of_order;
        else last_ns = ev.ts_ns;
        stitcher.advance(last_ns);
        BoundClass &cls = *classes[ev.cls];
        if (cls.kind >= ClassKind::kContext && cls.number.slot == kNoSlot) {
            ++cls.fates[static_cast<std::size_t>(cls.kind == ClassKind::kIgnored ? Fate::kIgnored : Fate::kContext)];
            return;
        }
        look_at(cls, ev);
    }

    [[gnu::noinline]] void look_at(BoundClass &cls, const Event &ev) {
        current_host = stream_hosts[ev.stream];
        if (cls.half.pair != 0) shown.half(cls, ev, current_host);
        if (cls.number.slot != kNoSlot) shown.number(cls, ev, current_host, numbers_missed());
        const bool points = cls.kind == ClassKind::kPoints && cls.cpu_slot == kNoSlot;
        const Fate fate = points                          ? stitcher.event(cls, ev, current_host)
                          : cls.kind == ClassKind::kBlock ? block_event(cls, ev)
                                                          : dispatch(cls, ev);
        ++cls.fates[static_cast<std::size_t>(fate)];
    }

    Fate dispatch(BoundClass &cls, const Event &ev) {
        switch (cls.kind) {
        case ClassKind::kPoints: {
            Event own = ev;
            if (cls.cpu_slot != kNoSlot) own.cpu = static_cast<std::uint32_t>(ev.slots[cls.cpu_slot].bits());
            return stitcher.event(cls, own, current_host);
        }
        case ClassKind::kPlug:
            ++block_events;
            block.passed(ev.ts_ns);
            shown.plug(cls, ev, current_host);
            return Fate::kContext;
        case ClassKind::kDeviceName:
            if (cls.dev_slot != kNoSlot && cls.diskname_slot != kNoSlot &&
                ev.slots[cls.diskname_slot].kind == Slot::Kind::kString)
                device_names[static_cast<std::uint32_t>(ev.slots[cls.dev_slot].u)] =
                    std::string(ev.slots[cls.diskname_slot].str());
            return Fate::kContext;
        case ClassKind::kCollectorLost: collector_lost_some(cls, ev); return Fate::kContext;
        case ClassKind::kSchedSwitch:
        case ClassKind::kSchedWake:
        case ClassKind::kOffCpu: sched_event(cls, ev); return Fate::kContext;
        case ClassKind::kHalf:
        case ClassKind::kContext: return Fate::kContext;
        case ClassKind::kBlock:
        case ClassKind::kIgnored: break;
        }
        return Fate::kIgnored;
    }
};

}  // namespace opline
