/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "client.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "queue.h"
#include "truth.h"
#include "wire.h"

struct demo_completion {
    struct node node;
    demo_callback *cb;
    void *arg;
    struct demo_times *times;
    void *buf;
    uint64_t offset, truth_id;
    uint32_t length;
    int32_t result;
    uint16_t type;
    char oid[WIRE_OID_MAX];
};

struct demo_client {
    int fd;
    uint32_t id;
    pthread_t sender, reader, finisher;
    struct queue send_queue, finish_queue;
    struct pool completions;
    struct injector no_injectors[INJECT_COUNT], *injectors;
    /* By message sequence number; a slot is taken until the reply. */
    struct demo_completion *waiting[UINT16_MAX + 1];
};

static void *sender_main(void *arg) {
    struct demo_client *c = arg;
    uint16_t seq = 0;
    struct node *n;

    pthread_setname_np(pthread_self(), "demo-sender");
    while ((n = queue_pop(&c->send_queue))) {
        struct demo_completion *comp = container_of(n, struct demo_completion, node);
        uint64_t id = comp->truth_id; /* after sendmsg the completion may be somebody else's */
        POINT(id, client_dequeue, comp, 0);
        do seq++;
        while (__atomic_load_n(&c->waiting[seq], __ATOMIC_ACQUIRE));
        struct wire_header h = {.magic = WIRE_MAGIC,
                                .type = comp->type,
                                .seq = seq,
                                .client = c->id,
                                .offset = comp->offset,
                                .length = comp->length,
                                .truth_id = id,
                                .payload = comp->type == WIRE_WRITE ? comp->length : 0};
        memcpy(h.oid, comp->oid, sizeof h.oid);
        const void *payload = comp->buf;
        __atomic_store_n(&c->waiting[seq], comp, __ATOMIC_RELEASE);
        POINT(id, client_encode, (int32_t)(sizeof h + h.payload));
        POINT(id, client_send, c->id, seq, (uint32_t)(sizeof h + h.payload));
        int err = wire_send(c->fd, &h, payload);
        POINT(id, client_sent, err);
        if (err) {
            fprintf(stderr, "demo-store: cannot send to the server: %s\n", strerror(-err));
            _exit(1);
        }
    }
    return NULL;
}

static void *reader_main(void *arg) {
    struct demo_client *c = arg;
    struct wire_header h;
    int err;

    pthread_setname_np(pthread_self(), "demo-reader");
    while (!(err = wire_recv(c->fd, &h, sizeof h))) {
        struct demo_completion *comp = h.magic == WIRE_MAGIC && h.type == WIRE_REPLY ? c->waiting[h.seq] : NULL;
        if (!comp || (h.payload && h.payload > comp->length)) {
            fprintf(stderr, "demo-store: the server's reply makes no sense: type=%u, seq=%u\n", h.type, h.seq);
            _exit(1);
        }
        POINT(comp->truth_id, reply_recv, c->id, h.seq, (uint32_t)(sizeof h + h.payload));
        __atomic_store_n(&c->waiting[h.seq], NULL, __ATOMIC_RELEASE);
        if (h.payload && (err = wire_recv(c->fd, comp->buf, h.payload))) break;
        comp->result = h.result;
        POINT(comp->truth_id, reply_decode, (int32_t)h.payload);
        POINT(comp->truth_id, finisher_enqueue, comp, queue_depth(&c->finish_queue));
        queue_push(&c->finish_queue, &comp->node);
    }
    for (int seq = 0; seq <= UINT16_MAX; seq++)
        if (c->waiting[seq]) {
            fprintf(stderr, "demo-store: the server went away with ops in flight: %s\n", strerror(-err));
            _exit(1);
        }
    return NULL;
}

static void *finisher_main(void *arg) {
    struct demo_client *c = arg;
    struct node *n;

    pthread_setname_np(pthread_self(), "demo-finisher");
    while ((n = queue_pop(&c->finish_queue))) {
        struct demo_completion *comp = container_of(n, struct demo_completion, node);
        POINT(comp->truth_id, finisher_dequeue, comp, 0);
        END_POINT(comp->truth_id, comp->times->end_ns, comp->times->ended_ns, aio_complete, comp, comp->result);
        comp->cb(comp->arg, comp->result);
        pool_put(&c->completions, &comp->node);
    }
    return NULL;
}

struct demo_completion *demo_completion_get(struct demo_client *c, demo_callback *cb, void *arg,
                                            struct demo_times *times, uint64_t truth_id) {
    struct node *n = pool_get(&c->completions);
    struct demo_completion *comp =
        n ? container_of(n, struct demo_completion, node) : calloc(1, sizeof(struct demo_completion));

    if (comp) {
        comp->cb = cb;
        comp->arg = arg;
        comp->times = times;
        comp->truth_id = truth_id;
    }
    return comp;
}

/* After the op's first tracepoint. */
static int submit(struct demo_client *c, struct demo_completion *comp, uint16_t type, const char *oid, void *buf,
                  uint32_t length, uint64_t offset) {
    comp->type = type;
    comp->buf = buf;
    comp->length = length;
    comp->offset = offset;
    strcpy(comp->oid, oid);
    POINT(comp->truth_id, client_enqueue, queue_depth(&c->send_queue));
    inject(&c->injectors[INJECT_CLIENT_QUEUE]);
    queue_push(&c->send_queue, &comp->node);
    return 0;
}

static int refuse(struct demo_client *c, struct demo_completion *comp, const char *oid, uint32_t length) {
    int err = strlen(oid) >= WIRE_OID_MAX ? -ENAMETOOLONG : !length || length > WIRE_LENGTH_MAX ? -EINVAL : 0;

    if (err) pool_put(&c->completions, &comp->node);
    return err;
}

int demo_aio_write(struct demo_client *c, struct demo_completion *comp, const char *oid, const void *buf,
                   uint32_t length, uint64_t offset) {
    int err = refuse(c, comp, oid, length);

    if (err) return err;
    END_POINT(comp->truth_id, comp->times->begin_ns, comp->times->begun_ns, aio_write, comp, oid, offset, length);
    return submit(c, comp, WIRE_WRITE, oid, (void *)(uintptr_t)buf, length, offset);
}

int demo_aio_read(struct demo_client *c, struct demo_completion *comp, const char *oid, void *buf, uint32_t length,
                  uint64_t offset) {
    int err = refuse(c, comp, oid, length);

    if (err) return err;
    END_POINT(comp->truth_id, comp->times->begin_ns, comp->times->begun_ns, aio_read, comp, oid, offset, length);
    return submit(c, comp, WIRE_READ, oid, buf, length, offset);
}

static int connect_socket(const char *path, int timeout_ms) {
    struct wire_address addr;

    if (!wire_address(&addr, path)) return -EINVAL;
    int fd = wire_socket(&addr);
    if (fd < 0) return -errno;
    for (int waited_ms = 0; connect(fd, &addr.any, addr.size); waited_ms += 5) {
        if ((errno != ENOENT && errno != ECONNREFUSED) || waited_ms >= timeout_ms) {
            int err = -errno;
            close(fd);
            return err;
        }
        usleep(5000);
    }
    return fd;
}

int demo_connect(struct demo_client **out, const char *socket_path, int timeout_ms, struct injector *injectors) {
    struct demo_client *c = calloc(1, sizeof *c);
    struct wire_header hello;

    if (!c) return -ENOMEM;
    c->injectors = injectors ? injectors : c->no_injectors;
    c->fd = connect_socket(socket_path, timeout_ms);
    int err = c->fd < 0 ? c->fd : wire_recv(c->fd, &hello, sizeof hello);
    if (!err && (hello.magic != WIRE_MAGIC || hello.type != WIRE_HELLO)) err = -EPROTO;
    if (err) {
        if (c->fd >= 0) close(c->fd);
        free(c);
        return err;
    }
    c->id = hello.client;
    queue_init(&c->send_queue);
    queue_init(&c->finish_queue);
    pool_init(&c->completions);
    pthread_create(&c->sender, NULL, sender_main, c);
    pthread_create(&c->reader, NULL, reader_main, c);
    pthread_create(&c->finisher, NULL, finisher_main, c);
    *out = c;
    return 0;
}

void demo_disconnect(struct demo_client *c) {
    struct node *n;

    queue_close(&c->send_queue);
    pthread_join(c->sender, NULL);
    shutdown(c->fd, SHUT_RDWR);
    pthread_join(c->reader, NULL);
    queue_close(&c->finish_queue);
    pthread_join(c->finisher, NULL);
    close(c->fd);
    while ((n = pool_get(&c->completions))) free(container_of(n, struct demo_completion, node));
    queue_destroy(&c->send_queue);
    queue_destroy(&c->finish_queue);
    pool_destroy(&c->completions);
    free(c);
}
