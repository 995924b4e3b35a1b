// SPDX-License-Identifier: MIT
#include "bridge_calls.h"

#include <sys/syscall.h>

#ifndef SYS_sendfile64
#define SYS_sendfile64 SYS_sendfile  // the kernel's name on 64 bits, and LTTng's
#endif

#include "call_tp.h"

uint64_t enabled_calls(void) {
    uint64_t mask = 0;
#define X(name, fields)                                                                                                \
    if (lttng_ust_tracepoint_enabled(syscall, syscall_entry_##name) ||                                                 \
        lttng_ust_tracepoint_enabled(syscall, syscall_exit_##name))                                                    \
        mask |= UINT64_C(1) << CALL_##name;
    OPLINE_CALLS(X)
#undef X
    return mask;
}

_Static_assert(CALL_sendfile64 == CALLS_WITH_FILE && CALL_sync == CALLS_WITH_FILE + 1, "the table's order");
#define NUMBERED(name) _Static_assert(CALL_##name == CALL_NUMBER_##name, "the table's order")
NUMBERED(read);
NUMBERED(write);
NUMBERED(readv);
NUMBERED(writev);
NUMBERED(sendfile64);
NUMBERED(copy_file_range);

void number_calls(volatile __u8 *call_of) {
#define X(name, fields)                                                                                                \
    _Static_assert(SYS_##name < CALL_NUMBERS, "more system calls than the table has room for");                        \
    call_of[SYS_##name] = CALL_##name;
    OPLINE_CALLS(X)
#undef X
}

bool pass_call(const struct block_event *e, uint64_t seq) {
    const bool entry = e->kind == KIND_CALL_ENTRY;
#define SEND(event)                                                                                                    \
    do {                                                                                                               \
        if (!lttng_ust_tracepoint_enabled(syscall, event)) return false;                                               \
        lttng_ust_do_tracepoint(syscall, event, e, seq);                                                               \
        return true;                                                                                                   \
    } while (0)
    switch (e->call) {
#define X(name, fields)                                                                                                \
    case CALL_##name:                                                                                                  \
        if (entry) SEND(syscall_entry_##name);                                                                         \
        SEND(syscall_exit_##name);
        OPLINE_CALLS(X)
#undef X
    }
    return false;
}
