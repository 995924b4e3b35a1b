// SPDX-License-Identifier: MIT
#include "block/hardware_queues.hpp"

#include <algorithm>

namespace opline::block_model {
namespace {

// A request that waited alone is sure. Two flushes at once may be one flush with a lost completion.
constexpr std::uint32_t kSure = 4;
constexpr std::size_t kMostPairs = 1u << 16;

std::uint64_t pair_of(std::uint32_t a, std::uint32_t b) { return std::uint64_t{std::min(a, b)} << 32 | std::max(a, b); }

}  // namespace

void HardwareQueues::tell(std::uint32_t cpu, std::uint32_t queue) {
    if (cpu >= kMostCpus || queue == kNoQueue) return;
    if (cpu >= told_.size()) told_.resize(cpu + 1, kNoQueue);
    told_[cpu] = std::min(told_[cpu], queue);
}

HardwareQueues::Kinship HardwareQueues::kinship(std::uint32_t a, std::uint32_t b) const {
    if (a == b) return Kinship::kTogether;
    if (a == kNoCpu || b == kNoCpu) return Kinship::kPerhaps;
    if (const std::uint32_t queue = queue_of(a), other = queue_of(b); queue != kNoQueue && other != kNoQueue)
        return queue == other ? Kinship::kTogether : Kinship::kApart;
    const Kin *kin = kin_.find(pair_of(a, b));
    if (!kin) return Kinship::kPerhaps;
    if (kin->together >= kin->apart + kSure) return Kinship::kTogether;
    return kin->apart >= kin->together + kSure ? Kinship::kApart : Kinship::kPerhaps;
}

// Without a better proof from flushes, two CPUs share a queue if their requests complete on the same CPU, the CPU of
// the queue's interrupt.
bool HardwareQueues::same(std::uint32_t a, std::uint32_t b) const {
    const Kinship known = kinship(a, b);
    if (known != Kinship::kPerhaps) return known == Kinship::kTogether;
    if (!several_ || a == kNoCpu || b == kNoCpu) return true;
    if (const Kin *kin = kin_.find(pair_of(a, b)); kin && kin->together != kin->apart)
        return kin->together > kin->apart;
    if (std::max(a, b) >= completes_on_.size()) return false;
    for (std::uint32_t cpu = 0; cpu < completes_on_[a].counts.size(); ++cpu)
        if (completes_on_[a].on(cpu) && completes_on_[b].on(cpu)) return true;
    return false;
}

bool HardwareQueues::completes(std::uint32_t issued, std::uint32_t on) const {
    if (on == kNoCpu) return false;
    if (issued < completes_on_.size() && completes_on_[issued].on(on)) return true;
    const std::uint32_t queue = queue_of(issued);
    return queue != kNoQueue && queue == queue_of(on) && !knows_completions(issued);
}

bool HardwareQueues::never_completes(std::uint32_t issued, std::uint32_t on) const {
    if (issued >= completes_on_.size()) return false;
    return completes_on_[issued].most >= kNever && completes_on_[issued].count(on) == 0;
}

bool HardwareQueues::nothing_known(std::uint32_t a, std::uint32_t b) const {
    return kinship(a, b) == Kinship::kPerhaps && !several_ && crossed_ <= kEnough;
}

HardwareQueues::Kin *HardwareQueues::learned(std::uint32_t a, std::uint32_t b) {
    const bool is_pair = a != b && a != kNoCpu && b != kNoCpu;
    return is_pair && kin_.size() < kMostPairs ? &kin_[pair_of(a, b)] : nullptr;
}

void HardwareQueues::note_together(std::uint32_t a, std::uint32_t b, std::uint32_t weight) {
    if (Kin *kin = learned(a, b)) kin->together += weight;
}

void HardwareQueues::note_apart(std::uint32_t a, std::uint32_t b, std::uint32_t weight) {
    if (Kin *kin = learned(a, b)) kin->apart += weight;
}

void HardwareQueues::note_completion(std::uint32_t issued, std::uint32_t completed) {
    if (issued == kNoCpu || completed == kNoCpu || issued >= kMostCpus) return;
    if (issued >= completes_on_.size()) completes_on_.resize(issued + 1);
    completes_on_[issued].add(completed);
}

}  // namespace opline::block_model
