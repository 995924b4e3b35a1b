// SPDX-License-Identifier: MIT
// Hits of declared probes (a model's [probes]): the record that a program hands to the bridge. The programs themselves
// are generated (opline/capture/probes/hit_programs.py): their fields lie in `payload` as they do in the trace, 8 bytes
// for an integer, so much as was asked for a text.
#pragma once

#define KIND_COUNT 256  // programs: one for each set of places of a probe whose arguments lie alike
#define HIT_PAYLOAD 256

struct hit_head {
    __u64 ktime;  // CLOCK_MONOTONIC ns, read after the record was reserved: see bridge.c for why
    __u32 lost;   // records of this CPU that found no room in the ring buffer so far
    __u16 cpu;
    __u8 kind;
    __u8 pad;
    __u32 tid;  // in the collector's PID namespace; all ones: the task is not in it
    __u32 pid;
    char comm[16];
};
