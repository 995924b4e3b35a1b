// SPDX-License-Identifier: MIT
#include "core/settler.hpp"

#include "core/stage_states.hpp"
#include "core/stage_waits.hpp"
#include "stages/lost_stages.hpp"

namespace opline {

Settler::Terms::Terms(StringPool &strings)
    : no_block_events(strings.intern("no_block_events")),
      lost_stage(strings.intern("unknown (events lost)")),
      lost_kind(strings.intern("unknown")) {}

Settler::Settler(Common &common, const Parts &parts)
    : common_(common),
      parts_(parts),
      attributor_(common.plan, common.strings, parts.stitcher.thread_points(), common.hosts()),
      words_(common.strings) {}

void Settler::settle(Op &op) {
    auto &[stitcher, linker, blocks, states, lost_ends, members, outputs] = parts_;
    if (blocks.any_undecided())
        blocks.each(
            [&](std::uint32_t, BlockModel &model) { model.decide(op.begin_ns, op.end_ns, common_.now.last_ns); });
    if (attributor_.attribute(op, found_)) ++counts_.by_shape;
    stitcher.details().name_late(op, found_.first_tid);
    SettledOp settled{op, found_};
    settled.complete = op.complete();
    const std::int64_t end_ns = settled.complete ? op.end_ns : common_.now.last_ns;
    const bool lost = op.completion_missing || linker.lost().overlap(op.begin_ns, end_ns);
    settled.tainted = lost && (!settled.complete || lost_ends.overlap(op.begin_ns, end_ns));
    if (settled.complete) {
        complete(op, lost, settled);
    } else {
        ++counts_.incomplete;
        settled.reason = why_incomplete(op);
    }
    counts_.tainted += settled.tainted;
    counts_.unsplit += settled.unsplit;
    counts_.failed += op.failed;
    members.settle(settled, end_ns, found_.first_comm);
    counts_.late_transitions += found_.late;
    linker.checks().settled(op);
    if (found_.requests.empty()) {
        if (outputs.tables.keeps_ops())
            settled.no_request =
                blocks.expected() ? common_.strings.intern(linker.reasons().no_request(op)) : words_.no_block_events;
        counts_.unlinked += blocks.expected();
    }
    explain(op);
    const bool counts = members.counts(settled);
    outputs.op(counts, settled);
    for (const auto &bio : found_.shared_bios) {
        LinkRow row;
        row.op = op.serial;
        row.rules = rule::kBatch;
        row.shared = true;
        outputs.link(counts, row, bio, kNoTime, kNoTime);
    }
}

void Settler::complete(const Op &op, bool lost, SettledOp &settled) {
    ++counts_.complete;
    if (lost && !settled.tainted)
        settled.unsplit = forget_lost_stages(found_, parts_.linker.lost(), op.completion_missing, words_.lost_stage,
                                             words_.lost_kind);
    std::int64_t sum_ns = found_.unattributed_ns;
    for (const auto &s : found_.stages) sum_ns += s.duration_ns;
    if (sum_ns != op.end_ns - op.begin_ns) ++counts_.partition_violations;
}

std::uint32_t Settler::why_incomplete(const Op &op) const {
    return common_.strings.intern(op.io.end_untold                                   ? "end_untold"
                                  : op.state == OpState::kEnded                      ? "ends_before_begin"
                                  : parts_.stitcher.locator().owns_all_keys_lost(op) ? "key_reused"
                                                                                     : "no_end");
}

// States and waits of the threads in the op's stages.
void Settler::explain(Op &op) {
    const RunTables &tables = parts_.outputs.tables;
    if (tables.keeps_states())
        split_states(op, found_, common_.hosts(), parts_.states.known(), tables.keeps_state_parts());
    found_.waits.clear();
    if (tables.keeps_waits() && !found_.states.empty() &&
        !explain_waits(op, found_, common_.hosts(), parts_.states.waits))
        ++counts_.partition_violations;
}

}  // namespace opline
