// SPDX-License-Identifier: MIT
// Block tracepoints → ring buffer. Compiled by bcc at run time, after bridge_record.h, bridge.bpf.c and block_event.h;
// no kernel header is read: offsets of members (O_*), argument numbers (A_*), operations and flags come as -D from the
// running kernel's BTF (bpf.py).
//
// Flags and fields are those of lttng-modules 2.13, include/instrumentation/events/block.h, except that completions,
// requeues and remaps say tid and comm too.

BPF_HASH(own_bios, u64, u8, 16384);

#define GET(type, buffer, low, offset) (*(type *)((buffer) + ((offset) - (low))))

static inline void begin_record(struct block_event *e, struct bridge_cpu *cpu, u32 kind) {
    // Only now, that it is reserved: whatever is reserved after the bridge has looked has a later time than that look.
    e->ktime = now_ns();
    e->lost = cpu->lost;
    e->cpu = bpf_get_smp_processor_id();
    e->kind = kind;
    u64 ids = current_ids();
    e->tid = ids;
    e->pid = ids >> 32;
    e->call = 0;
    name_current(e->comm);
    e->rq = e->bio = e->parent = e->sector = e->other = 0;
    e->nr_sector = e->bytes = e->dev = e->old_dev = e->rwbs = 0;
    e->error = 0;
}

static inline struct block_event *reserve(u32 kind) {
    struct bridge_cpu *cpu = this_cpu();
    if (!cpu) return 0;
    struct block_event *e = events.ringbuf_reserve(sizeof(struct block_event));
    if (e) begin_record(e, cpu, kind);
    else __sync_fetch_and_add(&cpu->lost, 1);
    return e;
}

// 1 or 0, without a branch: the verifier follows each of those, and of what comes behind it.
static inline u64 equal(u64 a, u64 b) {
    u64 differs = a ^ b, less = -differs;
    asm volatile("" : "+r"(less));  // the compiler would know it for a comparison
    u64 same = 1 - ((differs | less) >> 63);
    asm volatile("" : "+r"(same));  // and would make branches of what is computed with 0 or 1
    return same;
}

static inline u32 rwbs_of(u32 opf) {
    u32 op = opf & 0xff;
    u32 mask = equal(op, REQ_OP_WRITE) | equal(op, REQ_OP_READ) << 2 | equal(op, REQ_OP_DISCARD) << 1 |
               equal(op, REQ_OP_SECURE_ERASE) * (2 | 128) | equal(op, REQ_OP_FLUSH) << 8;
#ifdef REQ_OP_WRITE_SAME
    mask |= equal(op, REQ_OP_WRITE_SAME);
#endif
    mask |= (opf >> REQ_RAHEAD & 1) << 3 | (opf >> REQ_SYNC & 1) << 5 | (opf >> REQ_META & 1) << 6;
    return mask | (opf >> REQ_FUA & 1) << 9 | (opf >> REQ_PREFLUSH & 1) << 10;
}

static inline u32 dev_of_disk(u64 disk) {  // disk_devt()
    char d[DISK_SPAN] __attribute__((aligned(8)));
    if (!disk || bpf_probe_read_kernel(d, sizeof(d), (void *)(disk + DISK_LOW))) return 0;
    return GET(u32, d, DISK_LOW, O_DISK_MAJOR) << 20 | (GET(u32, d, DISK_LOW, O_DISK_MINOR) & 0xfffff);
}

static inline u32 fill_bio(struct block_event *e, u64 bio) {
    char b[BIO_SPAN] __attribute__((aligned(8)));
    if (bpf_probe_read_kernel(b, sizeof(b), (void *)(bio + BIO_LOW))) return REQ_OP_READ;
    u64 bdev = GET(u64, b, BIO_LOW, O_BIO_BDEV);
    e->sector = GET(u64, b, BIO_LOW, O_BIO_SECTOR);
    e->nr_sector = GET(u32, b, BIO_LOW, O_BIO_SIZE) >> 9;
    e->rwbs = rwbs_of(GET(u32, b, BIO_LOW, O_BIO_OPF));
    e->error = GET(u8, b, BIO_LOW, O_BIO_STATUS);
    e->dev = bdev ? dev_of_disk(pointer_at(bdev + O_BDEV_DISK)) : 0;  // bio_dev()
    return GET(u32, b, BIO_LOW, O_BIO_OPF);
}

// The hardware queue, and the step of the flush sequence (block/blk-flush.c). `flush.seq` of a request that is in none
// is an old value.
static inline void fill_queue(struct block_event *e, u64 rq, u64 hctx, u32 rq_flags, s32 tag) {
    u32 queue = NO_QUEUE, seq = 0;
    if (hctx) bpf_probe_read_kernel(&queue, sizeof(queue), (void *)(hctx + O_HCTX_NUMBER));
    e->queue = queue;
    e->rq_flags = rq_flags;
    e->tag = tag;
    e->flush_seq = -1;
    if (!(rq_flags >> RQF_FLUSH_SEQ & 1)) return;
    bpf_probe_read_kernel(&seq, sizeof(seq), (void *)(rq + O_RQ_FLUSH_SEQ));
    e->flush_seq = seq & 0x7f;
}

// blk_rq_trace_sector(), blk_rq_trace_nr_sectors(); a completion has blk_rq_pos() as it is.
static inline void fill_request(struct block_event *e, u64 rq, int complete) {
    char r[RQ_SPAN] __attribute__((aligned(8)));
    if (bpf_probe_read_kernel(r, sizeof(r), (void *)(rq + RQ_LOW))) return;
    u32 flags = GET(u32, r, RQ_LOW, O_RQ_FLAGS), op = flags & 0xff;
    int passthrough = op == REQ_OP_DRV_IN || op == REQ_OP_DRV_OUT;
    e->rq = rq;
    e->bio = GET(u64, r, RQ_LOW, O_RQ_BIO);
    e->sector = GET(u64, r, RQ_LOW, O_RQ_SECTOR);
    e->bytes = GET(u32, r, RQ_LOW, O_RQ_LEN);
    e->nr_sector = e->bytes >> 9;
    if (!complete && (passthrough || e->sector == ~0ull)) e->sector = 0;
    if (!complete && passthrough) e->nr_sector = 0;
    e->rwbs = rwbs_of(flags);
    fill_queue(e, rq, GET(u64, r, RQ_LOW, O_RQ_HCTX), GET(u32, r, RQ_LOW, O_RQ_RQ_FLAGS),
               GET(s32, r, RQ_LOW, O_RQ_TAG));
#ifdef O_RQ_DISK
    e->dev = dev_of_disk(pointer_at(rq + O_RQ_DISK));
#else
    e->dev = dev_of_disk(pointer_at(GET(u64, r, RQ_LOW, O_RQ_Q) + O_Q_DISK));
#endif
}

// ---- our own I/O ---------------------------------------------------------------------------------------------------
// A bio that a process of the tracer queues is put into own_bios; it, the bios split from it, and the requests that
// consist of such bios only are left out. The mark goes when the request completes, or when somebody else queues that
// pointer. One that needs a flush is not left out: the flush's own request has no bio that says whose it is.

static inline int own_tgid(struct bridge_control *c) {
    u32 tgid = ids_in_our_namespace() >> 32;
    u64 own = 0;
#pragma unroll
    for (int i = 0; i < OWN_TGIDS; ++i) own |= equal(c->own_tgids[i], tgid);
    return own && tgid;
}

static inline int needs_flush(u64 bio) {
    return ((u32)pointer_at(bio + O_BIO_OPF) & (1u << REQ_FUA | 1u << REQ_PREFLUSH)) != 0;
}

static inline int mark_own(struct bridge_control *c, struct bridge_cpu *cpu, u64 bio) {
    u8 one = 1;
    if (own_bios.lookup(&bio)) return 1;
    if (own_bios.update(&bio, &one)) {
        __sync_fetch_and_add(&cpu->own_overflow, 1);
        return 0;
    }
    __sync_fetch_and_add(&c->own_live, 1);
    return 1;
}

static inline void unmark(struct bridge_control *c, u64 bio) {
    if (own_bios.delete(&bio) == 0) __sync_fetch_and_add(&c->own_live, -1);
}

static inline void count_own_event(void) {
    struct bridge_cpu *cpu = this_cpu();
    if (cpu) __sync_fetch_and_add(&cpu->own_events, 1);
}

static inline int own_bio(struct bridge_control *c, u64 bio) {
    if (!c->own_live || !own_bios.lookup(&bio)) return 0;
    count_own_event();
    return 1;
}

// Of a request that was merged of ours and somebody else's, nothing is left out.
static inline int own_request(struct bridge_control *c, u64 rq) {
    if (!c->own_live) return 0;
    u64 bio = pointer_at(rq + O_RQ_BIO);
    if (!bio) return 0;
    for (int i = 0; i < OWN_WALK; ++i) {
        if (!own_bios.lookup(&bio)) return 0;
        bio = pointer_at(bio + O_BIO_NEXT);
        if (!bio) break;
    }
    count_own_event();
    return 1;
}

// ---- bios ----------------------------------------------------------------------------------------------------------

static inline int emit_bio(u32 kind, u64 bio) {
    struct bridge_control *c = wanted(kind);
    if (!c || !bio || own_bio(c, bio)) return 0;
    struct block_event *e = reserve(kind);
    if (!e) return 0;
    e->bio = bio;
    u32 opf = fill_bio(e, bio);
    if (kind == KIND_BIO_QUEUE) e->other = cgroup_of_bio(bio, opf, e->nr_sector);
    events.ringbuf_submit(e, RB_NO_WAKEUP);
    return 0;
}

#ifdef ROOT_NUMBERS
static inline void tell_before_bio(void);  // uring.bpf.c
#else
static inline void tell_before_bio(void) {}
#endif

#ifdef A_block_bio_queue_bio
int on_block_bio_queue(struct bpf_raw_tracepoint_args *ctx) {
    u64 bio = ctx->args[A_block_bio_queue_bio];
    struct bridge_control *c = wanted(KIND_BIO_QUEUE);
    if (!c) return 0;
    if (own_tgid(c) && !needs_flush(bio)) {
        struct bridge_cpu *cpu = this_cpu();
        if (cpu && mark_own(c, cpu, bio)) {
            __sync_fetch_and_add(&cpu->own_bios, 1);
            return 0;
        }
    } else if (c->own_live) {
        unmark(c, bio);
    }
    tell_before_bio();
    return emit_bio(KIND_BIO_QUEUE, bio);
}
#endif

#ifdef A_block_getrq_bio
int on_block_getrq(struct bpf_raw_tracepoint_args *ctx) { return emit_bio(KIND_GETRQ, ctx->args[A_block_getrq_bio]); }
#endif

#ifdef A_block_bio_backmerge_bio
int on_block_bio_backmerge(struct bpf_raw_tracepoint_args *ctx) {
    return emit_bio(KIND_BIO_BACKMERGE, ctx->args[A_block_bio_backmerge_bio]);
}
#endif

#ifdef A_block_bio_frontmerge_bio
int on_block_bio_frontmerge(struct bpf_raw_tracepoint_args *ctx) {
    return emit_bio(KIND_BIO_FRONTMERGE, ctx->args[A_block_bio_frontmerge_bio]);
}
#endif

#ifdef A_block_bio_complete_bio
int on_block_bio_complete(struct bpf_raw_tracepoint_args *ctx) {
    return emit_bio(KIND_BIO_COMPLETE, ctx->args[A_block_bio_complete_bio]);
}
#endif

// The bio of the event is a clone, the front part; bi_private is the bio that it was split from, which goes on as the
// rest.
#ifdef A_block_split_bio
int on_block_split(struct bpf_raw_tracepoint_args *ctx) {
    u64 bio = ctx->args[A_block_split_bio];
    struct bridge_control *c = wanted(KIND_SPLIT);
    if (!c) return 0;
    u64 parent = pointer_at(bio + O_BIO_PRIVATE);
    if (c->own_live) {
        struct bridge_cpu *cpu = this_cpu();
        if (cpu && own_bios.lookup(&parent) && mark_own(c, cpu, bio)) {
            count_own_event();
            return 0;
        }
        unmark(c, bio);
    }
    struct block_event *e = reserve(KIND_SPLIT);
    if (!e) return 0;
    e->bio = bio;
    e->parent = parent;
    e->other = ctx->args[A_block_split_bio + 1];
    fill_bio(e, bio);
    events.ringbuf_submit(e, RB_NO_WAKEUP);
    return 0;
}
#endif

#ifdef A_block_bio_remap_bio
int on_block_bio_remap(struct bpf_raw_tracepoint_args *ctx) {
    u64 bio = ctx->args[A_block_bio_remap_bio];
    struct bridge_control *c = wanted(KIND_BIO_REMAP);
    if (!c || own_bio(c, bio)) return 0;
    struct block_event *e = reserve(KIND_BIO_REMAP);
    if (!e) return 0;
    e->bio = bio;
    e->old_dev = ctx->args[A_block_bio_remap_bio + 1];
    e->other = ctx->args[A_block_bio_remap_bio + 2];
    fill_bio(e, bio);
    events.ringbuf_submit(e, RB_NO_WAKEUP);
    return 0;
}
#endif

// ---- requests ------------------------------------------------------------------------------------------------------

static inline int emit_request(u32 kind, u64 rq) {
    struct bridge_control *c = wanted(kind);
    if (!c || own_request(c, rq)) return 0;
    struct block_event *e = reserve(kind);
    if (!e) return 0;
    fill_request(e, rq, 0);
    events.ringbuf_submit(e, RB_NO_WAKEUP);
    return 1;
}

#ifdef A_block_rq_insert_request
int on_block_rq_insert(struct bpf_raw_tracepoint_args *ctx) {
    emit_request(KIND_RQ_INSERT, ctx->args[A_block_rq_insert_request]);
    return 0;
}
#endif

// A backmerge carries no request. So the bios of a request are named when it is issued: the first one by the issue
// itself, each further one by an event of its own.
#ifdef A_block_rq_issue_request
int on_block_rq_issue(struct bpf_raw_tracepoint_args *ctx) {
    u64 rq = ctx->args[A_block_rq_issue_request];
    if (!emit_request(KIND_RQ_ISSUE, rq) || !wanted(KIND_RQ_BIO)) return 0;
    u64 bio = pointer_at(rq + O_RQ_BIO);
    if (!bio) return 0;
    for (int i = 0; i < BIO_WALK; ++i) {
        bio = pointer_at(bio + O_BIO_NEXT);
        if (!bio) return 0;
        struct block_event *e = reserve(KIND_RQ_BIO);
        if (e) {
            e->rq = rq;
            e->bio = bio;
            fill_bio(e, bio);
            events.ringbuf_submit(e, RB_NO_WAKEUP);
        }
    }
    struct bridge_cpu *cpu = this_cpu();
    if (cpu && pointer_at(bio + O_BIO_NEXT)) __sync_fetch_and_add(&cpu->chain_cut, 1);
    return 0;
}
#endif

#ifdef A_block_rq_requeue_request
int on_block_rq_requeue(struct bpf_raw_tracepoint_args *ctx) {
    emit_request(KIND_RQ_REQUEUE, ctx->args[A_block_rq_requeue_request]);
    return 0;
}
#endif

#ifdef A_block_rq_merge_request
int on_block_rq_merge(struct bpf_raw_tracepoint_args *ctx) {
    emit_request(KIND_RQ_MERGE, ctx->args[A_block_rq_merge_request]);
    return 0;
}
#endif

#ifdef A_block_rq_remap_request
int on_block_rq_remap(struct bpf_raw_tracepoint_args *ctx) {
    u64 rq = ctx->args[A_block_rq_remap_request];
    struct bridge_control *c = wanted(KIND_RQ_REMAP);
    if (!c || own_request(c, rq)) return 0;
    struct block_event *e = reserve(KIND_RQ_REMAP);
    if (!e) return 0;
    e->old_dev = ctx->args[A_block_rq_remap_request + 1];
    e->other = ctx->args[A_block_rq_remap_request + 2];
    fill_request(e, rq, 1);
    events.ringbuf_submit(e, RB_NO_WAKEUP);
    return 0;
}
#endif

#ifdef A_block_rq_complete_request
int on_block_rq_complete(struct bpf_raw_tracepoint_args *ctx) {
    u64 rq = ctx->args[A_block_rq_complete_request];
    u32 nr_bytes = ctx->args[A_block_rq_complete_request + 2];
    struct bridge_control *c = wanted(KIND_RQ_COMPLETE);
    if (!c) return 0;
    if (own_request(c, rq)) {
        u32 length = 0;
        bpf_probe_read_kernel(&length, sizeof(length), (void *)(rq + O_RQ_LEN));
        u64 bio = pointer_at(rq + O_RQ_BIO);
        if (nr_bytes < length) return 0;
        for (int i = 0; i < OWN_WALK && bio; ++i) {
            u64 next = pointer_at(bio + O_BIO_NEXT);
            unmark(c, bio);
            bio = next;
        }
        return 0;
    }
    struct block_event *e = reserve(KIND_RQ_COMPLETE);
    if (!e) return 0;
    fill_request(e, rq, 1);
    e->nr_sector = nr_bytes >> 9;
    e->error = ctx->args[A_block_rq_complete_request + 1];
    events.ringbuf_submit(e, RB_NO_WAKEUP);
    return 0;
}
#endif

// ---- plugs ---------------------------------------------------------------------------------------------------------

#ifdef A_block_plug_request_queue
int on_block_plug(struct bpf_raw_tracepoint_args *ctx) {
    struct bridge_control *c = wanted(KIND_PLUG);
    if (!c || own_tgid(c)) return 0;
    struct block_event *e = reserve(KIND_PLUG);
    if (e) events.ringbuf_submit(e, RB_NO_WAKEUP);
    return 0;
}
#endif

#ifdef A_block_unplug_request_queue
int on_block_unplug(struct bpf_raw_tracepoint_args *ctx) {
    struct bridge_control *c = wanted(KIND_UNPLUG);
    if (!c || own_tgid(c)) return 0;
    struct block_event *e = reserve(KIND_UNPLUG);
    if (!e) return 0;
    e->bytes = ctx->args[A_block_unplug_request_queue + 1];
    events.ringbuf_submit(e, RB_NO_WAKEUP);
    return 0;
}
#endif
