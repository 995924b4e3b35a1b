/* SPDX-License-Identifier: MIT
 * tracepoints/ceph/pass.c with events that go to the fuzz target: each is enabled, and all of its arguments are read.
 * */
#include "fuzz_rings.h"
#include "record.h"

#undef lttng_ust_tracepoint_enabled
#define lttng_ust_tracepoint_enabled(provider, event) 1
#undef lttng_ust_do_tracepoint
#define lttng_ust_do_tracepoint(provider, event, origin, ...)                                                          \
    do {                                                                                                               \
        static _Alignas(8) char arguments[RING_RECORD_BYTES];                                                          \
        char *at = arguments;                                                                                          \
        RING_PUT_ALL(__VA_ARGS__)                                                                                      \
        passed_on(origin, RING_##event, arguments, (size_t)(at - arguments));                                          \
    } while (0)

#include "pass.c"
