// SPDX-License-Identifier: MIT
// Block events on their way into the block model, and what comes out of it.
#include "core/impl.hpp"

namespace opline {

void Core::Impl::request_done(const Request &r) {
    if (!states.none() && r.complete_ns != kNoTime && out.tables.keeps_waits())
        states.request_ended(r, linker.requests().flush_of(r));
    Served served = linker.requests().request_done(r);
    stitcher.ios().request_done(r);
    if (Op *own = stitcher.own_requests().op_of(common.now.host, r)) {
        linker.requests().serve(*own, r);
        served.ops = 1;
        served.only = op_ref(*own);
    }
    members.request_done(served);
    out.tables.request(r, linker.requests().flush_of(r), served, members.known());
}

void Core::Impl::bio_done(const Bio &b) {
    const BioLink *link = linker.links().link_of(b.id);
    const bool by_pointer = b.pointer != 0 && !common.plan.match_by_sector;
    out.tables.bio(b, link, members.known(), members.known() && link && members.has(*link));
    const BatchBio done{b.id, b.request, b.queue_ns, b.kind, by_pointer};
    if (out.links_wanted()) {
        for (const auto &row : linker.rows().links(b))
            out.link(members.counts(row.op), row, done, b.queue_ns, linker.rows().done_ns(b));
        out.tell_links(linker.lost(), [this](std::uint64_t ref) { return !stitcher.ops().find(ref); });
    }
    for (const auto &row : linker.rows().deferred(b)) {
        if (members.counts(row.op)) members.deferred.add(row, linker.rows().done_ns(b));
        out.tables.deferred(row, b, *link, linker.rows().file_of(*link));
    }
    if (link && link->batch) link->batch->bios.push_back(done);
    linker.links().forget(b.id);
    stitcher.ios().bio_done(b);
}

Fate Core::Impl::block_event(const BoundClass &cls, const Event &ev) {
    const std::uint32_t host = common.now.host;
    BlockEvent b = block_event_of(cls.block, ev);
    b.comm = common.names.of(ev, cls.comm_slot);
    if (cls.number.slot != kNoSlot) blocks.here(host).numbered();
    return block_step(b);
}

Fate Core::Impl::block_step(BlockEvent step) {
    Now &now = common.now;
    common.identities.renumber(step, now.host);
    step.cgroup = common.identities.threads.cgroups.path(now.host, step.cgroup_number);
    now.block_ns = step.ts_ns;
    now.block_cpu = step.cpu;
    ++block_events;
    if (step.kind == BlockKind::kBioRemap) linker.remapped(step);
    return blocks.here(now.host).event(step);
}

Fate Core::Impl::take_steps(std::int64_t until_ns) {
    Fate fate = Fate::kContext;
    while (whole.next_ns() <= until_ns) {
        BlockEvent step = whole.take(common.now.host);
        common.now.last_ns = std::max(common.now.last_ns, step.ts_ns);
        stitcher.advance(common.now.last_ns);
        fate = block_step(step);
    }
    return fate;
}

Fate Core::Impl::whole_event(const BoundClass &cls, const Event &ev) {
    const std::uint32_t host = common.now.host;
    if (cls.kind == ClassKind::kRequestThread) {
        whole.thread(*cls.record, ev, host, common.names.of(ev, cls.comm_slot));
        return Fate::kContext;
    }
    if (common.hosts().several()) blocks.here(host).whole();
    whole.add(cls, ev, common.hosts(), host);
    return take_steps(ev.ts_ns);
}

// While a completion is nobody's yet.
void Core::Impl::woken(const BoundClass &cls, const Event &ev) {
    const std::uint32_t host = common.now.host;
    const std::int64_t tid = common.identities.threads.of_root(host, number_in(ev, cls.sched.tid, -1));
    blocks.here(host).woken(static_cast<std::int32_t>(tid), ev.cpu, ev.ts_ns);
}

}  // namespace opline
