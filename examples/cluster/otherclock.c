// SPDX-License-Identifier: MIT
// A clock plug-in of LTTng-UST (LTTNG_UST_CLOCK_PLUGIN): another host's clock on this machine. It is ahead of
// CLOCK_MONOTONIC by an offset, runs too fast, and its rate wanders. OTHER_CLOCK has the numbers, "OFFSET PPM WANDER
// PERIOD BEGIN": for t ns since BEGIN (ns of CLOCK_MONOTONIC) the clock is ahead by
//   OFFSET + PPM t / 10^6 + WANDER / 10^6 * PERIOD / 2 pi * 10^9 * (1 - cos(2 pi t / PERIOD / 10^9)) ns
#include <lttng/ust-clock.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double ppm, wander, period;
static long long offset, begin;

static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    const long long ns = t.tv_sec * 1000000000LL + t.tv_nsec, passed = ns - begin;
    const double turn = 2 * 3.14159265358979, wave = wander * 1e-6 * period / turn * 1e9;
    const long long drift = (long long)(passed * ppm * 1e-6);
    return (uint64_t)(ns + offset + drift + (long long)(wave * (1 - cos(turn * passed / 1e9 / period))));
}

static uint64_t frequency(void) { return 1000000000; }

// An identity of its own: else readers take the clock for the kernel's.
static int identity(char *uuid) {
    strcpy(uuid, "0badc10c-0000-4000-8000-00000000000b");
    return 0;
}

static const char *name(void) { return "monotonic"; }

static const char *description(void) { return "another host's monotonic clock"; }

void lttng_ust_clock_plugin_init(void) {
    const char *given = getenv("OTHER_CLOCK");
    if (!given || sscanf(given, "%lld %lf %lf %lf %lld", &offset, &ppm, &wander, &period, &begin) != 5) return;
    lttng_ust_trace_clock_set_read64_cb(now);
    lttng_ust_trace_clock_set_freq_cb(frequency);
    lttng_ust_trace_clock_set_uuid_cb(identity);
    lttng_ust_trace_clock_set_name_cb(name);
    lttng_ust_trace_clock_set_description_cb(description);
    lttng_ust_enable_trace_clock_override();
}
