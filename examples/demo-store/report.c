/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "report.h"

#include <inttypes.h>
#include <stdlib.h>

#include "stats.h"

#define CHUNK 65536u
#define CHUNKS 4096u

struct op_log *run_log_reserve(struct run_log *log, uint64_t n) {
    if (n / CHUNK >= CHUNKS) return NULL;
    if (!log->chunks[n / CHUNK] && !(log->chunks[n / CHUNK] = calloc(CHUNK, sizeof(struct op_log)))) return NULL;
    return &log->chunks[n / CHUNK][n % CHUNK];
}

struct op_log *run_log_entry(const struct run_log *log, uint64_t n) {
    return &log->chunks[n / CHUNK][n % CHUNK];
}

uint64_t run_log_errors(const struct run_log *log) {
    uint64_t errors = 0;

    for (uint64_t i = 0; i < log->count; i++) errors += run_log_entry(log, i)->result < 0;
    return errors;
}

void run_log_free(struct run_log *log) {
    for (unsigned i = 0; i < CHUNKS; i++) free(log->chunks[i]);
}

static int64_t latency_ns(const struct demo_times *t) { return t->end_ns - t->begin_ns; }

enum which { ALL, WRITES, READS, SINCE_DUE };

static struct stats latency(const struct run_log *log, enum which which) {
    int64_t *values = malloc((log->count ? log->count : 1) * sizeof *values);
    uint64_t n = 0;

    for (uint64_t i = 0; values && i < log->count; i++) {
        const struct op_log *op = run_log_entry(log, i);
        if (op->result < 0 || (which == READS && !op->is_read) || (which == WRITES && op->is_read)) continue;
        values[n++] = which == SINCE_DUE ? op->times.end_ns - op->due_ns : latency_ns(&op->times);
    }
    struct stats s = stats_of(values, n);
    free(values);
    return s;
}

void report_text(FILE *f, const struct run_log *log, const struct report_config *c) {
    double seconds = (double)(log->end_ns - log->begin_ns) / 1e9;
    struct stats all = latency(log, ALL), writes = latency(log, WRITES), reads = latency(log, READS);

    fprintf(f, "Back end:               %s\n", c->backend);
    fprintf(f, "Queue depth:            %u\n", c->queue_depth);
    fprintf(f, "Total time run (s):     %.6f\n", seconds);
    fprintf(f, "Total writes made:      %" PRIu64 "\n", writes.count);
    fprintf(f, "Total reads made:       %" PRIu64 "\n", reads.count);
    fprintf(f, "Errors:                 %" PRIu64 "\n", run_log_errors(log));
    fprintf(f, "Op size (bytes):        %" PRIu64 "\n", c->block_size);
    fprintf(f, "Bandwidth (MB/sec):     %.3f\n", (double)all.count * (double)c->block_size / seconds / 1048576);
    fprintf(f, "Average IOPS:           %.1f\n", (double)all.count / seconds);
    fprintf(f, "Average Latency (us):   %.3f\n", all.mean_ns / 1e3);
    fprintf(f, "Stddev Latency (us):    %.3f\n", all.stddev_ns / 1e3);
    fprintf(f, "Min latency (us):       %.3f\n", (double)all.min_ns / 1e3);
    fprintf(f, "Max latency (us):       %.3f\n", (double)all.max_ns / 1e3);
    fprintf(f, "Latency p50 (us):       %.3f\n", (double)all.p50_ns / 1e3);
    fprintf(f, "Latency p90 (us):       %.3f\n", (double)all.p90_ns / 1e3);
    fprintf(f, "Latency p99 (us):       %.3f\n", (double)all.p99_ns / 1e3);
    fprintf(f, "Latency p99.9 (us):     %.3f\n", (double)all.p999_ns / 1e3);
    if (c->rate > 0) {
        struct stats due = latency(log, SINCE_DUE);
        fprintf(f, "Rate that was due (/s): %.3f\n", c->rate);
        fprintf(f, "Since due: mean (us):   %.3f\n", due.mean_ns / 1e3);
        fprintf(f, "Since due: p50 (us):    %.3f\n", (double)due.p50_ns / 1e3);
        fprintf(f, "Since due: p99 (us):    %.3f\n", (double)due.p99_ns / 1e3);
        fprintf(f, "Since due: p99.9 (us):  %.3f\n", (double)due.p999_ns / 1e3);
    }
}

static FILE *open_part(const char *path, char **part) {
    if (asprintf(part, "%s.part", path) < 0) {
        *part = NULL;
        return NULL;
    }
    return fopen(*part, "w");
}

static int close_part(FILE *f, char *part, const char *path) {
    int status = -1;

    if (f) {
        int failed = ferror(f);
        failed |= fclose(f);
        status = failed ? -1 : rename(part, path);
    }
    free(part);
    return status;
}

static void json_stats(FILE *f, const struct stats *s) {
    fprintf(f, "{\"count\": %" PRIu64, s->count);
    if (s->count)
        fprintf(f,
                ", \"mean\": %.3f, \"stddev\": %.3f, \"min\": %" PRId64 ", \"max\": %" PRId64 ", \"p50\": %" PRId64
                ", \"p90\": %" PRId64 ", \"p99\": %" PRId64 ", \"p99.9\": %" PRId64,
                s->mean_ns, s->stddev_ns, s->min_ns, s->max_ns, s->p50_ns, s->p90_ns, s->p99_ns, s->p999_ns);
    fputs("}", f);
}

int report_json(const char *path, const struct run_log *log, const struct report_config *c) {
    double seconds = (double)(log->end_ns - log->begin_ns) / 1e9;
    struct stats all = latency(log, ALL), writes = latency(log, WRITES), reads = latency(log, READS);
    char *part;
    FILE *f = open_part(path, &part);

    if (f) {
        fprintf(f, "{\"tool\": \"demo-bench\", \"version\": 1,\n \"backend\": \"%s\", \"device\": \"%s\",\n",
                c->backend, c->device ? c->device : "");
        fprintf(f, " \"queue_depth\": %u, \"op_size_bytes\": %" PRIu64 ", \"read_percent\": %u, \"objects\": %u,\n",
                c->queue_depth, c->block_size, c->read_percent, c->object_count);
        fprintf(f, " \"begin_ns\": %" PRId64 ", \"end_ns\": %" PRId64 ",\n", log->begin_ns, log->end_ns);
        fprintf(f, " \"ops\": %" PRIu64 ", \"writes\": %" PRIu64 ", \"reads\": %" PRIu64 ", \"errors\": %" PRIu64 ",\n",
                log->count, writes.count, reads.count, run_log_errors(log));
        fprintf(f, " \"iops\": %.3f, \"bandwidth_bytes_per_s\": %.0f,\n", (double)all.count / seconds,
                (double)all.count * (double)c->block_size / seconds);
        fputs(" \"latency_ns\": ", f);
        json_stats(f, &all);
        fputs(",\n \"write_latency_ns\": ", f);
        json_stats(f, &writes);
        fputs(",\n \"read_latency_ns\": ", f);
        json_stats(f, &reads);
        if (c->rate > 0) {
            struct stats due = latency(log, SINCE_DUE);
            fprintf(f, ",\n \"rate\": %.3f,\n \"since_due_ns\": ", c->rate);
            json_stats(f, &due);
        }
        fputs("}\n", f);
    }
    return close_part(f, part, path);
}

int report_log(const char *path, const struct run_log *log) {
    char *part;
    FILE *f = open_part(path, &part);

    if (f) {
        fputs("truth_id,class,object,offset_bytes,length_bytes,begin_ns,begun_ns,end_ns,ended_ns,latency_ns,result\n",
              f);
        for (uint64_t i = 0; i < log->count; i++) {
            const struct op_log *op = run_log_entry(log, i);
            const struct demo_times *t = &op->times;
            fprintf(f,
                    "%" PRIu64 ",%s," OBJECT_FORMAT ",%" PRIu64 ",%" PRIu32 ",%" PRId64 ",%" PRId64 ",%" PRId64
                    ",%" PRId64 ",%" PRId64 ",%d\n",
                    i, op->is_read ? "read" : "write", op->object, op->offset, op->length, t->begin_ns, t->begun_ns,
                    t->end_ns, t->ended_ns, latency_ns(t), op->result);
        }
    }
    return close_part(f, part, path);
}
