// SPDX-License-Identifier: MIT
// Runs block events written as text through the block model and says what came out, as text.
//
// A case: a title line "# name: what", optional lines of the title's comment, "---", the events, "---", the expected
// conclusions. An event: "time_ns kind key=value …", the kind LTTng's name without block_; keys cpu tid comm dev
// (major:minor) sector nr bytes rwbs (mask or blkparse letters) error old_dev old_sector new_sector rq bio parent, and
// op, batch: the owner that the bio_queued hook answers with. Absent keys: 0, or unknown where the field has that.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "block/block.hpp"

namespace opline::test {

struct CaseEvent {
    BlockEvent event;
    Owner owner;
};

struct Case {
    std::string title;  // with its comment lines
    std::string events_text;
    std::vector<CaseEvent> events;
    std::string expected;
};

// Throw std::runtime_error with line number and reason.
Case parse_case(std::string_view text);
CaseEvent parse_event(std::string_view line);

// Requests in order of their ends, bios in order of theirs, then fates, losses and hops.
std::string conclude(const std::vector<CaseEvent> &, BlockMatch);
// Both ways of matching: one text if they agree, else one after the other.
std::string conclude_both(const std::vector<CaseEvent> &);
std::string text_of(const Case &, std::string_view conclusions);

// Counts of a run, one per line; agreement per hop.
std::string text_of(const BlockCounts &);
std::string read_file(const std::string &path);

}  // namespace opline::test
