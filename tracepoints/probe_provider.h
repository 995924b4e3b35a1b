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

// Uprobes give nothing up.
static inline bool gives_way(const struct probe_event *e) {
    (void)e;
    return false;
}

static bool pass_lost_states(uint64_t time_ns, uint64_t until_ns, int32_t cpu, uint64_t count) {
    (void)time_ns, (void)until_ns, (void)cpu, (void)count;
    return false;
}

// The list for Python: a line "event at symbol" each, in the order of their kinds.
#define LINE(event, at, shape, symbol) #event " " #at " " symbol "\n"
__attribute__((visibility("default"))) const char *probe_list(void) { return PROBES(LINE); }

#include "probe_target.h"
