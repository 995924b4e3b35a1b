/* SPDX-License-Identifier: MIT */
/*
 * Makes events for the benchmarks: OPS ops of 18 events each (provider `bench`) by THREADS threads, thread k pinned to
 * CPU k modulo CPUS. An op begins on one thread, goes on at the next, and ends on the first; each thread has
 * DEPTH ops of its own in flight.
 *   usage: generator OPS THREADS CPUS
 */
#define _GNU_SOURCE
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "bench_tp.h"
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

enum { DEPTH = 8, QUEUE = 4 * DEPTH };

struct op {
    uint64_t id, off;
    unsigned phase, owner;
    char oid[26];
};

struct worker {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct op *queue[QUEUE];
    unsigned head, count;
    struct op own[DEPTH];
};

static struct worker *workers;
static unsigned threads, cpus;
static uint64_t ops;

static void push(unsigned to, struct op *op) { /* NULL: the thread before has ended all its ops */
    struct worker *w = &workers[to % threads];
    pthread_mutex_lock(&w->lock);
    w->queue[(w->head + w->count++) % QUEUE] = op;
    pthread_cond_signal(&w->more);
    pthread_mutex_unlock(&w->lock);
}

static struct op *pop(struct worker *w) {
    pthread_mutex_lock(&w->lock);
    while (w->count == 0) pthread_cond_wait(&w->more, &w->lock);
    struct op *op = w->queue[w->head];
    w->head = (w->head + 1) % QUEUE;
    w->count--;
    pthread_mutex_unlock(&w->lock);
    return op;
}

#define T(name) lttng_ust_tracepoint(bench, name, op->id, op->oid, op->off, 4096, lane)

static void begin(struct op *op, uint64_t id, unsigned lane) {
    op->id = id;
    op->off = id % 65536 * 4096;
    op->phase = 1;
    snprintf(op->oid, sizeof op->oid, "rbd_data.5e1f.%011llx", (unsigned long long)id);
    T(s00);
    T(s01);
    T(s02);
    T(s03);
    T(s04);
    T(s05);
}

static void *run(void *argument) {
    unsigned self = (unsigned)(uintptr_t)argument, lane = self / cpus;
    struct worker *w = &workers[self];
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(self % cpus, &set);
    if (pthread_setaffinity_np(pthread_self(), sizeof set, &set) != 0)
        fprintf(stderr, "generator: cannot pin a thread\n");
    uint64_t left = ops / threads + (self < ops % threads), unfinished = left, next = self;
    int neighbour_done = 0, told = 0;
    for (unsigned i = 0; i < DEPTH && left > 0; i++, left--, next += threads) {
        w->own[i].owner = self;
        begin(&w->own[i], next, lane);
        push(self + 1, &w->own[i]);
    }
    for (;;) {
        if (unfinished == 0 && !told) {
            told = 1;
            push(self + 1, NULL);
        }
        if (unfinished == 0 && neighbour_done) return NULL;
        struct op *op = pop(w);
        if (!op) {
            neighbour_done = 1;
        } else if (op->phase == 1) {
            op->phase = 2;
            T(s06);
            T(s07);
            T(s08);
            T(s09);
            T(s10);
            T(s11);
            push(op->owner, op);
        } else {
            T(s12);
            T(s13);
            T(s14);
            T(s15);
            T(s16);
            T(s17);
            unfinished--;
            if (left > 0) {
                begin(op, next, lane);
                left--;
                next += threads;
                push(self + 1, op);
            }
        }
    }
}

int main(int argc, char **argv) {
    if (argc != 4) return fprintf(stderr, "usage: generator OPS THREADS CPUS\n"), 2;
    ops = strtoull(argv[1], NULL, 10);
    threads = (unsigned)atoi(argv[2]);
    cpus = (unsigned)atoi(argv[3]);
    if (!ops || !threads || !cpus) return fprintf(stderr, "generator: numbers above 0 are wanted\n"), 2;
    workers = calloc(threads, sizeof *workers);
    if (!workers) return perror("generator"), 1;
    for (unsigned i = 0; i < threads; i++) {
        pthread_mutex_init(&workers[i].lock, NULL);
        pthread_cond_init(&workers[i].more, NULL);
    }
    for (unsigned i = 0; i < threads; i++)
        if (pthread_create(&workers[i].thread, NULL, run, (void *)(uintptr_t)i) != 0) return perror("generator"), 1;
    for (unsigned i = 0; i < threads; i++) pthread_join(workers[i].thread, NULL);
    free(workers);
    return 0;
}
