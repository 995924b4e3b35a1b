// SPDX-License-Identifier: MIT
// The parts of the core and how an event goes through them. Private to the core.
#pragma once
#include <memory>
#include <vector>

#include "binding/classes.hpp"
#include "core/common.hpp"
#include "core/core.hpp"
#include "core/host_blocks.hpp"
#include "core/kernel_states.hpp"
#include "core/membership.hpp"
#include "core/outputs.hpp"
#include "core/settler.hpp"
#include "core/shortfall.hpp"
#include "core/whole_requests.hpp"
#include "link/linker.hpp"
#include "stitch/stitcher.hpp"

namespace opline {

struct Core::Impl {
    Common common;
    std::vector<std::unique_ptr<BoundClass>> classes;
    ThreadNames thread_names;
    Outputs out;
    Population population;
    Stitcher stitcher;
    Linker linker;
    Membership members;
    HostBlocks blocks;
    KernelStates states;
    Shortfall shortfall;
    Settler settler;
    WholeRequests whole;  // requests with steps to come
    std::uint64_t block_events = 0;
    enum class Progress { kReading, kFinishing, kFinished } progress = Progress::kReading;

    explicit Impl(Plan compiled)
        : common(std::move(compiled)),
          out(common),
          population(common.plan.population, common.plan.commands, !common.plan.hosts.empty()),
          stitcher(common.plan, common.strings, common.names, common.identities.threads, population, op_hooks()),
          linker(stitcher.locator(), common.plan, common.strings),
          members(population, linker),
          blocks(common.plan.match_by_sector ? BlockMatch::kSector : BlockMatch::kPointer, !common.plan.hosts.empty(),
                 block_hooks()),
          states(common, stitcher.ops()),
          shortfall(common, stitcher, linker, states, out.tables),
          settler(common, {stitcher, linker, blocks, states, shortfall.ends(), members, out}) {}

    StitchHooks op_hooks() {
        return {[this](Op &op) { settler.settle(op); },
                [this](const Batch &b) { out.tables.batch(b); },
                [this](Op &op, std::int64_t at_ns) { linker.wrote(op, at_ns); },
                [this](Op &op, std::int64_t tid, std::int64_t at_ns) { linker.syncs().sync_begun(op, tid, at_ns); },
                [this](Op &op, std::int64_t at_ns) {
                    if (const auto sync = linker.syncs().sync_ended(op, at_ns)) out.tables.batch(*sync->batch);
                },
                [this](const Transition &t, std::uint32_t host, MessageDo does, const Key &key) {
                    out.tables.message(t, host, does, key);
                }};
    }
    BlockModel::Hooks block_hooks() {
        return {[this](const BlockEvent &ev, const Bio &bio) {
                    Owner owner = linker.bio_queued(ev, bio, common.now.host);
                    stitcher.ios().bio_opened(owner.op);
                    members.queued(ev, bio, common.now.host);
                    return owner;
                },
                [this](const Request &r) { request_done(r); },
                [this](const Bio &b) { bio_done(b); },
                [this](const Request *of, std::uint32_t dev, std::int64_t begin_ns, std::int64_t end_ns) {
                    if (!blocks.converted()) shortfall.steps_missing(dev, begin_ns, end_ns, 1, of);
                },
                [this](const Request &r) { return linker.checks().waiter(r); },
                [this](const Owner &owner) { return linker.checks().end_of(owner.op); }};
    }

    // core/block_events.cpp
    void request_done(const Request &);
    void bio_done(const Bio &);
    Fate block_event(const BoundClass &, const Event &);
    Fate block_step(BlockEvent);
    // Applies the steps of whole requests up to until_ns; returns the fate of the last step.
    Fate take_steps(std::int64_t until_ns);
    Fate whole_event(const BoundClass &, const Event &);
    void woken(const BoundClass &, const Event &);

    // core/told_events.cpp
    void learn_thread(const BoundClass &, const Event &);
    void thread_ended(const BoundClass &cls, const Event &ev);
    void tcp_call(const BoundClass &, const Event &);
    void name_device(const BoundClass &, const Event &);
    void place_told(const BoundClass &, const Event &);

    // core/dispatch.cpp
    Fate dispatch(BoundClass &, const Event &);
    void state_event(const BoundClass &, const Event &);

    [[gnu::always_inline]] Fate point_event(BoundClass &cls, const Event &ev) {
        Identities &who = common.identities;
        return who.renumbers(cls, ev) ? stitcher.event(cls, who.renumbered(cls, ev, common.now.host), common.now.host)
                                      : stitcher.event(cls, ev, common.now.host);
    }

    [[gnu::always_inline]] void take(const Event &ev) {
        BoundClass &cls = *classes[ev.cls];
        // A record's first step may precede other steps of the same time: bios are named at their request's issue.
        if (whole.next_ns() <= ev.ts_ns) take_steps(cls.record ? ev.ts_ns - 1 : ev.ts_ns);
        common.now.at(ev.ts_ns);
        stitcher.advance(common.now.last_ns);
        const bool passes = cls.kind >= ClassKind::kContext || (cls.only_wakes && !blocks.any_undecided());
        if (passes && cls.number.slot == kNoSlot) {
            ++cls.fates[static_cast<std::size_t>(cls.kind == ClassKind::kIgnored ? Fate::kIgnored : Fate::kContext)];
            return;
        }
        look_at(cls, ev);
    }

    [[gnu::noinline]] void look_at(BoundClass &cls, const Event &ev) {
        common.now.host = common.streams.hosts[ev.stream];
        if (cls.number.slot != kNoSlot) shortfall.number_passed(cls, ev);
        if (cls.kind == ClassKind::kPoints) shortfall.point(ev.stream, cls.number.slot != kNoSlot);
        const bool points = cls.kind == ClassKind::kPoints && cls.cpu_slot == kNoSlot;
        const Fate fate = points                          ? point_event(cls, ev)
                          : cls.kind == ClassKind::kBlock ? block_event(cls, ev)
                                                          : dispatch(cls, ev);
        ++cls.fates[static_cast<std::size_t>(fate)];
    }
};

}  // namespace opline
