// SPDX-License-Identifier: MIT
// The programs for requests, where whole ones are recorded (request_open.bpf.c).

// The slot's way; a new one is filling.
static inline u32 open_request(struct request_set *set, u64 rq) {
    u32 way = way_of(set->key, rq);
    if (way < OPEN_WAYS) {
        struct open_request *r = AT(set, way);
        if (!r->issue || r->flags & SLOT_REQUEUED) return way;
        // It was at its device, and comes back as another one.
        if (!(r->flags & (SLOT_OWN | SLOT_SINGLE | SLOT_TOLD))) tell_request(rq, r, 0, REQUEST_UNSEEN, 0);
        if (!(r->flags & SLOT_OWN)) COUNT(unseen);
    } else {
        way = claim(OF_REQUESTS, set->key, rq);
        if (way >= OPEN_WAYS) return way;
    }
    struct open_request *r = AT(set, way);
    r->flags = SLOT_FILLING;
    r->bio = r->queue = r->getrq = r->insert = r->issue = 0;
    r->tid = r->issue_tid = 0;
    r->cpu = r->issue_cpu = 0;
    r->old_dev = 0;
    r->old_sector = r->cgroup = 0;
    r->hw_queue = NO_QUEUE;
    return way;
}

#ifdef A_block_rq_insert_request
int request_block_rq_insert(struct bpf_raw_tracepoint_args *ctx) {
    u64 rq = ctx->args[A_block_rq_insert_request];
    if (!recording()) return 0;
    struct request_set *set = requests_at(rq);
    if (!set) return 0;
    u32 way = open_request(set, rq);
    if (way >= OPEN_WAYS) {
        COUNT(no_slot);
        single_request(KIND_RQ_INSERT, rq);
        return 0;
    }
    struct open_request *r = AT(set, way);
    if (!(r->flags & SLOT_FILLING)) {  // it was requeued, or inserted twice
        if (r->flags & SLOT_OWN) return 0;
        if (!(r->flags & (SLOT_TOLD | SLOT_SINGLE))) {
            tell_request(rq, r, 0, REQUEST_OPEN, 0);
            r->flags |= SLOT_TOLD;
        }
        single_request(KIND_RQ_INSERT, rq);
        return 0;
    }
    char q[RQ_SPAN] __attribute__((aligned(8)));
    if (bpf_probe_read_kernel(q, sizeof(q), (void *)(rq + RQ_LOW))) {
        FREE(set, way);
        return 0;
    }
    u32 opf = GET(u32, q, RQ_LOW, O_RQ_FLAGS);
    u64 bio = GET(u64, q, RQ_LOW, O_RQ_BIO);
    struct bio_set *bios = bios_at(bio);
    if (!bios) return 0;
    u32 of_bio = way_of(bios->key, bio);
    u64 known = is_there(of_bio) & (1 - equal(bio, 0));
    u32 its = AT(bios, of_bio)->flags * known + SLOT_SINGLE * (1 - known);
    if (its & SLOT_OWN) {  // what else it is made of is seen at its issue
        FREE(set, way);
        return 0;
    }
    if (its & SLOT_SINGLE || opf & (1u << REQ_FUA | 1u << REQ_PREFLUSH)) {
        single_request(KIND_RQ_INSERT, rq);
        r->flags = SLOT_SINGLE;
        return 0;
    }
    r->bio = bio;
    r->sector = GET(u64, q, RQ_LOW, O_RQ_SECTOR);
    r->bytes = GET(u32, q, RQ_LOW, O_RQ_LEN);
    r->rwbs = rwbs_of(opf);
    r->rq_flags = GET(u32, q, RQ_LOW, O_RQ_RQ_FLAGS);
    r->dev = AT(bios, of_bio)->dev;
    r->issue_tid = thread_at_hand();
    r->issue_cpu = bpf_get_smp_processor_id();
    r->insert = now_ns();
    IN_ORDER();
    r->flags = 0;
    return 0;
}
#endif

// The bios of the request that is issued, each by a record of its own where it has several, or the first one is not the
// request as it is. The walk is a program of its own, which goes on by tail calls, so that the verifier follows a few
// bios only. Nothing comes behind the call. A walk begins as the tracer's own if the first bio is: bios of the tracer
// are forgotten, and from the first one of another process on the request is told.
enum walk_of { OF_ALL, OF_OWN, OF_MIXED };
struct bio_walk {
    u64 rq, bio, issue, named;  // where it stands; named: `issue`, of a further bio
    u32 left, of;
};
BPF_TABLE("percpu_array", u32, struct bio_walk, bio_walk, 1);
BPF_PROG_ARRAY(walks, 1);

static inline void walk_bios(struct bpf_raw_tracepoint_args *ctx, u64 rq, u64 bio, u64 issue, u32 of) {
    u32 zero = 0;
    struct bio_walk *w = bio_walk.lookup(&zero);
    if (!w || !bio) return;
    w->rq = rq;
    w->bio = bio;
    w->issue = issue;
    w->named = 0;
    w->left = BIO_WALK / BIOS_AT_ONCE;
    w->of = of;
    walks.call(ctx, 0);
}

// The issue of a request that is told singly.
static inline u64 issued_singly(u64 rq, struct open_request *r) {
    if (!(r->flags & (SLOT_TOLD | SLOT_SINGLE)) && r->insert) tell_request(rq, r, 0, REQUEST_OPEN, 0);
    r->flags = (r->flags & SLOT_TOLD) | SLOT_SINGLE;
    single_request(KIND_RQ_ISSUE, rq);
    r->insert = 0;
    return r->issue = now_ns();
}

#ifdef A_block_rq_issue_request
int request_bio_walk(struct bpf_raw_tracepoint_args *ctx) {
    u64 rq = ctx->args[A_block_rq_issue_request];
    u32 zero = 0;
    struct bio_walk *w = bio_walk.lookup(&zero);
    if (!w) return 0;
    if (w->rq != rq) {  // an issue in an interrupt came between: before Linux 6.1 nothing keeps a program from that
        COUNT(chain_cut);
        return 0;
    }
    if (w->of == OF_MIXED) {
        struct request_set *requests = requests_at(rq);
        if (!requests) return 0;
        u32 its = way_of(requests->key, rq);
        if (its < OPEN_WAYS) {
            w->issue = issued_singly(rq, AT(requests, its));
            if (w->named) w->named = w->issue;
        }
        w->of = OF_ALL;
    }
    u64 bio = w->bio, named = w->named;
    u32 of = w->of;
    for (int i = 0; i < BIOS_AT_ONCE; ++i) {
        struct bio_set *set = bios_at(bio);
        if (!set || !bio) break;
        u32 way = way_of(set->key, bio);
        u32 own = AT(set, way)->flags & SLOT_OWN && way < OPEN_WAYS;
        if (of == OF_OWN && !own) {
            of = OF_MIXED;
            break;
        }
        if (way < OPEN_WAYS) {
            if (of == OF_ALL) tell_bio(bio, AT(set, way), rq, named, 0, 0, 0);
            FREE(set, way);
        }
        named = w->issue;
        bio = pointer_at(bio + O_BIO_NEXT);
    }
    if (!bio) {
        if (of == OF_OWN) COUNT(own_requests);
        return 0;
    }
    w->bio = bio;
    w->named = named;
    w->of = of;
    if (of == OF_MIXED || --w->left) walks.call(ctx, 0);
    COUNT(chain_cut);
    return 0;
}
#endif

// What the request's record says of its only bio.
static inline void take_bio(struct open_request *r, struct open_bio *b) {
    r->queue = b->queue;
    r->getrq = b->joined;
    r->cgroup = b->cgroup;
    r->tid = b->tid;
    r->cpu = b->cpu;
    r->old_dev = b->old_dev;
    r->old_sector = b->old_sector;
}

#ifdef A_block_rq_issue_request
int request_block_rq_issue(struct bpf_raw_tracepoint_args *ctx) {
    u64 rq = ctx->args[A_block_rq_issue_request];
    if (!recording()) return 0;
    struct request_set *set = requests_at(rq);
    if (!set) return 0;
    char q[RQ_SPAN] __attribute__((aligned(8)));
    if (bpf_probe_read_kernel(q, sizeof(q), (void *)(rq + RQ_LOW))) return 0;
    u32 way = open_request(set, rq);
    u32 opf = GET(u32, q, RQ_LOW, O_RQ_FLAGS), bytes = GET(u32, q, RQ_LOW, O_RQ_LEN);
    u64 bio = GET(u64, q, RQ_LOW, O_RQ_BIO), sector = GET(u64, q, RQ_LOW, O_RQ_SECTOR);
    if (way >= OPEN_WAYS) {
        COUNT(no_slot);
        single_request(KIND_RQ_ISSUE, rq);
        walk_bios(ctx, rq, bio, now_ns(), OF_ALL);
        return 0;
    }
    struct open_request *r = AT(set, way);
    struct bio_set *bios = bios_at(bio);
    if (!bios) return 0;
    u32 of_bio = way_of(bios->key, bio);
    u64 known = is_there(of_bio) & (1 - equal(bio, 0));
    u32 its = AT(bios, of_bio)->flags * known + SLOT_SINGLE * (1 - known);
    if (its & SLOT_OWN) {
        r->issue = 1;
        r->flags = (r->flags & (SLOT_TOLD | SLOT_SINGLE)) | SLOT_OWN;
        walk_bios(ctx, rq, bio, 1, OF_OWN);
        return 0;
    }
    if (r->flags & SLOT_OWN) {  // once more
        r->flags &= ~SLOT_REQUEUED;
        return 0;
    }
    if (r->flags & (SLOT_TOLD | SLOT_SINGLE) || its & SLOT_SINGLE || opf & (1u << REQ_FUA | 1u << REQ_PREFLUSH)) {
        u64 issue = issued_singly(rq, r);
        walk_bios(ctx, rq, bio, issue, OF_ALL);
        return 0;
    }
    u32 tid = thread_at_hand(), rwbs = rwbs_of(opf);
    struct open_bio *b = AT(bios, of_bio);
    int alone = b->sector == sector && b->bytes == bytes && b->rwbs == rwbs && !(b->flags & SLOT_MERGED) &&
                !pointer_at(bio + O_BIO_NEXT);
    if (r->insert && (r->bio != bio || r->sector != sector || r->bytes != bytes)) {  // it has grown since its I
        tell_request(rq, r, 0, REQUEST_OPEN, 0);
        r->insert = 0;
    }
    r->flags = SLOT_FILLING;
    r->issue_tid = tid;
    r->issue_cpu = bpf_get_smp_processor_id();
    r->bio = bio;
    r->sector = sector;
    r->bytes = bytes;
    r->rwbs = rwbs;
    r->rq_flags = GET(u32, q, RQ_LOW, O_RQ_RQ_FLAGS);
    r->dev = b->dev;
    r->hw_queue = queue_of(GET(u64, q, RQ_LOW, O_RQ_HCTX));
    r->issue = now_ns();
    if (alone) {
        take_bio(r, b);
        IN_ORDER();
        r->flags = b->flags & SLOT_PARTITION;
        IN_ORDER();
        FREE(bios, of_bio);
        return 0;
    }
    IN_ORDER();
    r->flags = 0;
    IN_ORDER();
    walk_bios(ctx, rq, bio, r->issue, OF_ALL);
    return 0;
}
#endif

#ifdef A_block_rq_requeue_request
int request_block_rq_requeue(struct bpf_raw_tracepoint_args *ctx) {
    u64 rq = ctx->args[A_block_rq_requeue_request];
    if (!recording()) return 0;
    struct request_set *set = requests_at(rq);
    if (!set) return 0;
    u32 way = way_of(set->key, rq);
    if (way < OPEN_WAYS) {
        struct open_request *r = AT(set, way);
        if (r->flags & SLOT_OWN) {
            r->flags |= SLOT_REQUEUED;
            return 0;
        }
        if (!(r->flags & (SLOT_TOLD | SLOT_SINGLE))) tell_request(rq, r, 0, REQUEST_OPEN, 0);
        r->flags |= SLOT_TOLD | SLOT_REQUEUED;
    }
    single_request(KIND_RQ_REQUEUE, rq);
    return 0;
}
#endif

// The request of the event is part of another one from now on, and its bios are that one's.
#ifdef A_block_rq_merge_request
int request_block_rq_merge(struct bpf_raw_tracepoint_args *ctx) {
    u64 rq = ctx->args[A_block_rq_merge_request];
    if (!recording()) return 0;
    struct request_set *set = requests_at(rq);
    if (!set) return 0;
    u32 way = way_of(set->key, rq);
    u64 bio = pointer_at(rq + O_RQ_BIO);
    struct bio_set *bios = bios_at(bio);
    if (!bios) return 0;
    u32 of_bio = way_of(bios->key, bio);
    if (bio && of_bio < OPEN_WAYS && AT(bios, of_bio)->flags & SLOT_OWN) return 0;
    if (way < OPEN_WAYS) {
        struct open_request *r = AT(set, way);
        if (!(r->flags & (SLOT_TOLD | SLOT_SINGLE | SLOT_OWN)) && r->insert) tell_request(rq, r, 0, REQUEST_OPEN, 0);
        FREE(set, way);
    }
    single_request(KIND_RQ_MERGE, rq);
    return 0;
}
#endif

#ifdef A_block_rq_remap_request
int request_block_rq_remap(struct bpf_raw_tracepoint_args *ctx) {
    u64 rq = ctx->args[A_block_rq_remap_request];
    if (!recording()) return 0;
    struct request_set *set = requests_at(rq);
    if (!set) return 0;
    u32 way = way_of(set->key, rq);
    if (way < OPEN_WAYS) {
        struct open_request *r = AT(set, way);
        if (r->flags & SLOT_OWN) return 0;
        if (!(r->flags & (SLOT_TOLD | SLOT_SINGLE))) tell_request(rq, r, 0, REQUEST_OPEN, 0);
        r->flags |= SLOT_TOLD;
    }
    struct single_record *e = single(KIND_RQ_REMAP);
    if (!e) return 0;
    e->e.old_dev = ctx->args[A_block_rq_remap_request + 1];
    e->e.other = ctx->args[A_block_rq_remap_request + 2];
    fill_request(&e->e, rq, 1);
    records.ringbuf_submit(e, RB_NO_WAKEUP);
    return 0;
}
#endif

#ifdef A_block_rq_complete_request
int request_block_rq_complete(struct bpf_raw_tracepoint_args *ctx) {
    u64 rq = ctx->args[A_block_rq_complete_request];
    s32 error = ctx->args[A_block_rq_complete_request + 1];
    u32 bytes = ctx->args[A_block_rq_complete_request + 2];
    if (!recording()) return 0;
    struct request_set *set = requests_at(rq);
    if (!set) return 0;
    u32 way = way_of(set->key, rq);
    if (way < OPEN_WAYS) {
        struct open_request *r = AT(set, way);
        u32 left = r->flags & (SLOT_SINGLE | SLOT_TOLD | SLOT_OWN) ? (u32)pointer_at(rq + O_RQ_LEN) : r->bytes;
        if (r->flags & SLOT_OWN) {
            if (bytes >= left) FREE(set, way);
            return 0;
        }
        if (!(r->flags & (SLOT_SINGLE | SLOT_TOLD)) && bytes == left && r->issue) {
            tell_request(rq, r, 1, 0, error);
            FREE(set, way);
            COUNT(records);
            return 0;
        }
        if (!(r->flags & (SLOT_SINGLE | SLOT_TOLD))) {
            tell_request(rq, r, 0, REQUEST_OPEN, 0);
            r->flags |= SLOT_TOLD;
        }
        if (bytes >= left) FREE(set, way);
    }
    struct single_record *e = single(KIND_RQ_COMPLETE);
    if (!e) return 0;
    fill_request(&e->e, rq, 1);
    e->e.nr_sector = bytes >> 9;
    e->e.error = error;
    records.ringbuf_submit(e, RB_NO_WAKEUP);
    return 0;
}
#endif
