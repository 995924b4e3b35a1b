// SPDX-License-Identifier: MIT
#include "core/shortfall.hpp"

#include <algorithm>
#include <limits>

namespace opline {
namespace {

constexpr std::int64_t kFirst = std::numeric_limits<std::int64_t>::min(),
                       kLast = std::numeric_limits<std::int64_t>::max();

}  // namespace

void Shortfall::know(const KnownStreams &streams) {
    for (const auto &part : streams.unreadable) {
        const std::int64_t begin_ns = part.begin_ns == kNoTime ? kFirst : part.begin_ns;
        const std::int64_t end_ns = part.end_ns == kNoTime ? kLast : part.end_ns;
        linker_.discarded(begin_ns, end_ns);
        ends_.lost_in(streams.host, part.domain, part.channel, begin_ns, end_ns);
    }
    if (streams.kernel_cpus.empty()) return;
    auto &known = cpus_[common_.strings.intern(streams.host)];
    for (const std::uint32_t cpu : streams.kernel_cpus)
        if (cpu < kMostCpus) {
            if (known.size() <= cpu) known.resize(cpu + 1);
            known[cpu] = true;
        }
}

void Shortfall::cpu_named(std::int64_t cpu) {
    std::vector<bool> *known = cpus_.find(common_.now.host);
    if (!known || cpu < 0 || cpu >= kMostCpus ||
        (static_cast<std::size_t>(cpu) < known->size() && (*known)[static_cast<std::size_t>(cpu)]))
        return;
    if (known->size() <= static_cast<std::size_t>(cpu)) known->resize(static_cast<std::size_t>(cpu) + 1);
    (*known)[static_cast<std::size_t>(cpu)] = true;
    ++counts_.streams_missing;
    missing("CPU " + std::to_string(cpu), Domain::kKernel, kNoTime, kNoTime, 0);
}

void Shortfall::missing(std::string_view stream, Domain domain, std::int64_t begin_ns, std::int64_t end_ns,
                        std::uint64_t packets) {
    lost_anywhere(begin_ns == kNoTime ? kFirst : begin_ns, end_ns == kNoTime ? kLast : end_ns);
    const bool for_good = end_ns == kNoTime;
    const std::int64_t from_ns = begin_ns == kNoTime ? kFirst : begin_ns;
    if (domain == Domain::kKernel) for_good ? states_.lost_from(from_ns) : states_.lost(end_ns);
    if (!for_good) numbers_.end(hole_found());
    stitcher_.events_lost();
    counts_.discarded_packets += packets;
    tables_.discarded(stream, begin_ns, end_ns, packets, true);
}

void Shortfall::lost_anywhere(std::int64_t begin_ns, std::int64_t end_ns) {
    linker_.discarded(begin_ns, end_ns);
    ends_.lost_anywhere(begin_ns, end_ns);
}

void Shortfall::lost_in(std::uint32_t stream, std::int64_t begin_ns, std::int64_t end_ns) {
    linker_.discarded(begin_ns, end_ns);
    ends_.lost_in(stream, begin_ns, end_ns);
}

void Shortfall::discarded(const Gap &gap) {
    const bool packets = gap.kind == Gap::Kind::kPackets;
    stitcher_.events_lost();
    if (states_.in_stream(gap.stream)) states_.lost(gap.end_ns);
    numbers_.end(hole_found());
    if (gap.begin_ns != kNoTime && gap.end_ns != kNoTime) lost_in(gap.stream, gap.begin_ns, gap.end_ns);
    holes_.discarded(gap.begin_ns, gap.end_ns);
    (packets ? counts_.discarded_packets : counts_.discarded_events) += gap.count;
    counts_.discarded_unknown += gap.count == 0;
    tables_.discarded(common_.streams.name(gap.stream), gap.begin_ns, gap.end_ns, gap.count, packets);
}

void Shortfall::damaged(const Gap &gap) {
    if (states_.in_stream(gap.stream)) states_.lost_from(gap.begin_ns);
    lost_in(gap.stream, gap.begin_ns, kLast);
    counts_.damages.push_back({common_.streams.name(gap.stream), gap.begin_ns, std::string(gap.why)});
}

std::uint64_t Shortfall::counter_of(const BoundClass &cls, const Event &ev) const {
    return thread_key(common_.now.host, number_in(ev, cls.number.cpu, 0)) ^
           static_cast<std::uint64_t>(cls.number.collector) << 40;
}

void Shortfall::number_passed(const BoundClass &cls, const Event &ev) {
    const std::int64_t number = number_in(ev, cls.number.slot, 0);
    if (number <= 0 || number_in(ev, cls.number.cpu, -1) < 0) return;
    numbers_.passed(counter_of(cls, ev), static_cast<std::uint64_t>(number), ev.ts_ns, hole_found());
}

void Shortfall::collector_told(const BoundClass &cls, const Event &ev) {
    if (cls.count_slot != kNoSlot && ev.slots[cls.count_slot].is_number())
        counts_.collector_lost += ev.slots[cls.count_slot].u;
    if (number_in(ev, cls.number.cpu, -1) >= 0)
        numbers_.told(counter_of(cls, ev), static_cast<std::uint64_t>(number_in(ev, cls.count_slot, 0)), ev.ts_ns);
    const std::uint32_t host = common_.now.host;
    const std::int64_t until = number_in(ev, cls.sched.until, kNoTime);
    const std::int64_t until_ns = until == kNoTime ? ev.ts_ns : common_.hosts().time(host, until);
    if (const std::int64_t since = number_in(ev, cls.sched.since, kNoTime); since != kNoTime)
        linker_.discarded(common_.hosts().time(host, since), until_ns);
    if (cls.sched.loses) states_.lost(std::max(ev.ts_ns, until_ns));
}

void Shortfall::last_number() {
    numbers_.end(hole_found());
    holes_.each_unexplained([this](const Numbers::Hole &hole) {
        counts_.events_missing += hole.missing;
        tables_.missed(std::nullopt, hole.begin_ns, hole.end_ns, hole.missing);
    });
}

void Shortfall::steps_missing(std::optional<std::uint32_t> dev, std::int64_t begin_ns, std::int64_t end_ns,
                              std::uint64_t count, const Request *of) {
    counts_.events_missing += count;
    tables_.missed(dev, begin_ns, end_ns, count);
    if (!of || !linker_.requests().waiters_known(*of)) return linker_.discarded(begin_ns, end_ns);
    linker_.requests().doubt(*of);
    for (const Owner &owner : of->owners)
        if (Op *op = stitcher_.ops().find(owner.op)) op->completion_missing = true;
}

}  // namespace opline
