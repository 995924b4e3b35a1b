/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "fault.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
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

static FILE *log_file;

int fault_log_open(const char *path) {
    log_file = fopen(path, "w");
    if (!log_file) return -errno;
    setvbuf(log_file, NULL, _IOFBF, 1 << 20); /* no write beside what is measured, until it is full */
    fputs("fault,tid,thread,begin_ns,end_ns\n", log_file);
    return 0;
}

int fault_log_close(void) {
    if (!log_file) return 0;
    int failed = ferror(log_file);
    return fclose(log_file) || failed ? (errno ? -errno : -EIO) : 0;
}

/* It acted on this thread from that time until now. */
static void logged(const struct fault *f, int64_t begin_ns) {
    char name[16] = "";

    if (!log_file) return;
    int64_t end_ns = now_ns();
    pthread_getname_np(pthread_self(), name, sizeof name);
    fprintf(log_file, "%s,%d,%s,%" PRId64 ",%" PRId64 "\n", f->kind, gettid(), name, begin_ns, end_ns);
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
        int64_t held = now_ns();
        sleep_until(f->server, held + f->ns);
        pthread_mutex_unlock(&f->server->objects_lock);
        logged(f, held);
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
        int64_t burst = now_ns();
        for (; !stopping(f->server) && now_ns() < burst + f->ns; at += BURST_BYTES) {
            if (at + BURST_BYTES > f->server->dev_size) at = low;
            if (pwrite(f->server->dev_fd, buf, BURST_BYTES, (off_t)at) < 0) break;
        }
        logged(f, burst);
    }
    free(buf);
    return NULL;
}

static void *flushes_main(void *arg) {
    struct fault *f = arg;

    for (int64_t begin = now_ns() + f->period_ns; !stopping(f->server); begin += f->period_ns) {
        sleep_until(f->server, begin);
        int64_t burst = now_ns();
        while (!stopping(f->server) && now_ns() < burst + f->ns)
            if (fdatasync(f->server->dev_fd)) break;
        logged(f, burst);
    }
    return NULL;
}

void faults_start(struct server *srv) {
    static void *(*const mains[FAULT_COUNT])(void *) = {
        [FAULT_LOCK] = lock_main, [FAULT_WRITES] = writes_main, [FAULT_FLUSHES] = flushes_main};

    for (int k = 0; k < FAULT_COUNT; k++) {
        struct fault *f = &srv->faults[k];
        f->server = srv;
        f->kind = kind_names[k];
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

static void slow_down(const struct fault *f) {
    int64_t begin = now_ns();

    delay_ns(f->ns);
    logged(f, begin);
}

void fault_worker(struct server *srv, const struct op *op) {
    const struct fault *thread = &srv->faults[FAULT_THREAD], *object = &srv->faults[FAULT_OBJECT];
    char name[16];

    if (object->ns && !strcmp(op->req.oid, object->name)) slow_down(object);
    if (thread->ns && !pthread_getname_np(pthread_self(), name, sizeof name) && !strcmp(name, thread->name))
        slow_down(thread);
}
