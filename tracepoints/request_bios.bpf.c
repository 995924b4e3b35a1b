// SPDX-License-Identifier: MIT
// The programs for bios, where whole requests are recorded (request_open.bpf.c).

static inline void take_place(struct open_bio *b, u64 bio) {
    b->sector = pointer_at(bio + O_BIO_SECTOR);
    b->bytes = (u32)pointer_at(bio + O_BIO_SIZE);
}

#ifdef A_block_bio_queue_bio
int request_block_bio_queue(struct bpf_raw_tracepoint_args *ctx) {
    u64 bio = ctx->args[A_block_bio_queue_bio];
    struct bridge_control *c = recording();
    if (!c) return 0;
    char b[BIO_SPAN] __attribute__((aligned(8)));
    if (bpf_probe_read_kernel(b, sizeof(b), (void *)(bio + BIO_LOW))) return 0;
    u32 opf = GET(u32, b, BIO_LOW, O_BIO_OPF);
    u32 flush = (opf & (1u << REQ_FUA | 1u << REQ_PREFLUSH)) || (opf & 0xff) == REQ_OP_FLUSH;
    u16 flags = flush ? SLOT_SINGLE : 0;
    if (own_tgid(c) && !flush) {
        flags = SLOT_OWN;
        COUNT(own_bios);
    }
    u32 tid = 0;
    if (!(flags & SLOT_OWN)) {
        tell_before_bio();
        tid = thread_at_hand();
    }
    struct bio_set *set = bios_at(bio);
    if (!set) return 0;
    u32 way = way_of(set->key, bio);
    if (way < OPEN_WAYS) {
        struct open_bio *old = AT(set, way);
        if (old->queue) {  // nobody saw what became of it
            if (!(old->flags & (SLOT_OWN | SLOT_SINGLE))) tell_bio(bio, old, 0, 0, 0, REQUEST_UNTOLD, 0);
        } else if (old->flags & SLOT_PARTITION) {
            flags |= SLOT_PARTITION;
        }
    } else {
        way = claim(OF_BIOS, set->key, bio);
    }
    if (way >= OPEN_WAYS) {
        COUNT(no_slot);
        if (!(flags & SLOT_OWN)) single_bio(KIND_BIO_QUEUE, bio);
        return 0;
    }
    struct open_bio *slot = AT(set, way);
    slot->flags = flags | SLOT_FILLING;
    slot->joined = 0;
    slot->queue = now_ns();
    slot->sector = GET(u64, b, BIO_LOW, O_BIO_SECTOR);
    slot->bytes = GET(u32, b, BIO_LOW, O_BIO_SIZE);
    slot->rwbs = rwbs_of(opf);
    u64 bdev = GET(u64, b, BIO_LOW, O_BIO_BDEV);
    slot->dev = bdev ? dev_of_disk(pointer_at(bdev + O_BDEV_DISK)) : 0;
    slot->tid = tid;
    slot->cpu = bpf_get_smp_processor_id();
    slot->cgroup = flags & (SLOT_OWN | SLOT_SINGLE) ? 0 : cgroup_of_bio(bio, opf, slot->bytes);
    if (flags & SLOT_SINGLE) {
        if (flags & SLOT_PARTITION) single_remap(bio, slot->old_dev, slot->old_sector);
        single_bio(KIND_BIO_QUEUE, bio);
    }
    IN_ORDER();
    slot->flags = flags;
    return 0;
}
#endif

#ifdef A_block_getrq_bio
int request_block_getrq(struct bpf_raw_tracepoint_args *ctx) {
    u64 bio = ctx->args[A_block_getrq_bio];
    if (!recording()) return 0;
    struct bio_set *set = bios_at(bio);
    if (!set) return 0;
    u32 way = way_of(set->key, bio);
    if (way >= OPEN_WAYS) {
        single_bio(KIND_GETRQ, bio);
        return 0;
    }
    struct open_bio *slot = AT(set, way);
    if (slot->flags & SLOT_OWN) return 0;
    if (slot->flags & SLOT_SINGLE) {
        single_bio(KIND_GETRQ, bio);
        return 0;
    }
    if (slot->flags & SLOT_CUT) {
        take_place(slot, bio);
        slot->tid = thread_at_hand();
        slot->cpu = bpf_get_smp_processor_id();
    }
    slot->flags |= SLOT_FILLING;
    slot->joined = now_ns();
    IN_ORDER();
    slot->flags &= ~SLOT_FILLING;
    return 0;
}
#endif

static inline int merged(u32 kind, u64 bio) {
    if (!recording()) return 0;
    struct bio_set *set = bios_at(bio);
    if (!set) return 0;
    u32 way = way_of(set->key, bio);
    if (way >= OPEN_WAYS) {
        single_bio(kind, bio);
        return 0;
    }
    struct open_bio *slot = AT(set, way);
    if (slot->flags & SLOT_OWN) return 0;
    if (slot->flags & SLOT_SINGLE) {
        single_bio(kind, bio);
        return 0;
    }
    if (slot->flags & SLOT_CUT) {
        take_place(slot, bio);
        slot->tid = thread_at_hand();
        slot->cpu = bpf_get_smp_processor_id();
    }
    slot->flags |= SLOT_FILLING;
    slot->joined = now_ns();
    IN_ORDER();
    slot->flags = (slot->flags & ~SLOT_FILLING) | SLOT_MERGED | (kind == KIND_BIO_FRONTMERGE ? SLOT_FRONT : 0);
    return 0;
}

#ifdef A_block_bio_backmerge_bio
int request_block_bio_backmerge(struct bpf_raw_tracepoint_args *ctx) {
    return merged(KIND_BIO_BACKMERGE, ctx->args[A_block_bio_backmerge_bio]);
}
#endif

#ifdef A_block_bio_frontmerge_bio
int request_block_bio_frontmerge(struct bpf_raw_tracepoint_args *ctx) {
    return merged(KIND_BIO_FRONTMERGE, ctx->args[A_block_bio_frontmerge_bio]);
}
#endif

// The Q of a bio that is split is told at once, with the place that it had; the front part, a clone, and what is left
// have steps of their own from then on.
#ifdef A_block_split_bio
int request_block_split(struct bpf_raw_tracepoint_args *ctx) {
    u64 bio = ctx->args[A_block_split_bio];
    if (!recording()) return 0;
    u64 parent = pointer_at(bio + O_BIO_PRIVATE);
    u16 inherited = SLOT_CUT;
    u32 dev = 0, rwbs = 0;
    struct bio_set *set = bios_at(parent);
    if (!set) return 0;
    u32 way = way_of(set->key, parent);
    if (way < OPEN_WAYS) {
        struct open_bio *slot = AT(set, way);
        inherited |= slot->flags & (SLOT_OWN | SLOT_SINGLE);
        if (slot->queue && !(slot->flags & (SLOT_OWN | SLOT_SINGLE))) tell_bio(parent, slot, 0, 0, 0, REQUEST_OPEN, 0);
        slot->queue = slot->joined = 0;
        slot->flags = (slot->flags & ~SLOT_PARTITION) | SLOT_CUT;
        dev = slot->dev;
        rwbs = slot->rwbs;
    } else {
        inherited |= SLOT_SINGLE;
    }
    if (!(inherited & SLOT_OWN)) {
        thread_at_hand();
        struct single_record *e = single(KIND_SPLIT);
        if (e) {
            e->e.bio = bio;
            e->e.parent = parent;
            e->e.other = ctx->args[A_block_split_bio + 1];
            fill_bio(&e->e, bio);
            records.ringbuf_submit(e, RB_NO_WAKEUP);
        }
    }
    set = bios_at(bio);
    if (!set) return 0;
    way = way_of(set->key, bio);
    if (way >= OPEN_WAYS) way = claim(OF_BIOS, set->key, bio);
    if (way >= OPEN_WAYS) {
        COUNT(no_slot);
        return 0;
    }
    struct open_bio *slot = AT(set, way);
    slot->queue = slot->joined = 0;
    slot->dev = dev;
    slot->rwbs = rwbs;
    slot->flags = inherited;
    return 0;
}
#endif

// A partition's remap comes right before its bio is queued, and goes into the record; a device's that is made of others
// is told singly.
#ifdef A_block_bio_remap_bio
int request_block_bio_remap(struct bpf_raw_tracepoint_args *ctx) {
    u64 bio = ctx->args[A_block_bio_remap_bio];
    u32 old_dev = ctx->args[A_block_bio_remap_bio + 1];
    struct bridge_control *c = recording();
    if (!c) return 0;
    struct bio_set *set = bios_at(bio);
    if (!set) return 0;
    u32 way = way_of(set->key, bio);
    u64 bdev = pointer_at(bio + O_BIO_BDEV);
    int of_partition = bdev && (u32)pointer_at(bdev + O_BDEV_DEV) == old_dev;
    if (way < OPEN_WAYS) {
        struct open_bio *slot = AT(set, way);
        if (slot->queue && of_partition) {  // nobody saw what became of it
            if (!(slot->flags & (SLOT_OWN | SLOT_SINGLE))) tell_bio(bio, slot, 0, 0, 0, REQUEST_UNTOLD, 0);
        } else if (slot->flags & SLOT_OWN) {
            return 0;
        }
    } else if (of_partition) {
        way = claim(OF_BIOS, set->key, bio);
        if (way >= OPEN_WAYS) COUNT(no_slot);
    }
    if (!of_partition || way >= OPEN_WAYS) {
        if (!own_tgid(c)) single_remap(bio, old_dev, ctx->args[A_block_bio_remap_bio + 2]);
        return 0;
    }
    struct open_bio *slot = AT(set, way);
    slot->queue = slot->joined = 0;
    slot->old_dev = old_dev;
    slot->old_sector = ctx->args[A_block_bio_remap_bio + 2];
    slot->flags = SLOT_PARTITION;
    return 0;
}
#endif

// Of a device that is made of others, or a bio that was refused before it reached one.
#ifdef A_block_bio_complete_bio
int request_block_bio_complete(struct bpf_raw_tracepoint_args *ctx) {
    u64 bio = ctx->args[A_block_bio_complete_bio];
    if (!recording()) return 0;
    struct bio_set *set = bios_at(bio);
    if (!set) return 0;
    u32 way = way_of(set->key, bio);
    if (way >= OPEN_WAYS) {
        single_bio(KIND_BIO_COMPLETE, bio);
        return 0;
    }
    struct open_bio *slot = AT(set, way);
    if (slot->flags & SLOT_OWN) {
        FREE(set, way);
        return 0;
    }
    if (slot->flags & (SLOT_SINGLE | SLOT_CUT)) {
        if (slot->queue && !(slot->flags & SLOT_SINGLE)) tell_bio(bio, slot, 0, 0, 0, REQUEST_OPEN, 0);
        single_bio(KIND_BIO_COMPLETE, bio);
    } else {
        tell_bio(bio, slot, 0, 0, 1, 0, (u8)pointer_at(bio + O_BIO_STATUS));
    }
    FREE(set, way);
    return 0;
}
#endif
