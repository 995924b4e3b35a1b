// SPDX-License-Identifier: MIT
// What the bridge (bridge.c) must know of the provider `cephprobe`, and what a hit costs.
#pragma once
#include <stdbool.h>

#include "probe_tp.h"

#define bridge_event probe_event

// There are no system calls among the records.
static inline uint64_t enabled_calls(void) { return 0; }
static inline void number_calls(volatile __u8 *call_of) { (void)call_of; }

// What the session records at the moment.
static uint64_t enabled_mask(void) {
    uint64_t mask = 0;
#define ASK(event, at, shape, symbol)                                                                                  \
    mask |= lttng_ust_tracepoint_enabled(cephprobe, event) ? UINT64_C(1) << PROBE_##event : 0;
    PROBES(ASK)
#undef ASK
    return mask;
}
_Static_assert(KIND_COUNT <= 64, "a bit each");

static inline void receive_event(struct probe_event *e) { (void)e; }

// False: the session does not record that event (any more).
static bool pass_event(const struct probe_event *e, uint64_t seq) {
    switch (e->kind) {
#define PASS(event, at, shape, symbol)                                                                                 \
    case PROBE_##event:                                                                                                \
        if (!lttng_ust_tracepoint_enabled(cephprobe, event)) return false;                                             \
        lttng_ust_do_tracepoint(cephprobe, event, e, seq);                                                             \
        return true;
        PROBES(PASS)
#undef PASS
    }
    return false;
}

static bool pass_watermark(uint64_t through_ns) {
    if (!lttng_ust_tracepoint_enabled(cephprobe, watermark)) return false;
    lttng_ust_do_tracepoint(cephprobe, watermark, through_ns);
    return true;
}

static bool pass_lost(uint64_t time_ns, int32_t cpu, uint64_t count, const char *why) {
    if (!lttng_ust_tracepoint_enabled(cephprobe, lost)) return false;
    lttng_ust_do_tracepoint(cephprobe, lost, time_ns, cpu, count, why);
    return true;
}

// The list for Python: a line "event at symbol" each, in the order of their kinds.
#define LINE(event, at, shape, symbol) #event " " #at " " symbol "\n"
__attribute__((visibility("default"))) const char *probe_list(void) { return PROBES(LINE); }

// A function to put a probe on, to see what a hit costs here. It begins as functions do: the kernel emulates a push, where another first
// instruction costs a single step more.
#ifdef __x86_64__
__asm__(".text\n"
        ".globl probe_target\n"
        ".type probe_target, @function\n"
        "probe_target: push %rbp\n"
        "pop %rbp\n"
        "ret\n"
        ".size probe_target, . - probe_target\n");
void probe_target(void);
#else
__attribute__((visibility("default"), noinline)) void probe_target(void) { __asm__ volatile(""); }
#endif

// Calls it `times` times; ns in all.
__attribute__((visibility("default"))) uint64_t probe_time_calls(uint32_t times) {
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (uint32_t i = 0; i < times; ++i) probe_target();
    clock_gettime(CLOCK_MONOTONIC, &end);
    return (uint64_t)(end.tv_sec - begin.tv_sec) * 1000000000u + (uint64_t)end.tv_nsec - (uint64_t)begin.tv_nsec;
}
