/* SPDX-License-Identifier: MIT */
/* The server's parts: connections and dispatch (server.c), object table and workers (shard.c), back ends (backend.c),
   group commit (commit.c). */
#ifndef DEMO_SERVER_H
#define DEMO_SERVER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "clock.h"
#include "fault.h"
#include "queue.h"
#include "wire.h"

struct conn {
    int fd;
    uint32_t client;
    int refs; /* the dispatcher's, and one per op in flight; atomic */
    pthread_mutex_t send_lock;
};

struct op {
    struct node node;
    struct conn *conn;
    struct shard *shard;
    struct wire_header req;
    void *buf; /* aligned for O_DIRECT */
    size_t capacity;
    uint64_t dev_offset;
    int32_t result;
};

struct backend {
    const char *name;
    bool direct;
    /* Per shard, before its workers start and after they have ended; 0 or -errno. Absent: nothing to do. */
    int (*start)(struct shard *s);
    void (*stop)(struct shard *s);
    /* On the worker's thread, which works for the op. Sooner or later op_finish() is called, on any thread. */
    void (*submit)(struct shard *s, struct op *op);
};

#define SHARDS_MAX 16
#define WORKERS_MAX 16

struct shard {
    struct server *server;
    int index;
    struct queue queue;
    pthread_t workers[WORKERS_MAX];
    void *io; /* of the back end */
};

struct object {
    char oid[WIRE_OID_MAX];
    int slot;
    struct object *next;
};

#define OBJECT_BUCKETS 1024

struct server {
    /* options */
    const char *socket_path, *device_path, *points_path, *faults_path;
    const struct backend *backend;
    int shard_count, worker_count;
    uint64_t object_size;
    struct injector injectors[INJECT_COUNT];
    struct fault faults[FAULT_COUNT];

    int faults_stop; /* atomic */
    int listen_fd, epoll_fd, stop_fd, dev_fd;
    uint64_t dev_size;
    int on_device;          /* else on a file, */
    struct fiemap *extents; /* which lies there on its device; NULL: not known */
    pthread_t dispatcher, committer;
    struct shard shards[SHARDS_MAX];
    struct queue commit_queue;
    struct pool ops;
    pthread_mutex_t objects_lock;
    struct object *objects[OBJECT_BUCKETS];
    int object_count;
};

const struct backend *backend_by_name(const char *name);

/* 0 or -errno. */
int shards_start(struct server *srv);
void shards_stop(struct server *srv);

void *commit_main(void *server);

/* The thread works for the op: sends the reply and gives the op back. */
void op_finish(struct server *srv, struct op *op);
void op_put(struct server *srv, struct op *op);

#endif
