// SPDX-License-Identifier: MIT
// What the wrappers share: the functions behind them, and how to trace without being noticed.
#pragma once
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include "cephshim_tp.h"
#include "record.h"

#define EXPORT __attribute__((visibility("default")))

// Events while an event is being written: LTTng's own calls come through our wrappers as well. A signal handler may
// trace once more.
extern __thread int shim_depth __attribute__((tls_model("initial-exec")));
// no more events: static destructors run, LTTng's may have run; or this is a child of a traced process
extern bool shim_ended;

// Where this thread's events go; NULL where no collector listens: then the thread calls LTTng-UST itself. Never in an
// event.
extern __thread struct event_ring *ring_own __attribute__((tls_model("initial-exec")));
struct event_ring *ring_attach(void);
void ring_begin_process(bool direct);
static inline struct event_ring *ring_of_thread(void) {
    struct event_ring *ring = ring_own;
    return __builtin_expect(ring && !__atomic_load_n(&ring->closed, __ATOMIC_RELAXED), 1) ? ring : ring_attach();
}

// Loads the provider, once: a connection of Ceph's was seen.
void shim_load(void);

// Look up what LTTng's own threads may call, before they exist.
void net_resolve(void);
void disk_resolve(void);

enum { SHIM_DEPTH = 2 };

#define TRACING(event) (lttng_ust_tracepoint_enabled(cephshim, event) && !shim_ended)
// `before` is done before LTTng-UST is called.
#define TRACE(event, ...) TRACE_BEFORE(event, , __VA_ARGS__)
#define TRACE_BEFORE(event, before, ...)                                                                               \
    do {                                                                                                               \
        if (TRACING(event) && shim_depth < SHIM_DEPTH) {                                                               \
            bool trace_first = shim_depth++ == 0;                                                                      \
            struct event_ring *trace_ring = trace_first ? ring_of_thread() : NULL;                                     \
            if (__builtin_expect(trace_ring != NULL, 1)) {                                                             \
                RECORD(trace_ring, event, __VA_ARGS__);                                                                \
            } else {                                                                                                   \
                int trace_errno = errno;                                                                               \
                before;                                                                                                \
                lttng_ust_do_tracepoint(cephshim, event, __VA_ARGS__);                                                 \
                errno = trace_errno;                                                                                   \
            }                                                                                                          \
            shim_depth--;                                                                                              \
        }                                                                                                              \
    } while (0)

// The next definition of a function after ours; of `library` (a name for dlopen, or NULL) if it was loaded for some
// objects only. With `version` that one of the symbol. Ends the process if there is none: nobody could have called us.
void *shim_next(const char *name, const char *version, const char *library);

// REAL(int, fsync, (int fd)) declares real_fsync(): looked up by the first call.
#define REAL_SYMBOL(library, version, symbol, result, name, parameters)                                                \
    typedef result(*type_##name) parameters;                                                                           \
    static inline type_##name real_##name(void) {                                                                      \
        static type_##name next;                                                                                       \
        type_##name f = __atomic_load_n(&next, __ATOMIC_RELAXED);                                                      \
        if (__builtin_expect(f == NULL, 0)) {                                                                          \
            int errno_before = errno;                                                                                  \
            f = (type_##name)shim_next(symbol, version, library);                                                      \
            __atomic_store_n(&next, f, __ATOMIC_RELAXED);                                                              \
            errno = errno_before;                                                                                      \
        }                                                                                                              \
        return f;                                                                                                      \
    }
#define REAL_IN(library, version, result, name, parameters)                                                            \
    REAL_SYMBOL(library, version, #name, result, name, parameters)
#define REAL(result, name, parameters) REAL_IN(NULL, NULL, result, name, parameters)

// One line on standard error.
void shim_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
