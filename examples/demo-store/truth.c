/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "truth.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct mark {
    uint64_t truth_id;
    const char *event;
    int64_t time_ns;
    int32_t tid;
};

int truth_enabled;
static struct mark *marks;
static uint64_t mark_capacity, mark_count;
static __thread int32_t own_tid;

int truth_start(uint64_t capacity) {
    marks = malloc(capacity * sizeof *marks);
    if (!marks) return -1;
    /* Fault the pages in now, not beside a tracepoint. Not with 0: malloc and memset of 0 would become calloc. */
    memset(marks, 0xff, capacity * sizeof *marks);
    mark_capacity = capacity;
    truth_enabled = 1;
    return 0;
}

void truth_mark(uint64_t truth_id, const char *event, int64_t time_ns) {
    uint64_t n = __atomic_fetch_add(&mark_count, 1, __ATOMIC_RELAXED);

    if (n >= mark_capacity) return;
    if (!own_tid) own_tid = gettid();
    marks[n] = (struct mark){truth_id, event, time_ns, own_tid};
}

int truth_write(const char *path, uint64_t *dropped) {
    FILE *f = fopen(path, "w");
    uint64_t n = mark_count < mark_capacity ? mark_count : mark_capacity;

    if (!f) return -errno;
    *dropped = mark_count - n;
    fputs("truth_id,event,tid,time_ns\n", f);
    for (uint64_t i = 0; i < n; i++) {
        if (marks[i].truth_id != TRUTH_NONE) fprintf(f, "%" PRIu64, marks[i].truth_id);
        fprintf(f, ",demo:%s,%d,%" PRId64 "\n", marks[i].event, marks[i].tid, marks[i].time_ns);
    }
    int failed = ferror(f);
    if (fclose(f) || failed) return errno ? -errno : -EIO;
    return 0;
}
