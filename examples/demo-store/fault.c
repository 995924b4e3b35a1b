/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "fault.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "server.h"

static const char *const kind_names[FAULT_COUNT] = {"lock", "thread", "object", "writes", "flushes"};

#define BURST_BYTES ((size_t)16 << 20)

static bool is_periodic(int kind) { return kind != FAULT_THREAD && kind != FAULT_OBJECT; }

int fault_parse(const char *text, struct fault faults[FAULT_COUNT]) {
    for (int k = 0; k < FAULT_COUNT; k++) {
        size_t length = strlen(kind_names[k]);
        if (strncmp(text, kind_names[k], length) || text[length] != ':') continue;
        char *end;
        double us = strtod(text + length + 1, &end);
        if (*end != ':' || !(us > 0) || us > 10e6 || !end[1]) return -1;
        const char *what = end + 1;
        double period_us = is_periodic(k) ? strtod(what, &end) : 0;
        if (is_periodic(k) && (*end || !(period_us > us) || period_us > 3600e6)) return -1;
        faults[k] = (struct fault){.ns = (int64_t)(us * 1000), .period_ns = (int64_t)(period_us * 1000), .name = what};
        return 0;
    }
    return -1;
}

static bool stopping(struct server *srv) { return __atomic_load_n(&srv->faults_stop, __ATOMIC_ACQUIRE); }

/* Sleeps in pieces, so that the server's end need not wait for a long period. */
static void sleep_until(struct server *srv, int64_t deadline) {
    for (int64_t left; !stopping(srv) && (left = deadline - now_ns()) > 0;) delay_ns(left < 50000000 ? left : 50000000);
}

static void *lock_main(void *arg) {
    struct fault *f = arg;

    for (int64_t begin = now_ns() + f->period_ns; !stopping(f->server); begin += f->period_ns) {
        sleep_until(f->server, begin);
        pthread_mutex_lock(&f->server->objects_lock);
        sleep_until(f->server, now_ns() + f->ns);
        pthread_mutex_unlock(&f->server->objects_lock);
    }
    return NULL;
}

/* Writes to the device's last eighth, where no object is until it is full. */
static void *writes_main(void *arg) {
    struct fault *f = arg;
    uint64_t low = f->server->dev_size / 8 * 7 / BURST_BYTES * BURST_BYTES, at = low;
    void *buf;

    if (posix_memalign(&buf, 4096, BURST_BYTES)) return NULL;
    memset(buf, 0x5a, BURST_BYTES);
    for (int64_t begin = now_ns() + f->period_ns; !stopping(f->server); begin += f->period_ns) {
        sleep_until(f->server, begin);
        for (int64_t end = now_ns() + f->ns; !stopping(f->server) && now_ns() < end; at += BURST_BYTES) {
            if (at + BURST_BYTES > f->server->dev_size) at = low;
            if (pwrite(f->server->dev_fd, buf, BURST_BYTES, (off_t)at) < 0) break;
        }
    }
    free(buf);
    return NULL;
}

static void *flushes_main(void *arg) {
    struct fault *f = arg;

    for (int64_t begin = now_ns() + f->period_ns; !stopping(f->server); begin += f->period_ns) {
        sleep_until(f->server, begin);
        for (int64_t end = now_ns() + f->ns; !stopping(f->server) && now_ns() < end;)
            if (fdatasync(f->server->dev_fd)) break;
    }
    return NULL;
}

void faults_start(struct server *srv) {
    static void *(*const mains[FAULT_COUNT])(void *) = {
        [FAULT_LOCK] = lock_main, [FAULT_WRITES] = writes_main, [FAULT_FLUSHES] = flushes_main};

    for (int k = 0; k < FAULT_COUNT; k++) {
        struct fault *f = &srv->faults[k];
        f->server = srv;
        if (!f->ns || !mains[k]) continue;
        char name[16] = "demo-";
        strncat(name, kind_names[k], sizeof name - sizeof "demo-");
        pthread_create(&f->thread, NULL, mains[k], f);
        pthread_setname_np(f->thread, name);
    }
}

void faults_stop(struct server *srv) {
    __atomic_store_n(&srv->faults_stop, 1, __ATOMIC_RELEASE);
    for (int k = 0; k < FAULT_COUNT; k++)
        if (srv->faults[k].ns && is_periodic(k)) pthread_join(srv->faults[k].thread, NULL);
}

void fault_worker(struct server *srv, const struct op *op) {
    const struct fault *thread = &srv->faults[FAULT_THREAD], *object = &srv->faults[FAULT_OBJECT];
    char name[16];

    if (object->ns && !strcmp(op->req.oid, object->name)) delay_ns(object->ns);
    if (thread->ns && !pthread_getname_np(pthread_self(), name, sizeof name) && !strcmp(name, thread->name))
        delay_ns(thread->ns);
}
