/* SPDX-License-Identifier: MIT */
/* Faults that no delay of some ops is: a lock that is held, a slow thread or object, bursts of writes and of flushes.
 * */
#ifndef DEMO_FAULT_H
#define DEMO_FAULT_H

#include <pthread.h>
#include <stdint.h>

struct op;
struct server;

enum fault_kind { FAULT_LOCK, FAULT_THREAD, FAULT_OBJECT, FAULT_WRITES, FAULT_FLUSHES, FAULT_COUNT };

struct fault {
    int64_t ns;        /* 0: off. How long: of an op, or of each burst */
    int64_t period_ns; /* lock, writes, flushes: from one begin to the next */
    const char *name;  /* thread, object */
    struct server *server;
    pthread_t thread;
    const char *kind;
};

/* "KIND:US:WHAT", WHAT a period in us, or a name; -1 if it can't be read. */
int fault_parse(const char *text, struct fault faults[FAULT_COUNT]);
/* A line in this file for each time that a fault acts, CSV: fault, tid, thread, begin_ns, end_ns (CLOCK_MONOTONIC).
 * -errno on error. */
int fault_log_open(const char *path);
int fault_log_close(void);
/* The threads of those that need one; they run until faults_stop(). */
void faults_start(struct server *srv);
void faults_stop(struct server *srv);
/* On a worker, between object_lookup and io_begin. */
void fault_worker(struct server *srv, const struct op *op);

#endif
