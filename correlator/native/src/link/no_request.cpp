// SPDX-License-Identifier: MIT
#include "link/no_request.hpp"

#include <algorithm>
#include <limits>

namespace opline {

bool NoRequest::passed_io(const Op &op) const {
    return op.transitions.any_kind(
        [this](const TransitionKind &t) { return t.spec != kNoSpec && l_.io_points[t.spec]; });
}

// The first reason that holds.
const char *NoRequest::no_request(const Op &op) {
    const bool complete = op.complete();
    if (l_.lost.overlap(op.begin_ns, complete ? op.end_ns : std::numeric_limits<std::int64_t>::max()))
        return "lost_events";
    if (op.failed) return "failed";
    if (op.deferred > 0) return "written_back_later";
    if (op.bios > 0) return op.bios_done > 0 ? "no_requests_made" : "not_completed";
    if (op.number_taken) return "another_process";
    if (op.io.end_untold) return "end_untold";
    if (!complete) return l_.locator.owns_all_keys_lost(op) ? "superseded" : "trace_ended";
    return l_.locator.has_untold_thread(op) ? "thread_unknown" : nothing_queued(op);
}

const char *NoRequest::nothing_queued(const Op &op) {
    const Direction direction = directions_.direction_of(op);
    if (op.synced) return op.covered ? "synced_by_another" : "nothing_to_sync";
    if (direction == Direction::kWrite && !op.has_offset && op.offset_bytes < 0) return "not_a_file";
    const bool io_expected = !l_.io_points.empty() && !op.io.is_io;
    const bool io_passed = io_expected && passed_io(op);
    io_seen_ = io_seen_ || io_passed;
    if (io_expected && !io_passed && (direction != Direction::kRead || !io_seen_)) return "no_io_seen";
    if (direction == Direction::kRead) return "cached";
    if (op.io.is_io && direction == Direction::kUnknown) return "nothing_queued";
    if (!op.has_length || op.length_bytes <= 0)
        return direction == Direction::kWrite && !op.has_length ? "no_length" : "not_an_io";
    if (direction == Direction::kUnknown) return "nothing_queued";
    if (op.covered) return "synced_by_another";
    if (op.had_window && places_.target_of(op).raw_somewhere()) return "nothing_queued";
    if (l_.maps.empty()) return "no_extent_map";
    if (!op.had_window) return op.has_offset ? "no_io_points" : "no_offset";
    const std::uint32_t file = places_.target_of(op).file;
    const auto first = static_cast<std::uint64_t>(op.offset_bytes) / kPageBytes;
    const auto last =
        (static_cast<std::uint64_t>(op.offset_bytes) + static_cast<std::uint64_t>(op.length_bytes) - 1) / kPageBytes;
    bool mapped = false;
    for (std::uint64_t page = first; page <= std::min(last, first + PageOwners::kLimit); ++page) {
        if (!l_.maps.has(file, page * kPageSectors)) continue;
        mapped = true;
        bool any;
        if (pages_.owners().owner(file, page, any).op == op_ref(op)) return "written_back_later";
    }
    if (!mapped) return "no_extent_map";
    return pages_.owners().evicted() > 0 ? "page_owner_evicted" : "overwritten";
}

}  // namespace opline
