// SPDX-License-Identifier: MIT
// One record per block request, put together in BPF (request.bpf.c) and written as an event of a CTF stream
// (request_writer.c). docs/internals/collectors.md says which steps are told how.
// Needs block_event.h and bridge_record.h.
#pragma once

// Besides KIND_REQUEST, and the kinds of block_event.h that are single steps.
#define KIND_BIO 33
#define KIND_REQUEST_THREAD 34
#define KIND_REQUEST_OF_PARTITION 35  // in the stream, as the next one
#define KIND_BIO_OF_PARTITION 36
#define KIND_RECORD_COUNT 37

#define STEP_ABSENT 0xffffffffu  // in the stream, where times are since the first step

// In `flags` of a record.
#define REQUEST_COARSE 1   // its times are in units of 1024 ns: it took more than 4 s
#define REQUEST_UNSEEN 2   // its completion was not seen: its pointer came back without
#define REQUEST_OPEN 4     // what is known so far: further steps are told by another record, or singly
#define REQUEST_LEFT 8     // it was open when the recording ended
#define REQUEST_FRONT 16   // of a bio: merged before the request's first one, else behind its last one
#define REQUEST_UNTOLD 32  // of a bio: the request that it became part of was not seen to be issued
#define REQUEST_QUEUED 64  // in the stream, of a request: its time is that of its bio's Q

struct record_head {
    __u64 time;  // CLOCK_MONOTONIC ns: of the first step; of requests and bios the writer's to find
    __u16 cpu;   // that made the record
    __u8 kind;
    __u8 pad[5];
};

struct request_record {
    struct record_head head;
    __u64 rq, bio, sector;
    __u64 queue, getrq, insert, issue, complete;  // 0: there was none, or another record has it
    __u32 bytes, dev;
    __u32 tid, issue_tid;  // as the kernel numbers them: struct thread_record says who that is
    __u64 cgroup;          // of the bio: cgroups.bpf.c
    __u32 rq_flags;        // at D (I), as the kernel has them
    __u16 rwbs;
    __u16 cpu, issue_cpu, complete_cpu;
    __u16 hw_queue;  // NO_QUEUE: none
    __u16 flags;
    __s16 error;
    __u16 slot_flags;
    __u32 old_dev;
    __u64 old_sector;  // SLOT_PARTITION: the bio's place in its partition
};

struct bio_record {
    struct record_head head;
    __u64 bio, rq, sector;
    __u64 queue, joined, named, complete;  // named: when the request was issued that it is a further bio of
    __u64 cgroup;
    __u32 bytes, dev;
    __u32 tid;
    __u16 rwbs, cpu;
    __u16 flags, slot_flags;
    __s16 error, pad;
    __u32 old_dev, pad2;
    __u64 old_sector;
};

// A step that is told singly.
struct single_record {
    struct record_head head;
    struct block_event e;
};

// Who a thread is, the first time that a CPU meets it, and again when its name has changed.
struct thread_record {
    struct record_head head;
    __u32 kernel_tid, tid, pid;  // the last two as the collector's PID namespace numbers them; all ones: not in it
    char comm[16];
};

// What is open: two arrays of sets, a set addressed by a hash of the pointer, with the pointer inside as proof. The
// writer looks at them to know how far the records are complete. A key is put in before the clock is read and taken
// out when the record lies in the ring buffer: what is under way is in the one or in the other.
#define OPEN_WAYS 8
#define OPEN_SETS 2048

#define SLOT_FILLING 1    // its times are about to be written; of one that is free, too
#define SLOT_OWN 2        // of the tracer itself: left out
#define SLOT_SINGLE 4     // all its steps are told singly
#define SLOT_TOLD 8       // a request: what was known is told, and what comes is told singly
#define SLOT_REQUEUED 16  // a request: it may be issued again
#define SLOT_CUT 32       // a bio: split from another, or what is left of one
#define SLOT_PARTITION 64
#define SLOT_MERGED 128
#define SLOT_FRONT 256

struct open_bio {
    __u64 queue, joined;  // joined: its getrq or merge; 0: not yet
    __u64 sector, old_sector, cgroup;
    __u32 bytes, dev, old_dev, tid;
    __u16 rwbs, cpu, flags;
    __s16 pad;
};

struct open_request {
    __u64 bio, queue, getrq, insert, issue;
    __u64 sector, old_sector, cgroup;
    __u32 bytes, dev, old_dev, tid, issue_tid, rq_flags;
    __u16 rwbs, cpu, issue_cpu, hw_queue, flags, pad;
};

struct bio_set {
    __u64 key[OPEN_WAYS];
    struct open_bio slot[OPEN_WAYS];
};

struct request_set {
    __u64 key[OPEN_WAYS];
    struct open_request slot[OPEN_WAYS];
};

// The sets in which anything has ever been open, of bios and of requests: the others need no look. A mark is made
// before the set's first key is put in, and stays.
enum open_table { OF_BIOS, OF_REQUESTS };
struct open_marks {
    union {
        __u8 of[2][OPEN_SETS];
        __u64 eight[2][OPEN_SETS / 8];
    };
};

// One element per CPU, memory-mapped.
struct request_cpu {
    __u64 lost;       // records that found no room in the ring buffer
    __u64 records;    // requests whose record has a completion
    __u64 unseen;     // completions that were not seen
    __u64 no_slot;    // bios and requests that found no room in their set: told singly
    __u64 chain_cut;  // requests with more bios than are walked
    __u64 own_bios, own_requests;
    __u64 pad[9];
};
