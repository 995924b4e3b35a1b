/* SPDX-License-Identifier: MIT */
#include "stats.h"

#include <math.h>
#include <stdlib.h>

static int compare(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static int64_t percentile(const int64_t *sorted, uint64_t count, double p) {
    uint64_t rank = (uint64_t)ceil(p * (double)count);

    return sorted[rank ? rank - 1 : 0];
}

struct stats stats_of(int64_t *v, uint64_t count) {
    struct stats s = {.count = count};
    double sum = 0, squares = 0;

    if (!count) return s;
    qsort(v, count, sizeof *v, compare);
    for (uint64_t i = 0; i < count; i++) sum += (double)v[i];
    s.mean_ns = sum / (double)count;
    for (uint64_t i = 0; i < count; i++) squares += ((double)v[i] - s.mean_ns) * ((double)v[i] - s.mean_ns);
    s.stddev_ns = sqrt(squares / (double)count);
    s.min_ns = v[0];
    s.max_ns = v[count - 1];
    s.p50_ns = percentile(v, count, 0.5);
    s.p90_ns = percentile(v, count, 0.9);
    s.p99_ns = percentile(v, count, 0.99);
    s.p999_ns = percentile(v, count, 0.999);
    return s;
}
