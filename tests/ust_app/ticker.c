/* SPDX-License-Identifier: MIT
 * Says "begin", emits COUNT events opltest:tick, PAUSE_US apart, prints how many, and exits with STATUS.
 *   usage: ticker COUNT [PAUSE_US [STATUS]]
 * $TICKER_LOG names a file: it gets a line per event, when it had been emitted (ns of the monotonic clock).
 */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "opltest_tp.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static void note(FILE *log) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    fprintf(log, "%lld\n", now.tv_sec * 1000000000LL + now.tv_nsec);
}

int main(int argc, char **argv) {
    unsigned long count = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;
    useconds_t pause_us = argc > 2 ? (useconds_t)atoi(argv[2]) : 0;
    const char *path = getenv("TICKER_LOG");
    FILE *log = path ? fopen(path, "w") : NULL;
    if (log) setvbuf(log, NULL, _IOLBF, 0);  // the lines of a program that is killed are there
    fprintf(stderr, "begin\n");
    for (unsigned long i = 0; i < count; i++) {
        lttng_ust_tracepoint(opltest, tick, i);
        if (log) note(log);
        if (pause_us) usleep(pause_us);
    }
    if (log) fclose(log);
    printf("ticks %lu\n", count);
    fprintf(stderr, "done\n");
    return argc > 3 ? atoi(argv[3]) : 0;
}
