// SPDX-License-Identifier: MIT
// Block requests as one record each: what is open, and how it is told. Compiled by bcc behind block.bpf.c, whose single
// steps it tells where a record would not say all, and before request_bios.bpf.c and request.bpf.c, the programs;
// docs/internals/collectors.md has the rules.
//
// A bio is looked up from its Q until it is part of a request that is issued, a request from its I (D without a
// scheduler) until its C. What finds no room in its set is told singly from its first step on.

BPF_RINGBUF_OUTPUT(records, RING_PAGES);
BPF_F_TABLE("array", u32, struct bio_set, open_bios, OPEN_SETS, MMAPABLE);
BPF_F_TABLE("array", u32, struct request_set, open_requests, OPEN_SETS, MMAPABLE);
BPF_F_TABLE("array", u32, struct open_marks, open_marks, 1, MMAPABLE);
BPF_F_TABLE("array", u32, struct request_cpu, request_cpus, CPU_COUNT, MMAPABLE);

struct known_thread {
    u64 name[2], ids;
};
BPF_TABLE("percpu_array", u32, struct known_thread, known_threads, 256);

static inline struct request_cpu *request_cpu(void) {
    u32 cpu = bpf_get_smp_processor_id();
    return request_cpus.lookup(&cpu);
}

#define COUNT(counter)                                                                                                 \
    {                                                                                                                  \
        struct request_cpu *counted = request_cpu();                                                                   \
        if (counted) __sync_fetch_and_add(&counted->counter, 1);                                                       \
    }

static inline struct bridge_control *recording(void) { return wanted(KIND_REQUEST); }

static inline u32 place_of(u64 pointer) {
    return (u32)((pointer >> 6) * 0x9E3779B97F4A7C15ull >> 40) & (OPEN_SETS - 1);
}

static inline struct bio_set *bios_at(u64 bio) {
    u32 place = place_of(bio);
    return open_bios.lookup(&place);
}

static inline struct request_set *requests_at(u64 rq) {
    u32 place = place_of(rq);
    return open_requests.lookup(&place);
}

// Where the key is; OPEN_WAYS: nowhere.
static inline u32 way_of(u64 *keys, u64 key) {
    u64 way = OPEN_WAYS;
#pragma unroll
    for (u64 i = OPEN_WAYS; i-- > 0;) {
        u64 same = equal(keys[i], key);
        way = way * (1 - same) + i * same;
        asm volatile("" : "+r"(way));
    }
    return way;
}

// Whether there is such a way.
static inline u64 is_there(u32 way) {
    u64 no = way >> 3;
    asm volatile("" : "+r"(no));
    return 1 - no;
}
// For the verifier, whatever the compiler knows.
static inline u32 within(u32 way) {
    asm volatile("" : "+r"(way));
    return way & (OPEN_WAYS - 1);
}
#define AT(set, way) (&(set)->slot[within(way)])

// What was written before is seen before what follows.
#define IN_ORDER() asm volatile("" ::: "memory")

// A slot that is free is filling, so that who looks at it once it is claimed knows.
#define FREE(set, way)                                                                                                 \
    {                                                                                                                  \
        AT(set, way)->flags = SLOT_FILLING;                                                                            \
        IN_ORDER();                                                                                                    \
        (set)->key[within(way)] = 0;                                                                                   \
    }

static inline void mark(enum open_table table, u64 key) {
    u32 zero = 0, place = place_of(key);
    struct open_marks *m = open_marks.lookup(&zero);
    if (m && !m->of[table][place]) m->of[table][place] = 1;  // most are: their cache line stays every CPU's
}

static inline u32 claim(enum open_table table, u64 *keys, u64 key) {
    mark(table, key);
#pragma unroll
    for (int i = 0; i < 3; ++i) {  // another CPU may have been faster
        u32 way = way_of(keys, 0);
        if (way >= OPEN_WAYS) return way;
        if (__sync_val_compare_and_swap(&keys[within(way)], 0, key) == 0) return way;
    }
    return OPEN_WAYS;
}

// ---- records -------------------------------------------------------------------------------------------------------

static inline void begin_of(struct record_head *head, u32 kind) {
    head->kind = kind;
    head->cpu = bpf_get_smp_processor_id();
}

// The thread at hand, as the kernel numbers it; who that is has been told when this returns.
static inline u32 thread_at_hand(void) {
    u64 own = kernel_ids();
    u32 tid = own, place = tid & 255;
    u64 name[2] = {};
    struct known_thread *known = known_threads.lookup(&place);
    name_current((char *)name);
    if (!known || (known->ids == own && known->name[0] == name[0] && known->name[1] == name[1])) return tid;
    struct thread_record *e = records.ringbuf_reserve(sizeof(struct thread_record));
    if (!e) {
        COUNT(lost);
        return tid;
    }
    begin_of(&e->head, KIND_REQUEST_THREAD);
    e->head.time = now_ns();
    u64 ids = current_ids();
    e->kernel_tid = tid;
    e->tid = ids;
    e->pid = ids >> 32;
    __builtin_memcpy(e->comm, name, sizeof(name));
    records.ringbuf_submit(e, RB_NO_WAKEUP);
    known->ids = own;
    known->name[0] = name[0];
    known->name[1] = name[1];
    return tid;
}

static inline u16 queue_of(u64 hctx) {
    u32 queue = NO_QUEUE;
    if (hctx) bpf_probe_read_kernel(&queue, sizeof(queue), (void *)(hctx + O_HCTX_NUMBER));
    return queue;
}

static inline void tell_request(u64 rq, struct open_request *r, int complete, u16 flags, s16 error) {
    struct request_record *e = records.ringbuf_reserve(sizeof(struct request_record));
    if (!e) {
        COUNT(lost);
        return;
    }
    begin_of(&e->head, KIND_REQUEST);
    e->complete = complete ? now_ns() : 0;
    e->rq = rq;
    e->bio = r->bio;
    e->sector = r->sector;
    e->queue = r->queue;
    e->getrq = r->getrq;
    e->insert = r->insert;
    e->issue = r->issue;
    e->bytes = r->bytes;
    e->dev = r->dev;
    e->tid = r->tid;
    e->issue_tid = r->issue_tid;
    e->cgroup = r->cgroup;
    e->rq_flags = r->rq_flags;
    e->rwbs = r->rwbs;
    e->cpu = r->cpu;
    e->issue_cpu = r->issue_cpu;
    e->complete_cpu = e->head.cpu;
    e->hw_queue = r->hw_queue;
    e->flags = flags;
    e->slot_flags = r->flags;
    e->error = error;
    e->old_sector = r->old_sector;
    e->old_dev = r->old_dev;
    records.ringbuf_submit(e, RB_NO_WAKEUP);
}

// `named`: the time at which `rq` was issued, of which the bio is a further one. Of one whose steps are told singly,
// that is all there is to tell.
static inline void tell_bio(u64 bio, struct open_bio *b, u64 rq, u64 named, int complete, u16 flags, s16 error) {
    u64 told = 1 - (((b->flags & SLOT_SINGLE) / SLOT_SINGLE) | ((b->flags & SLOT_OWN) / SLOT_OWN));
    struct bio_record *e = records.ringbuf_reserve(sizeof(struct bio_record));
    if (!e) {
        COUNT(lost);
        return;
    }
    begin_of(&e->head, KIND_BIO);
    e->complete = complete ? now_ns() : 0;
    e->bio = bio;
    e->rq = rq;
    e->sector = b->sector;
    e->queue = b->queue * told;
    e->joined = b->joined * told;
    e->named = named;
    e->bytes = b->bytes;
    e->dev = b->dev;
    e->tid = b->tid;
    e->cgroup = b->cgroup;
    e->rwbs = b->rwbs;
    e->cpu = b->cpu;
    e->flags = flags;
    e->slot_flags = b->flags;
    e->error = error;
    e->old_sector = b->old_sector;
    e->old_dev = b->old_dev;
    records.ringbuf_submit(e, RB_NO_WAKEUP);
}

static inline struct single_record *single(u32 kind) {
    struct bridge_cpu *cpu = this_cpu();
    if (!cpu) return 0;
    struct single_record *e = records.ringbuf_reserve(sizeof(struct single_record));
    if (!e) {
        COUNT(lost);
        return 0;
    }
    begin_of(&e->head, kind);
    begin_record(&e->e, cpu, kind);
    e->head.time = e->e.ktime;
    return e;
}

static inline void single_bio(u32 kind, u64 bio) {
    struct single_record *e = single(kind);
    if (!e) return;
    e->e.bio = bio;
    u32 opf = fill_bio(&e->e, bio);
    if (kind == KIND_BIO_QUEUE) e->e.other = cgroup_of_bio(bio, opf, e->e.nr_sector);
    records.ringbuf_submit(e, RB_NO_WAKEUP);
}

static inline void single_request(u32 kind, u64 rq) {
    struct single_record *e = single(kind);
    if (!e) return;
    fill_request(&e->e, rq, 0);
    records.ringbuf_submit(e, RB_NO_WAKEUP);
}

static inline void single_remap(u64 bio, u64 old_dev, u64 old_sector) {
    struct single_record *e = single(KIND_BIO_REMAP);
    if (!e) return;
    e->e.bio = bio;
    e->e.old_dev = old_dev;
    e->e.other = old_sector;
    fill_bio(&e->e, bio);
    records.ringbuf_submit(e, RB_NO_WAKEUP);
}
