/* SPDX-License-Identifier: MIT */
/*
 * The demo store's server: one process, one device (a block device or a preallocated file).
 *
 *   socket -> dispatch thread -> shard queue -> worker -> back end (-> commit queue -> commit thread) -> reply
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "extents.h"
#include "server.h"
#include "truth.h"

#define FIRST_CLIENT_ID 4100

/* ---- Connections and ops ---- */

static void conn_put(struct conn *c) {
    if (__atomic_sub_fetch(&c->refs, 1, __ATOMIC_ACQ_REL)) return;
    close(c->fd);
    pthread_mutex_destroy(&c->send_lock);
    free(c);
}

static struct op *op_get(struct server *srv, struct conn *c, uint32_t length) {
    struct node *n = pool_get(&srv->ops);
    struct op *op = n ? container_of(n, struct op, node) : calloc(1, sizeof *op);

    if (!op) return NULL;
    if (op->capacity < length) {
        free(op->buf);
        op->capacity = 0;
        if (posix_memalign(&op->buf, 4096, length)) {
            free(op);
            return NULL;
        }
        op->capacity = length;
    }
    op->conn = c;
    __atomic_add_fetch(&c->refs, 1, __ATOMIC_RELAXED);
    return op;
}

void op_put(struct server *srv, struct op *op) {
    struct conn *c = op->conn;

    pool_put(&srv->ops, &op->node);
    conn_put(c);
}

void op_finish(struct server *srv, struct op *op) {
    uint64_t id = op->req.truth_id;

    POINT(id, op_finish, op->result);
    struct wire_header h = {.magic = WIRE_MAGIC,
                            .type = WIRE_REPLY,
                            .seq = op->req.seq,
                            .client = op->conn->client,
                            .result = op->result,
                            .offset = op->req.offset,
                            .length = op->req.length,
                            .truth_id = id,
                            .payload = op->req.type == WIRE_READ && op->result > 0 ? (uint32_t)op->result : 0};
    pthread_mutex_lock(&op->conn->send_lock);
    POINT(id, reply_send, h.client, h.seq, (uint32_t)(sizeof h + h.payload));
    int err = wire_send(op->conn->fd, &h, op->buf); /* a client that went away is noticed by the dispatcher */
    pthread_mutex_unlock(&op->conn->send_lock);
    POINT(id, reply_sent, err);
    op_put(srv, op);
}

/* ---- Dispatch ---- */

static uint32_t shard_of(const struct server *srv, const char *oid) {
    uint32_t hash = 5381;

    for (const char *p = oid; *p; p++) hash = hash * 33 + (uint8_t)*p;
    return hash % (uint32_t)srv->shard_count;
}

/* One request from a connection; 0, or -errno when the connection is to be dropped. */
static int dispatch(struct server *srv, struct conn *c) {
    struct wire_header h;
    int err = wire_recv(c->fd, &h, sizeof h);

    if (err) return err;
    POINT(h.truth_id, server_recv, c->client, h.seq, (uint32_t)(sizeof h + h.payload));
    if (h.magic != WIRE_MAGIC || (h.type != WIRE_WRITE && h.type != WIRE_READ) || !h.length ||
        h.length > WIRE_LENGTH_MAX || h.payload != (h.type == WIRE_WRITE ? h.length : 0) || h.offset > INT64_MAX / 2)
        return -EPROTO;
    h.oid[WIRE_OID_MAX - 1] = 0;
    struct op *op = op_get(srv, c, h.length);
    if (!op) return -ENOMEM;
    op->req = h;
    if (h.payload && (err = wire_recv(c->fd, op->buf, h.payload))) {
        op_put(srv, op);
        return err;
    }
    POINT(h.truth_id, server_decode, (int32_t)h.payload);
    op->shard = &srv->shards[shard_of(srv, h.oid)];
    POINT(h.truth_id, shard_enqueue, op, op->shard->index);
    queue_push(&op->shard->queue, &op->node);
    return 0;
}

static void accept_client(struct server *srv, uint32_t client) {
    struct wire_header hello = {.magic = WIRE_MAGIC, .type = WIRE_HELLO, .client = client};
    int fd = accept4(srv->listen_fd, NULL, NULL, SOCK_CLOEXEC);
    struct conn *c = fd < 0 ? NULL : calloc(1, sizeof *c);
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = c};

    if (!c) {
        if (fd >= 0) close(fd);
        return;
    }
    c->fd = fd;
    c->client = client;
    c->refs = 1;
    pthread_mutex_init(&c->send_lock, NULL);
    if (wire_send(fd, &hello, NULL) || epoll_ctl(srv->epoll_fd, EPOLL_CTL_ADD, fd, &ev)) conn_put(c);
}

static void *dispatch_main(void *arg) {
    struct server *srv = arg;
    uint32_t next_client = FIRST_CLIENT_ID;

    pthread_setname_np(pthread_self(), "demo-dispatch");
    for (;;) {
        struct epoll_event events[16];
        int n = epoll_wait(srv->epoll_fd, events, 16, -1);
        for (int i = 0; i < n; i++) {
            if (events[i].data.ptr == &srv->stop_fd) return NULL;
            if (events[i].data.ptr == &srv->listen_fd) {
                accept_client(srv, next_client++);
                continue;
            }
            struct conn *c = events[i].data.ptr;
            int err = dispatch(srv, c);
            if (err) {
                if (err != -ECONNRESET)
                    fprintf(stderr, "demo-server: client %" PRIu32 " dropped: %s\n", c->client, strerror(-err));
                epoll_ctl(srv->epoll_fd, EPOLL_CTL_DEL, c->fd, NULL);
                conn_put(c);
            }
        }
    }
}

/* ---- Start, stop ---- */

static int fail(const char *what, const char *which, int err) {
    fprintf(stderr, "demo-server: cannot %s: path=\"%s\", reason=\"%s\"\n", what, which, strerror(err));
    return 1;
}

static int server_open(struct server *srv) {
    struct wire_address addr;
    struct epoll_event ev = {.events = EPOLLIN};

    srv->dev_fd = open(srv->device_path, O_RDWR | O_CLOEXEC | (srv->backend->direct ? O_DIRECT : 0));
    if (srv->dev_fd < 0) return fail("open the device", srv->device_path, errno);
    off_t size = lseek(srv->dev_fd, 0, SEEK_END);
    if (size < (off_t)srv->object_size) return fail("hold even one object on the device", srv->device_path, ENOSPC);
    srv->dev_size = (uint64_t)size;
    srv->extents = extents_read(srv->dev_fd, &srv->on_device);
    if (!wire_address(&addr, srv->socket_path)) return fail("listen", srv->socket_path, EINVAL);
    unlink(srv->socket_path);
    srv->listen_fd = wire_socket(&addr);
    if (srv->listen_fd < 0 || bind(srv->listen_fd, &addr.any, addr.size) || listen(srv->listen_fd, 16))
        return fail("listen", srv->socket_path, errno);
    srv->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    srv->stop_fd = eventfd(0, EFD_CLOEXEC);
    ev.data.ptr = &srv->listen_fd;
    if (epoll_ctl(srv->epoll_fd, EPOLL_CTL_ADD, srv->listen_fd, &ev)) return fail("poll", srv->socket_path, errno);
    ev.data.ptr = &srv->stop_fd;
    if (epoll_ctl(srv->epoll_fd, EPOLL_CTL_ADD, srv->stop_fd, &ev)) return fail("poll", srv->socket_path, errno);
    return 0;
}

static int server_run(struct server *srv) {
    sigset_t stop_signals;
    int sig;

    sigemptyset(&stop_signals);
    sigaddset(&stop_signals, SIGINT);
    sigaddset(&stop_signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &stop_signals, NULL); /* before any thread of ours is made */
    int err = shards_start(srv);
    if (err) return fail(srv->backend->name, srv->device_path, -err);
    pthread_create(&srv->committer, NULL, commit_main, srv);
    pthread_create(&srv->dispatcher, NULL, dispatch_main, srv);
    faults_start(srv);
    sigwait(&stop_signals, &sig);
    faults_stop(srv);

    uint64_t one = 1;
    if (write(srv->stop_fd, &one, sizeof one) != sizeof one) return fail("stop", srv->socket_path, errno);
    pthread_join(srv->dispatcher, NULL);
    shards_stop(srv);
    queue_close(&srv->commit_queue);
    pthread_join(srv->committer, NULL);
    return 0;
}

static void server_free(struct server *srv) {
    struct node *n;

    while ((n = pool_get(&srv->ops))) {
        struct op *op = container_of(n, struct op, node);
        free(op->buf);
        free(op);
    }
    for (int i = 0; i < OBJECT_BUCKETS; i++)
        for (struct object *o = srv->objects[i], *next; o; o = next) {
            next = o->next;
            free(o);
        }
    free(srv->extents);
    unlink(srv->socket_path);
}

static void usage(FILE *f) {
    fputs(
        "usage: demo-server --socket PATH|@NAME|tcp:ADDRESS:PORT --device PATH [--backend "
        "pwrite|libaio|uring|buffered]\n"
        "                   [--shards N] [--workers N] [--object-size BYTES]\n"
        "                   [--inject STAGE:DELAY_US:FRACTION] [--fault KIND:US:WHAT]\n"
        "                   [--log-points FILE --log-capacity POINTS] [--log-faults FILE]\n"
        "STAGE: shard-queue worker device commit. Ends at SIGTERM, SIGINT, or with its parent (--with-parent).\n",
        f);
}

/* -1: go on; else the program's exit status. */
static int parse_options(int argc, char **argv, struct server *srv, uint64_t *points_capacity) {
    int option;
    enum {
        SOCKET = 256,
        DEVICE,
        BACKEND,
        SHARDS,
        WORKERS,
        OBJECT_SIZE,
        INJECT,
        POINTS,
        CAPACITY,
        FAULT,
        FAULTS,
        PARENT,
        HELP
    };
    static const struct option options[] = {{"socket", 1, NULL, SOCKET},
                                            {"device", 1, NULL, DEVICE},
                                            {"backend", 1, NULL, BACKEND},
                                            {"shards", 1, NULL, SHARDS},
                                            {"workers", 1, NULL, WORKERS},
                                            {"object-size", 1, NULL, OBJECT_SIZE},
                                            {"inject", 1, NULL, INJECT},
                                            {"log-points", 1, NULL, POINTS},
                                            {"log-capacity", 1, NULL, CAPACITY},
                                            {"fault", 1, NULL, FAULT},
                                            {"log-faults", 1, NULL, FAULTS},
                                            {"with-parent", 0, NULL, PARENT},
                                            {"help", 0, NULL, HELP},
                                            {0}};

    srv->backend = backend_by_name("pwrite");
    srv->shard_count = 2;
    srv->worker_count = 2;
    srv->object_size = 4u << 20;
    while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        switch (option) {
        case SOCKET: srv->socket_path = optarg; break;
        case DEVICE: srv->device_path = optarg; break;
        case BACKEND: srv->backend = backend_by_name(optarg); break;
        case SHARDS: srv->shard_count = atoi(optarg); break;
        case WORKERS: srv->worker_count = atoi(optarg); break;
        case OBJECT_SIZE: srv->object_size = strtoull(optarg, NULL, 0); break;
        case INJECT:
            if (inject_parse(optarg, srv->injectors)) {
                fprintf(stderr, "demo-server: not STAGE:DELAY_US:FRACTION: %s\n", optarg);
                return 2;
            }
            break;
        case FAULT:
            if (fault_parse(optarg, srv->faults)) {
                fprintf(stderr, "demo-server: not KIND:US:WHAT of a fault: %s\n", optarg);
                return 2;
            }
            break;
        case FAULTS: srv->faults_path = optarg; break;
        case POINTS: srv->points_path = optarg; break;
        case CAPACITY: *points_capacity = strtoull(optarg, NULL, 0); break;
        case PARENT: prctl(PR_SET_PDEATHSIG, SIGKILL); break;
        case 'h':
        case HELP: usage(stdout); return 0;
        default: usage(stderr); return 2;
        }
    }
    if (!srv->socket_path || !srv->device_path || !srv->backend || srv->shard_count < 1 ||
        srv->shard_count > SHARDS_MAX || srv->worker_count < 1 || srv->worker_count > WORKERS_MAX ||
        !srv->object_size || srv->object_size % 4096) {
        usage(stderr);
        return 2;
    }
    return -1;
}

int main(int argc, char **argv) {
    static struct server srv;
    uint64_t points_capacity = 1u << 20, dropped = 0;
    int status = parse_options(argc, argv, &srv, &points_capacity);

    if (status >= 0) return status;
    prctl(PR_SET_TIMERSLACK, 1); /* for exact delays */
    queue_init(&srv.commit_queue);
    pool_init(&srv.ops);
    pthread_mutex_init(&srv.objects_lock, NULL);
    if (srv.points_path && truth_start(points_capacity)) return fail("get memory for the log", srv.points_path, ENOMEM);
    int logging = srv.faults_path ? fault_log_open(srv.faults_path) : 0;
    if (logging) return fail("write the log", srv.faults_path, -logging);
    if (server_open(&srv)) return 1;
    status = server_run(&srv);
    logging = fault_log_close();
    if (logging) status = fail("write the log", srv.faults_path, -logging);
    if (!status && srv.points_path) {
        int err = truth_write(srv.points_path, &dropped);
        if (err) status = fail("write the log", srv.points_path, -err);
        if (dropped)
            fprintf(stderr, "demo-server: %" PRIu64 " points found no room in the log: raise --log-capacity\n",
                    dropped);
    }
    server_free(&srv);
    return status;
}
