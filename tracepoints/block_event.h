// SPDX-License-Identifier: MIT
// What the BPF programs (block.bpf.c) hand to the bridge (bridge.c). Both are built from this one file: the bridge
// carries the programs' text inside itself, so that layout and program cannot drift apart.
// Needs __u8 ... __u64, from linux/types.h.
#pragma once

enum block_kind {
    KIND_BIO_QUEUE,
    KIND_GETRQ,
    KIND_BIO_BACKMERGE,
    KIND_BIO_FRONTMERGE,
    KIND_SPLIT,
    KIND_BIO_REMAP,
    KIND_BIO_COMPLETE,
    KIND_RQ_INSERT,
    KIND_RQ_ISSUE,
    KIND_RQ_BIO,  // our own: a further bio of the request that was just issued
    KIND_RQ_REQUEUE,
    KIND_RQ_MERGE,
    KIND_RQ_REMAP,
    KIND_RQ_COMPLETE,
    KIND_PLUG,
    KIND_UNPLUG,
    KIND_CALL_ENTRY,  // system calls: calls.h
    KIND_CALL_EXIT,
    KIND_OFF_CPU,  // threads' states: states.bpf.c
    KIND_PROCESS,  // of the tree: tree.bpf.c; what happened is in `call`
    KIND_THREAD,   // who a thread is: threads.bpf.c
    KIND_CGROUP,   // a cgroup was made, or a process or a thread moved into it: threads.bpf.c
    KIND_URING,    // of an io_uring request: uring.bpf.c; which step is in `call`
    KIND_FOLLOW,   // a thread that is not of the recorded processes is followed, or no longer: wakers.bpf.c
    KIND_TCP,      // a call sends or receives in a TCP stream: tcp.bpf.c; which one is in `call`
    KIND_INSTEAD,  // who ran while a thread waited for the CPU: states.bpf.c
    KIND_LOCK,     // which lock a thread slept for, and who held it: locks.bpf.c
    KIND_COUNT
};

// What happened to a process of the tree. `tid` is that process; of a fork the new one, and `pid` its parent. RUNS: it
// is in the tree, and was before.
enum process_step { PROCESS_FORK, PROCESS_EXEC, PROCESS_EXIT, PROCESS_RUNS };

// Of an io_uring request: a thread submits it; it is handed to a worker; a worker queues its first bio; its completion
// is there for the application.
enum uring_step { URING_SUBMIT, URING_TO_WORKER, URING_WORK, URING_COMPLETE };

enum tcp_step { TCP_SEND, TCP_RECEIVE };

// Of io_uring_enter: its requests are told by themselves; `dev` is how many completions the application has taken.
#define RING_TOLD 1
#define RING_COUNTED 2

#define NO_QUEUE 0xffff
#define KIND_REQUEST 32  // whole requests: request_event.h

struct block_event {
    __u64 ktime;  // CLOCK_MONOTONIC ns, read after the record was reserved: see bridge.c for why
    union {
        struct {
            __u64 rq;   // struct request *, 0: the tracepoint has none
            __u64 bio;  // struct bio *; of a request its first one, 0: none
            union {
                __u64 parent;        // split: the bio that the clone was split from
                struct {             // of a request
                    __u32 rq_flags;  // as the kernel has them: the bits' meaning differs between kernels
                    __u16 queue;     // number of its hardware queue; NO_QUEUE: none
                    __s16 tag;       // the driver's; negative: none (yet)
                };
            };
            __u64 sector;  // 512-byte units
            __u64 other;   // remap: old sector; split: new sector; of a bio that is queued its cgroup: cgroups.bpf.c
            __u32 nr_sector;
            __u32 bytes;  // requests: blk_rq_bytes(); unplug: number of requests
        };
        struct {  // of a wait: states.bpf.c, state_tp.h
            __u64 off_at, woken_at;
            __u64 waker_on_at, waker_off_at, waker_woken_at;
            __u16 prev_state, waker_state;
            __u16 waker_irq, waker_waker_irq;
        };
        // of a system call; of its exit the first is the result; of who a thread is: threads.bpf.c; of one that is
        // followed the first is its start; of who ran instead: the thread, how long, and until when;
        // of a lock: its address, its kind, the holder, the begin of the sleep;
        // of io_submit the upper half of the second is the descriptor that all its iocbs have;
        // of a TCP stream: tcp.bpf.c
        __u64 args[6];
    };
    union {
        __u32 dev;          // kernel-internal: major << 20 | minor; of a call: of the file's file system; a ring's head
        __u32 waker_waker;  // of a wait
    };
    union {
        __u32 old_dev;    // remap; io_uring_enter: RING_TOLD, RING_COUNTED; with `inode`: the inode's generation
        __u32 waker_cpu;  // of a wait
    };
    union {
        struct {
            __u32 rwbs;   // LTTng's bit mask
            __s32 error;  // as the tracepoint gives it (block status; errno on old kernels); from the bridge: errno
        };
        __u64 inode;  // of a system call's file, 0: none
        struct {      // of a wait, 0: none
            __u32 stack;
            __u32 waker_stack;
        };
    };
    __u32 tid;   // in the root PID namespace; of a live view in the collector's, all ones: the task is not in it
    __u32 lost;  // records of this CPU that found no room in the ring buffer so far
    __u16 cpu;
    __u8 kind;
    union {
        __u8 call;  // system calls: opline_call; KIND_PROCESS: process_step; KIND_URING: uring_step; KIND_TCP: tcp_step
        __s8 flush_seq;  // requests: steps of its flush sequence that are done (REQ_FSEQ_*); -1: it is in none
        __s8 level;      // of a thread: how far it is from the recorded processes; -1: it is followed no longer
    };
    __u32 pid;  // process of tid
    char comm[16];
};

// A call that queues or takes I/Os by more iocbs than find room in the last elements of `args`.
#define IOCBS_MOST 256  // of which it tells
#define IOCBS_IN_ENTRY 3
#define IOCBS_IN_EXIT 5
struct iocbs_event {
    struct block_event e;
    __u64 iocbs[IOCBS_MOST];  // addresses in the process; 0: could not be read
};
