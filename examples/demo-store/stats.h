/* SPDX-License-Identifier: MIT */
/* The benchmark's own figures, from every op's latency: exact percentiles (nearest rank). */
#ifndef DEMO_STATS_H
#define DEMO_STATS_H

#include <stdint.h>

struct stats {
    uint64_t count;
    int64_t min_ns, max_ns, p50_ns, p90_ns, p99_ns, p999_ns;
    double mean_ns, stddev_ns;
};

/* Sorts the values. All zero without values. */
struct stats stats_of(int64_t *values_ns, uint64_t count);

#endif
