/* SPDX-License-Identifier: MIT */
#include "clock.h"

#include <stdlib.h>
#include <string.h>

static const char *const stage_names[INJECT_COUNT] = {"client-queue", "shard-queue", "worker", "device", "commit"};

/* A sleep may return late by the timer's slack and the wake-up: leave that much for the spin. */
static const int64_t spin_ns = 150000;

void delay_ns(int64_t ns) {
    int64_t deadline = now_ns() + ns;

    if (ns > spin_ns) {
        int64_t until = deadline - spin_ns;
        struct timespec ts = {until / 1000000000, until % 1000000000};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
    }
    while (now_ns() < deadline)
        ;
}

int inject_parse(const char *text, struct injector injectors[INJECT_COUNT]) {
    const char *colon = strchr(text, ':');

    if (!colon) return -1;
    for (int s = 0; s < INJECT_COUNT; s++) {
        if (strlen(stage_names[s]) != (size_t)(colon - text) || strncmp(text, stage_names[s], (size_t)(colon - text)))
            continue;
        char *end;
        double us = strtod(colon + 1, &end);
        if (end == colon + 1 || *end != ':' || !(us > 0) || us > 10e6) return -1;
        const char *f = end + 1;
        double fraction = strtod(f, &end);
        if (end == f || *end || !(fraction > 0) || fraction > 1) return -1;
        injectors[s] = (struct injector){.delay_ns = (int64_t)(us * 1000), .fraction = fraction};
        return 0;
    }
    return -1;
}

int inject_due(struct injector *i) {
    uint64_t n = __atomic_fetch_add(&i->seen, 1, __ATOMIC_RELAXED);

    return (uint64_t)((double)(n + 1) * i->fraction) > (uint64_t)((double)n * i->fraction);
}
