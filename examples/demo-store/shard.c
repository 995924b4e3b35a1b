/* SPDX-License-Identifier: MIT */
/* Workers: take ops from their shard's queue, find the object on the device, hand over to the back end. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "extents.h"
#include "server.h"
#include "truth.h"

/* The slot of the object on the device, given at its first use; -ENOSPC when the device is full. */
static int object_slot(struct server *srv, const char *oid) {
    uint32_t hash = 2166136261u;
    int slot = -ENOSPC;

    for (const char *p = oid; *p; p++) hash = (hash ^ (uint8_t)*p) * 16777619u;
    pthread_mutex_lock(&srv->objects_lock);
    struct object **bucket = &srv->objects[hash % OBJECT_BUCKETS], *o = *bucket;
    while (o && strcmp(o->oid, oid)) o = o->next;
    if (o) {
        slot = o->slot;
    } else if ((uint64_t)(srv->object_count + 1) * srv->object_size <= srv->dev_size && (o = calloc(1, sizeof *o))) {
        strcpy(o->oid, oid);
        slot = o->slot = srv->object_count++;
        o->next = *bucket;
        *bucket = o;
    }
    pthread_mutex_unlock(&srv->objects_lock);
    return slot;
}

static void *worker_main(void *arg) {
    struct shard *s = arg;
    struct server *srv = s->server;
    struct node *n;

    while ((n = queue_pop(&s->queue))) {
        struct op *op = container_of(n, struct op, node);
        inject(&srv->injectors[INJECT_SHARD_QUEUE]);
        POINT(op->req.truth_id, shard_dequeue, op, s->index);
        int slot = object_slot(srv, op->req.oid);
        POINT(op->req.truth_id, object_lookup, slot);
        if (slot >= 0 && op->req.offset + op->req.length > srv->object_size) slot = -EFBIG;
        inject(&srv->injectors[INJECT_WORKER]);
        fault_worker(srv, op);
        if (slot < 0) {
            op->result = slot;
            op_finish(srv, op);
            continue;
        }
        op->dev_offset = (uint64_t)slot * srv->object_size + op->req.offset;
        uint64_t traced = srv->on_device ? op->dev_offset : extents_find(srv->extents, op->dev_offset);
        POINT(op->req.truth_id, io_begin, op, traced, op->req.length);
        srv->backend->submit(s, op);
    }
    return NULL;
}

int shards_start(struct server *srv) {
    for (int i = 0; i < srv->shard_count; i++) {
        struct shard *s = &srv->shards[i];
        s->server = srv;
        s->index = i;
        queue_init(&s->queue);
        int err = srv->backend->start ? srv->backend->start(s) : 0;
        if (err) return err;
        for (int w = 0; w < srv->worker_count; w++) {
            char name[16];
            snprintf(name, sizeof name, "demo-work-%u.%u", (unsigned)i % SHARDS_MAX, (unsigned)w % WORKERS_MAX);
            pthread_create(&s->workers[w], NULL, worker_main, s);
            pthread_setname_np(s->workers[w], name);
        }
    }
    return 0;
}

void shards_stop(struct server *srv) {
    for (int i = 0; i < srv->shard_count; i++) queue_close(&srv->shards[i].queue);
    for (int i = 0; i < srv->shard_count; i++) {
        struct shard *s = &srv->shards[i];
        for (int w = 0; w < srv->worker_count; w++) pthread_join(s->workers[w], NULL);
        if (srv->backend->stop) srv->backend->stop(s);
        queue_destroy(&s->queue);
    }
}
