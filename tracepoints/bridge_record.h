// SPDX-License-Identifier: MIT
// What every set of BPF programs and the bridge (bridge.c) share besides the records themselves. A record begins with
// `ktime` and has `lost`, `cpu` and `kind` (struct block_event, struct hit_head). The bridge carries the programs'
// text inside itself, this file first, so that layout and program cannot drift apart.
// Needs __u8 ... __u64, from linux/types.h.
#pragma once

#define OWN_TGIDS 8
#define CALLS_WITH_FILE 15  // the first so many opline_calls have a file's descriptor as first argument
// opline_calls that read or write where the file is, or where they say; what writes to a file opened with O_APPEND
// writes at its end
#define CALL_NUMBER_read 1
#define CALL_NUMBER_write 2
#define CALL_NUMBER_pwrite64 4
#define CALL_NUMBER_readv 5
#define CALL_NUMBER_writev 6
#define CALL_NUMBER_pwritev 8
#define CALL_NUMBER_preadv2 9
#define CALL_NUMBER_pwritev2 10
#define CALL_NUMBER_sendfile64 15
#define CALL_NUMBER_io_uring_enter 21
#define CALL_NUMBER_copy_file_range 22
#define CALL_NUMBER_splice 23
// opline_calls that queue I/Os by iocbs, and that take them
#define CALL_NUMBER_io_submit 18
#define CALL_NUMBER_io_getevents 19
#define CALL_NUMBER_io_pgetevents 20
#define CALL_NUMBERS 512  // a power of two above every system call's number

// One element of a memory-mapped array: written by the bridge, read by every program.
struct bridge_control {
    __u64 mask;                  // bit per kind of event: wanted now
    __u64 own_live;              // how many bios of ours are under way; 0: no need to look them up
    __u32 own_tgids[OWN_TGIDS];  // whose I/O is left out; 0: unused
    __u64 calls;                 // bit per opline_call (calls.h): wanted now
    __u32 follow;    // the process whose system calls are wanted, put into the tree by its next one; 0: none
    __u32 followed;  // by the programs: the root's number of that process, once it is in the tree
    __u32 workers;   // by the programs: a worker of an io_uring has queued a bio
    __u32 retells;   // the iterator over threads tells again what holds: nobody new is followed
    __u8 call_of[CALL_NUMBERS];  // system call's number → opline_call; 0: not ours
};

// One element per CPU, memory-mapped as well; whole cache lines against false sharing.
struct bridge_cpu {
    __u64 lost;            // records that found no room
    __u64 own_bios;        // bios left out because they are ours
    __u64 own_events;      // events of such bios and their requests, left out too
    __u64 own_overflow;    // bios of ours that found no room in the table: recorded like any other
    __u64 chain_cut;       // requests with more bios than are walked
    __u64 states;          // threads' states that were put into the ring buffer
    __u64 lost_states;     // given up, so that what else there is finds room
    __u64 states_taken;    // written by the bridge: how many of `states` it has taken out
    __u64 untold_threads;  // threads for which there was no room in the table
    __u64 calls_32bit;     // entries and exits left out: a 32-bit program's, with the number of a call that is wanted
    __u64 irq;             // which interrupts this CPU is in now: wakers.bpf.c
    __u64 lost_followed;   // as lost_states, of threads that are not of the recorded processes
    __u64 window;          // of the budget for those: which one it is, and how many records it has had
    __u64 windowed;
    __u64 stacks;  // different stacks that this CPU met first, and those that found no room
    __u64 lost_stacks;
    __u64 stack_window, stacks_windowed, long_windowed;  // of the stacks' budget, as above
    __u64 stacks_left_out;
    __u64 pad[4];
};
