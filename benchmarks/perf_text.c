/* SPDX-License-Identifier: MIT
 * The text that `perf script --ns` would print of N block I/Os, as every program that reads it takes it: an issue and a
 * completion of each, in the order of time, up to 32 in flight on one device of 4 GiB.
 *
 *     perf_text N > out.blockio
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { DEPTH = 32, SECTORS = 1 << 23 };

struct io {
    int64_t end_ns;
    uint32_t sector;
    char kind;
};

static uint64_t state = 22;

static uint32_t chance(uint32_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(((state >> 33) * below) >> 31);
}

/* Most take 50 to 200 us, one in 64 up to 20 ms. */
static int64_t latency_ns(void) { return chance(64) ? 50000 + chance(150000) : 200000 + chance(20000000); }

static int in_flight(const struct io *ios, int count, uint32_t sector) {
    for (int i = 0; i < count; ++i)
        if (ios[i].sector == sector) return 1;
    return 0;
}

static void complete(struct io *ios, int *count, int which) {
    struct io io = ios[which];
    ios[which] = ios[--*count];
    printf("         swapper     0 [%03u] %5lld.%09lld: block:block_rq_complete: 202,16 %c () %u + 8 [0]\n",
           io.sector / 8 % 4, (long long)(io.end_ns / 1000000000), (long long)(io.end_ns % 1000000000), io.kind,
           io.sector);
}

static int first_to_end(const struct io *ios, int count) {
    int first = 0;
    for (int i = 1; i < count; ++i)
        if (ios[i].end_ns < ios[first].end_ns) first = i;
    return first;
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: perf_text N > FILE\n");
        return 2;
    }
    struct io ios[DEPTH];
    int count = 0;
    int64_t now = 153000000000;
    static char buffer[1 << 20];
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    for (long left = atol(argv[1]); left > 0 || count;) {
        int first = count ? first_to_end(ios, count) : -1;
        int64_t next = now + 500 + chance(20000);
        if (left == 0 || count == DEPTH || (count && ios[first].end_ns <= next)) {
            if (ios[first].end_ns > now) now = ios[first].end_ns;
            complete(ios, &count, first);
            continue;
        }
        now = next;
        struct io io = {now + latency_ns(), chance(SECTORS / 8) * 8, chance(3) ? 'R' : 'W'};
        while (in_flight(ios, count, io.sector)) io.sector = chance(SECTORS / 8) * 8;
        printf("             fio  4242 [%03u] %5lld.%09lld: block:block_rq_issue: 202,16 %c 4096 () %u + 8 [fio]\n",
               io.sector / 8 % 4, (long long)(now / 1000000000), (long long)(now % 1000000000), io.kind, io.sector);
        ios[count++] = io;
        --left;
    }
    if (fflush(stdout) == 0 && !ferror(stdout)) return 0;
    perror("perf_text");
    return 1;
}
