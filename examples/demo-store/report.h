/* SPDX-License-Identifier: MIT */
/* What the benchmark keeps of every op, and the three ways in which it tells: text, JSON, CSV. */
#ifndef DEMO_REPORT_H
#define DEMO_REPORT_H

#include <stdint.h>
#include <stdio.h>

#include "client.h"

#define OBJECT_FORMAT "bench_object_%u"

struct op_log {
    struct demo_times times;
    uint64_t offset; /* in the object */
    uint32_t length, object;
    int64_t due_ns; /* with --rate: when it was to begin */
    int32_t result;
    uint8_t is_read;
};

/* Grows by chunks that never move: the finisher writes to entries while the caller adds others. */
struct run_log {
    struct op_log *chunks[4096];
    uint64_t count;
    int64_t begin_ns, end_ns; /* of the run */
};

/* Room for op n; NULL without memory. */
struct op_log *run_log_reserve(struct run_log *log, uint64_t n);
struct op_log *run_log_entry(const struct run_log *log, uint64_t n);
uint64_t run_log_errors(const struct run_log *log);
void run_log_free(struct run_log *log);

struct report_config {
    const char *backend, *device;
    unsigned queue_depth, read_percent, object_count;
    uint64_t block_size;
    double rate; /* ops per second that were due; 0: no schedule */
};

void report_text(FILE *f, const struct run_log *log, const struct report_config *c);
/* Both write beside and rename; 0, or -1 with errno. */
int report_json(const char *path, const struct run_log *log, const struct report_config *c);
int report_log(const char *path, const struct run_log *log);

#endif
