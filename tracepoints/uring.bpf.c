// SPDX-License-Identifier: MIT
// io_uring's requests that read, write or sync → the same ring buffer. Compiled behind calls.bpf.c.
//
// One call, io_uring_enter, submits many requests, and kernel threads submit or execute others (SQPOLL, io-wq). So each
// request is told by itself: when a thread submits it, when it is handed to a worker, when a worker queues its first
// bio, and when its completion is there for the application (the CQE is posted). The kernel's tracepoints have
// these names since Linux 6.0 (include/trace/events/io_uring.h); io_uring_submit_req was io_uring_submit_sqe up to 6.3.
//
// Record: args: the request (struct io_kiocb *), its place in the file (-1: none), its length or its result, its
// opcode, the descriptor; `call` is the step. Of a completion the second is how many the ring has had with it (-1: not
// known).

#ifdef A_uring_complete

// READV, WRITEV, FSYNC, READ_FIXED, WRITE_FIXED, SYNC_FILE_RANGE, READ, WRITE, READV_FIXED, WRITEV_FIXED: enum
// io_uring_op, include/uapi/linux/io_uring.h.
#define OPCODES_TOLD (0x13eull | 1ull << 22 | 1ull << 23 | 1ull << 60 | 1ull << 61)
#define OPCODES_WRITING (1ull << 2 | 1ull << 5 | 1ull << 23 | 1ull << 61)
#define OPCODES_WITH_PLACE (OPCODES_TOLD & ~(1ull << 3 | 1ull << 8))
#define REQUEST_HAS_FIXED_FILE 1  // IOSQE_FIXED_FILE
#ifndef TASK_IS_IO_WORKER
#define TASK_IS_IO_WORKER 0x10  // PF_IO_WORKER, include/linux/sched.h since Linux 5.12
#endif

BPF_TABLE("lru_hash", u64, u8, worked_on, 16384);  // requests of which a worker has queued a bio

static inline int uring_wanted(void) {
    struct bridge_control *c = wanted(KIND_URING);
    return c && in_tree(c);
}

static inline struct block_event *reserve_uring(u8 step, u64 request, u64 opcode) {
    if (!(OPCODES_TOLD >> (opcode & 63) & 1) || opcode > 63) return 0;
    struct block_event *e = reserve(KIND_URING);
    if (!e) return 0;
    e->call = step;
    e->args[0] = request;
    e->args[3] = opcode;
    return e;
}

static inline struct block_event *reserve_known(u8 step, u64 request) {
    return reserve_uring(step, request, pointer_at(request + O_KIOCB_OPCODE) & 0xff);
}

// The file that the application registered under this number; 0: none.
static inline u64 fixed_file(u64 request, u32 number) {
    u64 files = pointer_at(request + O_KIOCB_RING) + O_RING_FILES;
#ifdef O_FILES_NODES  // since Linux 6.13
    if (number >= (u32)pointer_at(files + O_FILES_COUNT)) return 0;
    u64 node = pointer_at(pointer_at(files + O_FILES_NODES) + 8ull * number);
    return node ? pointer_at(node + O_NODE_FILE) & ~7ull : 0;
#else
    if (number >= (u32)pointer_at(pointer_at(request + O_KIOCB_RING) + O_RING_FILE_COUNT)) return 0;
    return pointer_at(pointer_at(files + O_FILES_TABLE) + 8ull * number) & ~7ull;  // struct io_fixed_file
#endif
}

int on_uring_submit(struct bpf_raw_tracepoint_args *ctx) {
    u64 request = ctx->args[A_uring_submit];
    if (!uring_wanted()) return 0;
    struct block_event *e = reserve_uring(URING_SUBMIT, request, MEMBER(u8, request, O_KIOCB_OPCODE));
    if (!e) return 0;
    u32 fd = MEMBER(u32, request, O_KIOCB_FD);
    int fixed = MEMBER(u32, request, O_KIOCB_FLAGS) & REQUEST_HAS_FIXED_FILE;
    u64 file = fixed ? fixed_file(request, fd) : file_of(fd);
    fill_inode(e, file);
    e->args[4] = fixed ? ~0ull : fd;
    e->args[1] = -1;
    if (OPCODES_WITH_PLACE >> e->args[3] & 1) {
        int end = OPCODES_WRITING >> e->args[3] & 1 && opened_to_append(file);
        e->args[1] = MEMBER(u64, request, O_RW_PLACE);
        e->args[2] = MEMBER(u32, request, O_RW_LENGTH);
        if (end || e->args[1] == ~0ull) e->args[1] = place_in(end, file);
    }
    events.ringbuf_submit(e, RB_NO_WAKEUP);
    return 0;
}

int on_uring_to_worker(struct bpf_raw_tracepoint_args *ctx) {
    struct block_event *e = uring_wanted() ? reserve_known(URING_TO_WORKER, ctx->args[A_uring_to_worker]) : 0;
    if (e) events.ringbuf_submit(e, RB_NO_WAKEUP);
    return 0;
}

// If the thread is a worker, the request that it executes (struct io_worker, io_uring/io-wq.c).
static inline void tell_worker(void) {
    if (!wanted(KIND_URING)) return;
    u64 task = this_task();
    if (!(MEMBER(u32, task, O_TASK_FLAGS) & TASK_IS_IO_WORKER)) return;
    u64 worker = pointer_at(task + O_TASK_WORKER), work = worker ? pointer_at(worker + O_WORKER_WORK) : 0;
    if (!work) return;
    u64 request = work - O_KIOCB_WORK;
    u8 one = 1;
    if (worked_on.lookup(&request)) return;
    struct bridge_control *c = wanted(KIND_URING);
    struct block_event *e = c && in_tree(c) ? reserve_known(URING_WORK, request) : 0;
    if (!e) return;
    worked_on.update(&request, &one);
    if (c && !c->workers) c->workers = 1;
    events.ringbuf_submit(e, RB_NO_WAKEUP);
}

int on_uring_complete(struct bpf_raw_tracepoint_args *ctx) {
    u64 request = ctx->args[A_uring_complete];
    struct bridge_control *c = wanted(KIND_URING);
    struct block_event *e = c && in_tree(c) ? reserve_known(URING_COMPLETE, request) : 0;
    if (!e) return 0;
    if (c->workers) worked_on.delete(&request);
    e->args[1] = -1;
#ifdef O_CQ_HEAD  // since Linux 6.15 the ring's own number counts it already (io_fill_cqe_req(), io_uring/io_uring.c)
    e->args[1] = MEMBER(u32, ctx->args[0], O_RING_TAIL);
#endif
#ifdef O_CQE_RESULT  // since Linux 6.15
    e->args[2] = (s64)MEMBER(s32, ctx->args[2], O_CQE_RESULT);
#else
    e->args[2] = (s64)(s32)ctx->args[3];
#endif
    events.ringbuf_submit(e, RB_NO_WAKEUP);
    return 0;
}

#elif defined(ROOT_NUMBERS)
static inline void tell_worker(void) {}
#endif

#ifdef ROOT_NUMBERS
static inline void tell_before_bio(void) {
    tell_unseen_thread();
    tell_worker();
}
#endif
