// SPDX-License-Identifier: MIT
// Every input event has exactly one fate; the counts per event class sum to the input.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace opline {

// Fixed precedence: the first fate that holds. A further effect of an event counts as a role, not as a fate.
enum class Fate : std::uint8_t {
    kTransition,       // of an op (late ones included)
    kBatch,            // work of a batch, shared by its members
    kRequestStep,      // of a block request that serves an op
    kBackground,       // of a block request, bio or thread without an owner
    kContext,          // sched, statedump, key-only, watermark, plug
    kIgnored,          // by rule: no point of the model names it, or the model says `ignore`
    kOrphanNoOp,       // a point whose key has no op (the op began before the trace, or its begin is lost)
    kOrphanNoKey,      // a point without a key, on a thread without an op
    kOrphanSettled,    // a point whose op settled too long ago
    kOrphanRequest,    // a block step whose request or bio is unknown
    kOrphanMalformed,  // a field needed by the point or the block model is absent or of another type
    kCount
};

constexpr std::array<std::string_view, static_cast<std::size_t>(Fate::kCount)> kFateNames = {"transition",
                                                                                             "batch",
                                                                                             "request_step",
                                                                                             "background",
                                                                                             "context",
                                                                                             "ignored",
                                                                                             "orphan:no_op_for_key",
                                                                                             "orphan:no_key_no_thread",
                                                                                             "orphan:op_settled",
                                                                                             "orphan:no_request",
                                                                                             "orphan:malformed"};

using FateCounts = std::array<std::uint64_t, static_cast<std::size_t>(Fate::kCount)>;

}  // namespace opline
