// SPDX-License-Identifier: MIT
// Which CPUs share a hardware queue, as far as flushes show it: no event says so.
// Two flushes that were in flight at once are of two queues. A flush that is issued while a single request waits for
// one is of that request's queue, for a CPU issues for its own queue only (block/blk-mq.c, blk_mq_run_hw_queue).
#include <algorithm>

#include "block/engine.hpp"

namespace opline::block_model {

namespace {
// Requests that waited while nobody else did are sure. Two flushes at once may be one whose completion was lost.
constexpr std::uint32_t kSure = 4;
constexpr std::size_t kMostPairs = 1u << 16;

std::uint64_t pair_of(std::uint32_t a, std::uint32_t b) { return std::uint64_t{std::min(a, b)} << 32 | std::max(a, b); }
}  // namespace

Engine::Kinship Engine::kinship(const Device &d, std::uint32_t a, std::uint32_t b) {
    if (a == b) return Kinship::kTogether;
    if (a == kNoCpu || b == kNoCpu) return Kinship::kPerhaps;
    const Device::Kin *kin = d.kin.find(pair_of(a, b));
    if (!kin) return Kinship::kPerhaps;
    if (kin->together >= kin->apart + kSure) return Kinship::kTogether;
    return kin->apart >= kin->together + kSure ? Kinship::kApart : Kinship::kPerhaps;
}

// Until two flushes were in flight at once, the device has one queue. Then CPUs of one are those whose requests
// complete on the same CPU, where its interrupt is, unless flushes have shown more.
bool Engine::same_queue(const Device &d, std::uint32_t a, std::uint32_t b) {
    const Kinship known = kinship(d, a, b);
    if (known != Kinship::kPerhaps) return known == Kinship::kTogether;
    if (!d.several_queues || a == kNoCpu || b == kNoCpu) return true;
    if (const Device::Kin *kin = d.kin.find(pair_of(a, b)); kin && kin->together != kin->apart)
        return kin->together > kin->apart;
    if (std::max(a, b) >= d.completes_on.size()) return false;
    for (std::uint32_t cpu = 0; cpu < d.completes_on[a].counts.size(); ++cpu)
        if (d.completes_on[a].on(cpu) && d.completes_on[b].on(cpu)) return true;
    return false;
}

// That a device has one queue is sure when what other CPUs' flushes were for has gone on behind enough of them.
bool Engine::nothing_known(const Device &d, std::uint32_t a, std::uint32_t b) {
    constexpr std::uint64_t kEnough = 16;
    return kinship(d, a, b) == Kinship::kPerhaps && !d.several_queues && d.crossed <= kEnough;
}

void Engine::note_together(Device &d, std::uint32_t a, std::uint32_t b, std::uint32_t weight) {
    if (a != b && a != kNoCpu && b != kNoCpu && d.kin.size() < kMostPairs) d.kin[pair_of(a, b)].together += weight;
}

void Engine::note_apart(Device &d, std::uint32_t a, std::uint32_t b, std::uint32_t weight) {
    if (a != b && a != kNoCpu && b != kNoCpu && d.kin.size() < kMostPairs) d.kin[pair_of(a, b)].apart += weight;
}

void Engine::note_completion(Device &d, std::uint32_t issued, std::uint32_t completed) {
    if (issued == kNoCpu || completed == kNoCpu || issued >= kMostCpus) return;
    if (issued >= d.completes_on.size()) d.completes_on.resize(issued + 1);
    d.completes_on[issued].add(completed);
}

void Engine::set_free(Device &d, std::uint32_t cpu, const BlockEvent &e) {
    if (d.flush_cpus.size() >= kMostCpus) return;
    FlushCpu &of = d.flush_cpus[cpu];
    of.free_ns = e.ts_ns;
    of.free_cpu = e.cpu;
}

// Since when this CPU's queue has had no flush and no data of one in flight, and where that ended.
FlushCpu Engine::free_since(const Device &d, std::uint32_t cpu) {
    FlushCpu last;
    d.flush_cpus.for_each([&](std::uint32_t other, const FlushCpu &of) {
        if (of.free_ns > last.free_ns && same_queue(d, cpu, other)) last = of;
    });
    return last;
}

}  // namespace opline::block_model
