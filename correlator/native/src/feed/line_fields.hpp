// SPDX-License-Identifier: MIT
// A block event that is printed field by field, with the names of TP_STRUCT__entry in the kernel's
// include/trace/events/block.h:
//
//     dev=0x700001 (7340033) sector=0x8 (8) nr_sector=0x8 (8) error=0x0 (0) ioprio=0x4004 (16388) rwbs=WS cmd=
//     dev=7340033 sector=8 nr_sector=8 bytes=4096 ioprio=0 rwbs=WS comm=fio cmd=
//
// The first is ftrace's option "fields" (kernel 6.4, print_fields() in kernel/trace/trace_output.c). The second is that
// of libtraceevent (tep_print_fields()): `trace-cmd report -R`, and perf where it does not understand the TP_printk
// ("[FAILED TO PARSE]").
#pragma once
#include "feed/line.hpp"
#include "feed/line_cursor.hpp"

namespace opline::feed {

// From behind `dev=`. `line.event` is known. False where a field is missing that the event must have.
bool fields_of(LineCursor &c, Line &line);

}  // namespace opline::feed
