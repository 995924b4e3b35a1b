/* SPDX-License-Identifier: MIT
 * Says "begin", emits COUNT events opltest:tick, PAUSE_US apart, prints how many, and exits with STATUS.
 *   usage: ticker COUNT [PAUSE_US [STATUS]]
 */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "opltest_tp.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv) {
    unsigned long count = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;
    useconds_t pause_us = argc > 2 ? (useconds_t)atoi(argv[2]) : 0;
    fprintf(stderr, "begin\n");
    for (unsigned long i = 0; i < count; i++) {
        lttng_ust_tracepoint(opltest, tick, i);
        if (pause_us) usleep(pause_us);
    }
    printf("ticks %lu\n", count);
    fprintf(stderr, "done\n");
    return argc > 3 ? atoi(argv[3]) : 0;
}
