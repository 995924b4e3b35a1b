/* SPDX-License-Identifier: MIT */
/* Back ends: how the server's device is written and read. All but `buffered` use O_DIRECT. */
#define _GNU_SOURCE
#include <errno.h>
#include <libaio.h>
#include <liburing.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server.h"
#include "truth.h"

static bool is_write(const struct op *op) { return op->req.type == WIRE_WRITE; }

static void io_done(struct op *op, int32_t result) {
    op->result = result >= 0 && (uint32_t)result != op->req.length ? -EIO : result;
    POINT(op->req.truth_id, io_end, op, op->result);
}

/* ---- pwrite, buffered: the worker itself waits ---- */

static int32_t io_sync(struct op *op) {
    struct server *srv = op->shard->server;

    inject(&srv->injectors[INJECT_DEVICE]);
    ssize_t n = is_write(op) ? pwrite(srv->dev_fd, op->buf, op->req.length, (off_t)op->dev_offset)
                             : pread(srv->dev_fd, op->buf, op->req.length, (off_t)op->dev_offset);
    return n < 0 ? -errno : (int32_t)n;
}

static void pwrite_submit(struct shard *s, struct op *op) {
    io_done(op, io_sync(op));
    op_finish(s->server, op);
}

static void buffered_submit(struct shard *s, struct op *op) {
    struct queue *q = &s->server->commit_queue;

    io_done(op, io_sync(op));
    if (!is_write(op) || op->result < 0) {
        op_finish(s->server, op);
        return;
    }
    POINT(op->req.truth_id, commit_enqueue, op, queue_depth(q));
    queue_push(q, &op->node);
}

/* ---- What libaio and io_uring share: control blocks, recycled, and a reaper thread per shard ---- */

struct io_slot {
    struct iocb iocb; /* first: libaio hands its address back */
    struct node node;
    struct op *op;
};

struct async_io {
    struct shard *shard;
    struct pool slots;
    pthread_t reaper;
    int stop; /* atomic */
    io_context_t aio;
    struct io_uring ring;
    pthread_mutex_t submit_lock; /* of the ring's submission side */
};

static struct io_slot *slot_get(struct async_io *a, struct op *op) {
    struct node *n = pool_get(&a->slots);
    struct io_slot *slot = n ? container_of(n, struct io_slot, node) : calloc(1, sizeof *slot);

    if (slot) slot->op = op;
    return slot;
}

static void slot_failed(struct async_io *a, struct io_slot *slot, struct op *op, int err) {
    if (slot) {
        POINT(op->req.truth_id, io_reap, slot, err);
        pool_put(&a->slots, &slot->node);
    }
    io_done(op, err);
    op_finish(a->shard->server, op);
}

static void slot_reaped(struct async_io *a, struct io_slot *slot, int32_t result) {
    struct op *op = slot->op;

    POINT(op->req.truth_id, io_reap, slot, result);
    io_done(op, result);
    pool_put(&a->slots, &slot->node);
    op_finish(a->shard->server, op);
}

static struct async_io *async_new(struct shard *s) {
    struct async_io *a = calloc(1, sizeof *a);

    if (!a) return NULL;
    a->shard = s;
    pool_init(&a->slots);
    pthread_mutex_init(&a->submit_lock, NULL);
    s->io = a;
    return a;
}

static void async_free(struct async_io *a) {
    struct node *n;

    while ((n = pool_get(&a->slots))) free(container_of(n, struct io_slot, node));
    pool_destroy(&a->slots);
    pthread_mutex_destroy(&a->submit_lock);
    free(a);
}

static void reaper_start(struct async_io *a, void *(*reap)(void *)) {
    char name[16];

    snprintf(name, sizeof name, "demo-reap-%u", (unsigned)a->shard->index % SHARDS_MAX);
    pthread_create(&a->reaper, NULL, reap, a);
    pthread_setname_np(a->reaper, name);
}

#define IN_FLIGHT_MAX 1024

/* ---- libaio ---- */

static void libaio_submit(struct shard *s, struct op *op) {
    struct async_io *a = s->io;
    uint64_t id = op->req.truth_id; /* after io_submit the op may be finished and somebody else's */
    struct io_slot *slot = slot_get(a, op);

    if (!slot) {
        slot_failed(a, NULL, op, -ENOMEM);
        return;
    }
    struct iocb *cb = &slot->iocb;
    if (is_write(op)) io_prep_pwrite(cb, s->server->dev_fd, op->buf, op->req.length, (long long)op->dev_offset);
    else io_prep_pread(cb, s->server->dev_fd, op->buf, op->req.length, (long long)op->dev_offset);
    POINT(id, io_submit, slot, 1);
    inject(&s->server->injectors[INJECT_DEVICE]);
    int n = io_submit(a->aio, 1, &cb);
    POINT(id, io_submitted, n < 0 ? n : 0);
    if (n < 0) slot_failed(a, slot, op, n);
}

static void *libaio_reap(void *arg) {
    struct async_io *a = arg;
    struct io_event events[16];
    struct timespec tick = {.tv_nsec = 200000000};

    while (!__atomic_load_n(&a->stop, __ATOMIC_ACQUIRE)) {
        int n = io_getevents(a->aio, 1, 16, events, &tick);
        for (int i = 0; i < n; i++) slot_reaped(a, (struct io_slot *)events[i].obj, (int32_t)(long)events[i].res);
    }
    return NULL;
}

static int libaio_start(struct shard *s) {
    struct async_io *a = async_new(s);

    if (!a) return -ENOMEM;
    int err = io_setup(IN_FLIGHT_MAX, &a->aio);
    if (err) {
        async_free(a);
        return err;
    }
    reaper_start(a, libaio_reap);
    return 0;
}

static void libaio_stop(struct shard *s) {
    struct async_io *a = s->io;

    __atomic_store_n(&a->stop, 1, __ATOMIC_RELEASE);
    pthread_join(a->reaper, NULL);
    io_destroy(a->aio);
    async_free(a);
}

/* ---- io_uring ---- */

static void uring_submit(struct shard *s, struct op *op) {
    struct async_io *a = s->io;
    uint64_t id = op->req.truth_id;
    struct io_slot *slot = slot_get(a, op);

    if (!slot) {
        slot_failed(a, NULL, op, -ENOMEM);
        return;
    }
    POINT(id, io_submit, slot, 1);
    inject(&s->server->injectors[INJECT_DEVICE]);
    pthread_mutex_lock(&a->submit_lock);
    struct io_uring_sqe *sqe = io_uring_get_sqe(&a->ring);
    if (!sqe) {
        pthread_mutex_unlock(&a->submit_lock);
        POINT(id, io_submitted, -EBUSY);
        slot_failed(a, slot, op, -EBUSY);
        return;
    }
    if (is_write(op)) io_uring_prep_write(sqe, s->server->dev_fd, op->buf, op->req.length, op->dev_offset);
    else io_uring_prep_read(sqe, s->server->dev_fd, op->buf, op->req.length, op->dev_offset);
    io_uring_sqe_set_data(sqe, slot);
    int n = io_uring_submit(&a->ring);
    POINT(id, io_submitted, n < 0 ? n : 0);
    pthread_mutex_unlock(&a->submit_lock);
    if (n < 0) {
        fprintf(stderr, "demo-server: io_uring_enter: %s\n", strerror(-n));
        _exit(1); /* the entry stays in the ring: there is no taking it back */
    }
}

static void *uring_reap(void *arg) {
    struct async_io *a = arg;
    struct io_uring_cqe *cqe;

    while (!__atomic_load_n(&a->stop, __ATOMIC_ACQUIRE)) {
        if (io_uring_wait_cqe(&a->ring, &cqe)) continue;
        struct io_slot *slot = io_uring_cqe_get_data(cqe);
        int32_t result = cqe->res;
        io_uring_cqe_seen(&a->ring, cqe);
        if (slot) /* else: the wake-up of uring_stop() */
            slot_reaped(a, slot, result);
    }
    return NULL;
}

static int uring_start(struct shard *s) {
    struct async_io *a = async_new(s);

    if (!a) return -ENOMEM;
    int err = io_uring_queue_init(IN_FLIGHT_MAX, &a->ring, 0);
    if (err) {
        async_free(a);
        return err;
    }
    reaper_start(a, uring_reap);
    return 0;
}

static void uring_stop(struct shard *s) {
    struct async_io *a = s->io;

    __atomic_store_n(&a->stop, 1, __ATOMIC_RELEASE);
    struct io_uring_sqe *sqe = io_uring_get_sqe(&a->ring);
    if (sqe) {
        io_uring_prep_nop(sqe);
        io_uring_sqe_set_data(sqe, NULL);
        io_uring_submit(&a->ring);
    }
    pthread_join(a->reaper, NULL);
    io_uring_queue_exit(&a->ring);
    async_free(a);
}

static const struct backend backends[] = {
    {.name = "pwrite", .direct = true, .submit = pwrite_submit},
    {.name = "libaio", .direct = true, .start = libaio_start, .stop = libaio_stop, .submit = libaio_submit},
    {.name = "uring", .direct = true, .start = uring_start, .stop = uring_stop, .submit = uring_submit},
    {.name = "buffered", .direct = false, .submit = buffered_submit},
};

const struct backend *backend_by_name(const char *name) {
    for (size_t i = 0; i < sizeof backends / sizeof *backends; i++)
        if (!strcmp(backends[i].name, name)) return &backends[i];
    return NULL;
}
