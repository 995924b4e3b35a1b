// SPDX-License-Identifier: MIT
// Which CPUs share a hardware queue of a device. The kernel has one flush machinery per hardware queue
// (block/blk-flush.c), and a request waits in the machinery of the CPU that allocated it (block/blk-mq.c,
// blk_mq_get_ctx()).
//
// Facts: the recording's lists of CPUs (/sys/block/DEV/mq/N/cpu_list), and the queue that an event of a request names.
// Without facts one hardware queue is assumed until flushes show several. Then the class learns from flushes:
//   - Two flushes in flight at once belong to two queues.
//   - A flush that is issued while a single request waits belongs to the queue of that request, because a CPU issues
//     for its own queues only (block/blk-mq.c, blk_mq_run_hw_queue()).
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "base/flat_map.hpp"
#include "block/block.hpp"

namespace opline::block_model {

constexpr std::size_t kMostCpus = std::size_t{1} << 12;

// CPUs where the requests issued by one CPU completed. A rare CPU is a mistake.
struct Completions {
    std::array<std::uint32_t, 64> counts{};  // by CPU, mod 64
    std::uint32_t most = 0;
    void add(std::uint32_t cpu) { most = std::max(most, ++counts[cpu % counts.size()]); }
    bool on(std::uint32_t cpu) const { return count(cpu) > most / 8; }
    std::uint32_t count(std::uint32_t cpu) const { return counts[cpu % counts.size()]; }
};

class HardwareQueues {
  public:
    enum class Kinship : std::uint8_t { kApart, kPerhaps, kTogether };

    // The CPU's queue for writes and flushes. Among several queues of a CPU it is the first: queues for reads and
    // polling have higher numbers (block/blk-mq.c, enum hctx_type).
    void tell(std::uint32_t cpu, std::uint32_t queue);
    std::uint32_t queue_of(std::uint32_t cpu) const { return cpu < told_.size() ? told_[cpu] : kNoQueue; }
    // No facts: the class assumes or learns the device's queues.
    bool are_assumed() const { return told_.empty(); }

    Kinship kinship(std::uint32_t cpu, std::uint32_t other) const;
    // The best guess.
    bool same(std::uint32_t cpu, std::uint32_t other) const;
    // Not even known that the device has one queue. One queue is sure as soon as enough requests completed after other
    // CPUs' flushes.
    bool nothing_known(std::uint32_t cpu, std::uint32_t other) const;
    bool several() const { return several_; }
    // Requests issued by one CPU complete on the other CPU. Before completions show the CPU, any CPU of the same queue
    // counts, as the queue's interrupt may be there.
    bool completes(std::uint32_t issued, std::uint32_t on) const;
    bool knows_completions(std::uint32_t issued) const {
        return issued < completes_on_.size() && completes_on_[issued].most >= kEnough;
    }

    // Many requests that the CPU issued have completed, and none on the other one.
    bool never_completes(std::uint32_t issued, std::uint32_t on) const;

    void note_several() { several_ = true; }
    void note_crossed() { ++crossed_; }
    void note_together(std::uint32_t cpu, std::uint32_t other, std::uint32_t weight);
    void note_apart(std::uint32_t cpu, std::uint32_t other, std::uint32_t weight);
    void note_completion(std::uint32_t issued, std::uint32_t completed);

  private:
    static constexpr std::uint32_t kEnough = 16, kNever = 100;
    struct Kin {
        std::uint32_t together = 0, apart = 0;
    };
    Kin *learned(std::uint32_t cpu, std::uint32_t other);
    std::vector<std::uint32_t> told_;        // by CPU
    FlatMap<std::uint64_t, Kin> kin_;        // by pair of CPUs
    bool several_ = false;                   // two flushes were in flight at once
    std::uint64_t crossed_ = 0;              // requests completed after a flush that another CPU issued
    std::vector<Completions> completes_on_;  // by issuing CPU
};

}  // namespace opline::block_model
