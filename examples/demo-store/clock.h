/* SPDX-License-Identifier: MIT */
/* The monotonic clock (the one that LTTng-UST stamps events with), exact delays, and delay injection. */
#ifndef DEMO_CLOCK_H
#define DEMO_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t now_ns(void) {
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* Sleeps, then spins to the deadline: late by less than a microsecond unless preempted. */
void delay_ns(int64_t ns);

/* The stages in which a delay can be injected; README.md says between which two tracepoints each lies. */
enum inject_stage {
    INJECT_CLIENT_QUEUE,
    INJECT_SHARD_QUEUE,
    INJECT_WORKER,
    INJECT_DEVICE,
    INJECT_COMMIT,
    INJECT_COUNT
};

struct injector {
    int64_t delay_ns; /* 0: off */
    double fraction;  /* of the ops, in ]0, 1] */
    uint64_t seen;
};

/* "STAGE:DELAY_US:FRACTION" into the stage's injector; -1 if it can't be read. */
int inject_parse(const char *text, struct injector injectors[INJECT_COUNT]);
/* Whether the next op is to be delayed: evenly spread, so that exactly the fraction is. Thread-safe. */
int inject_due(struct injector *i);
static inline void inject(struct injector *i) {
    if (i->delay_ns && inject_due(i)) delay_ns(i->delay_ns);
}

#endif
