// SPDX-License-Identifier: MIT
// Events that are lost, as readers, tracers, collectors and other events tell.
#include "core/impl.hpp"

namespace opline {

// Could events of threads' states be missing where this stream's are?
bool Core::Impl::carries_states(std::uint32_t stream) const {
    const StreamDecl &at = streams[stream];
    if (at.domain == Domain::kKernel) return true;
    return collects_states && (sched_events == 0 || at.channel == streams[sched_stream].channel);
}

void Core::Impl::lost_in(std::uint32_t stream, std::int64_t begin_ns, std::int64_t end_ns) {
    linker.discarded(begin_ns, end_ns);
    lost_ends.lost_in(stream, begin_ns, end_ns);
}

void Core::Impl::lost_anywhere(std::int64_t begin_ns, std::int64_t end_ns) {
    linker.discarded(begin_ns, end_ns);
    lost_ends.lost_anywhere(begin_ns, end_ns);
}

void Core::Impl::discarded(const Gap &gap) {
    const bool packets = gap.kind == Gap::Kind::kPackets;
    stitcher.events_lost();
    if (carries_states(gap.stream)) states_lost(gap.end_ns);
    numbers.end(numbers_missed());
    if (gap.begin_ns != kNoTime && gap.end_ns != kNoTime) lost_in(gap.stream, gap.begin_ns, gap.end_ns);
    holes.discarded(gap.begin_ns, gap.end_ns);
    (packets ? discarded_packets : discarded_events) += gap.count;
    discarded_unknown += gap.count == 0;
    tables.discarded(stream_name(streams[gap.stream]), gap.begin_ns, gap.end_ns, gap.count, packets);
}

void Core::Impl::collector_lost_some(const BoundClass &cls, const Event &ev) {
    if (cls.count_slot != kNoSlot && ev.slots[cls.count_slot].is_number()) collector_lost += ev.slots[cls.count_slot].u;
    if (number_in(ev, cls.number.cpu, -1) >= 0)
        numbers.told(counter_of(cls, ev), static_cast<std::uint64_t>(number_in(ev, cls.count_slot, 0)), ev.ts_ns);
    const Hosts &hosts = identities.threads.hosts;
    const std::int64_t until = number_in(ev, cls.sched.until, kNoTime);
    const std::int64_t until_ns = until == kNoTime ? ev.ts_ns : hosts.time(current_host, until);
    if (const std::int64_t since = number_in(ev, cls.sched.since, kNoTime); since != kNoTime)
        linker.discarded(hosts.time(current_host, since), until_ns);
    if (cls.sched.loses) states_lost(std::max(ev.ts_ns, until_ns));
}

void Core::Impl::damaged(const Gap &gap) {
    if (carries_states(gap.stream)) sched.lost_from(gap.begin_ns);
    lost_in(gap.stream, gap.begin_ns, std::numeric_limits<std::int64_t>::max());
    damages.push_back({stream_name(streams[gap.stream]), gap.begin_ns, std::string(gap.why)});
}

void Core::Impl::missing(std::string_view stream, Domain domain, std::int64_t begin_ns, std::int64_t end_ns,
                         std::uint64_t packets) {
    constexpr auto kFirst = std::numeric_limits<std::int64_t>::min(), kLast = std::numeric_limits<std::int64_t>::max();
    lost_anywhere(begin_ns == kNoTime ? kFirst : begin_ns, end_ns == kNoTime ? kLast : end_ns);
    const bool for_good = end_ns == kNoTime;
    const std::int64_t from_ns = begin_ns == kNoTime ? kFirst : begin_ns;
    if (domain == Domain::kKernel) for_good ? sched.lost_from(from_ns) : states_lost(end_ns);
    if (!for_good) numbers.end(numbers_missed());
    stitcher.events_lost();
    discarded_packets += packets;
    tables.discarded(stream, begin_ns, end_ns, packets, true);
}

void Core::Impl::unreadable(const std::string &host, Domain domain, const std::string &channel, std::int64_t begin_ns,
                            std::int64_t end_ns) {
    if (begin_ns == kNoTime) begin_ns = std::numeric_limits<std::int64_t>::min();
    if (end_ns == kNoTime) end_ns = std::numeric_limits<std::int64_t>::max();
    linker.discarded(begin_ns, end_ns);
    lost_ends.lost_in(host, domain, channel, begin_ns, end_ns);
}

void Core::Impl::missed(std::optional<std::uint32_t> dev, std::int64_t begin_ns, std::int64_t end_ns,
                        std::uint64_t count, const Request *of) {
    events_missing += count;
    tables.missed(dev, begin_ns, end_ns, count);
    if (!of || !linker.requests().waiters_known(*of)) return linker.discarded(begin_ns, end_ns);
    linker.requests().doubt(*of);
    for (const Owner &owner : of->owners)
        if (Op *op = stitcher.ops().find(owner.op)) op->completion_missing = true;
}

}  // namespace opline
