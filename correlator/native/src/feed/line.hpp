// SPDX-License-Identifier: MIT
// A line of text that is a block event, as `perf script`, ftrace (trace, trace_pipe) and `trace-cmd report` print it:
//
//     tar 16072 [001] 2199495.030133: block:block_rq_issue: 202,16 R 0 () 21997888 + 8 [tar]
//     tar-16072 [001] d..1. 2199495.030133: block_rq_issue: 202,16 R 4096 () 21997888 + 8 none,0,0 [tar]
//
// The first is perf's, the second ftrace's. What differs between kernels is parsed by structure, never by the number of
// a field: with and without the bytes, with and without the I/O priority (kernel 6.x), with and without ftrace's flags
// and thread group, stamps of us and of ns. Names of threads may have spaces, hyphens and brackets. Source: TP_printk
// in the kernel's include/trace/events/block.h.
//
// An event may also be printed field by field (line_fields.hpp).
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace opline::feed {

// Which numbers an event's class has besides those that all have: kError and so on; see kLineEvents.
enum class Extra : std::uint8_t { kNone, kError, kOld, kSplit };

struct LineEvent {
    std::string_view name;
    Extra extra;
};

// The events that say something of a request. The last two, of kernel 6.5, are about its accounting: the start is right
// behind the allocation (blk_account_io_start()), the end behind the completion, when no sector is left of the request.
constexpr std::array<LineEvent, 17> kLineEvents = {{{"block_rq_insert", Extra::kNone},
                                                    {"block_rq_issue", Extra::kNone},
                                                    {"block_rq_merge", Extra::kNone},
                                                    {"block_bio_queue", Extra::kNone},
                                                    {"block_getrq", Extra::kNone},
                                                    {"block_bio_backmerge", Extra::kNone},
                                                    {"block_bio_frontmerge", Extra::kNone},
                                                    {"block_bio_bounce", Extra::kNone},
                                                    {"block_rq_complete", Extra::kError},
                                                    {"block_rq_requeue", Extra::kError},
                                                    {"block_rq_error", Extra::kError},
                                                    {"block_bio_complete", Extra::kError},
                                                    {"block_bio_remap", Extra::kOld},
                                                    {"block_rq_remap", Extra::kOld},
                                                    {"block_split", Extra::kSplit},
                                                    {"block_io_start", Extra::kNone},
                                                    {"block_io_done", Extra::kNone}}};

struct Line {
    std::uint32_t event = 0;  // of kLineEvents
    std::int64_t ts_ns = 0;
    std::uint32_t cpu = 0;
    std::string_view comm;  // these two lie in the text
    std::string_view rwbs;
    std::int64_t tid = 0;
    std::uint32_t dev = 0;  // kernel-internal: major << 20 | minor
    std::uint64_t sector = 0;
    std::uint64_t number = 0;  // sectors; of a split the sector where the remainder begins
    std::uint32_t old_dev = 0;
    std::uint64_t old_sector = 0;
    std::int64_t error = 0;
    bool open = false;  // no bracket closes the line: its end may have been cut off
};

// Whether the text, a line without its end, is a block event that can be read.
bool parse_line(std::string_view text, Line &line);

// Whether it ought to be one: it has the name of an event that says something of a request.
bool is_block_line(std::string_view text);

// feed/lost.cpp: how many events the tracer says there that it has lost; 0: some, without a number; nullopt: the line
// is not about losses.
// perf script --show-lost-events, perf trace, bpftrace and bcc ("Lost 12 events"), ftrace and trace-cmd
// ("CPU:2 [LOST 12 EVENTS]", "[12 EVENTS DROPPED]", both without a number, too), and ftrace's head
// ("# entries-in-buffer/entries-written: 100/120   #P:4": 20 were overwritten before the first that is there).
std::optional<std::uint64_t> lost_events(std::string_view text);

}  // namespace opline::feed
