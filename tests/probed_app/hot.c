/* SPDX-License-Identifier: MIT
 * Calls two functions for a while: hot() in a tight loop, cold() a hundred times a second.
 *   usage: hot SECONDS
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Each begins with a push, as the kernel emulates it. */
__asm__(
    ".text\n"
    ".globl hot\n.type hot, @function\nhot: push %rbp\npop %rbp\nret\n.size hot, . - hot\n"
    ".globl cold\n.type cold, @function\ncold: push %rbp\npop %rbp\nret\n.size cold, . - cold\n");
void hot(void);
void cold(void);

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv) {
    double begin = now(), end = begin + (argc > 1 ? atof(argv[1]) : 1);
    long colds = 0;
    for (double at = begin; at < end; at = now()) {
        if (at >= begin + (double)colds / 100) cold(), colds++;
        hot();
    }
    printf("%ld\n", colds);
    return 0;
}
