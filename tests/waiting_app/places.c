// SPDX-License-Identifier: MIT
// Waits at known places of a program. places WHAT N: a line "WHAT TID BEGIN END" (CLOCK_MONOTONIC ns) for each of N
// waits of 3 ms, which `innermost` makes for `middle` for WHAT's own function. WHAT `becomes:NEXT` executes itself once
// more as NEXT, in the same process. `child` waits in a process that ends soon, half a second before this one.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define APART __attribute__((noinline, noclone))

static const char *what;
static volatile int calls;  // what stands behind a call keeps it from being a jump

static long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000L + t.tv_nsec;
}

static void sleep_ms(long ms) {
    clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

APART void innermost(void) {
    const long begin = now();
    sleep_ms(3);
    printf("%s %d %ld %ld\n", what, gettid(), begin, now());
}

APART void middle(long n) {
    char room[4096 + n];  // of a size that is known when it runs: needs a frame pointer in this function
    memset(room, (int)n, sizeof(room));
    for (; n > 0; --n) innermost();
    calls += room[calls & 1];
}

APART void plain(long n) { middle(n), ++calls; }
APART void before(long n) { middle(n), ++calls; }
APART void after(long n) { middle(n), calls += 2; }

APART void child(long n) {
    if (fork() == 0) {
        middle(n);
        fflush(stdout);
        _exit(0);
    }
    wait(NULL);
    sleep_ms(500);
}

int main(int argc, char **argv) {
    const long n = argc > 2 ? atol(argv[2]) : 1;
    const char *next = strchr(argv[1], ':');
    what = next ? "before" : argv[1];
    if (next) before(n);
    else if (!strcmp(what, "after")) after(n);
    else if (!strcmp(what, "child")) child(n);
    else plain(n);
    fflush(stdout);
    if (next) execl("/proc/self/exe", argv[0], next + 1, argv[2], NULL);
    return 0;
}
