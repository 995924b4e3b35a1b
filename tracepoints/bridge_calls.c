// SPDX-License-Identifier: MIT
#include "bridge_calls.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#ifndef SYS_sendfile64
#define SYS_sendfile64 SYS_sendfile  // the kernel's name on 64 bits, and LTTng's
#endif

#include "call_tp.h"

// The same events as functions that write them (tp_writer.h).
#include "bridge_stream.h"
#include "tp_writer.h"
#define LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ
#include "call_tp.h"

uint64_t enabled_calls(void) {
    uint64_t mask = 0;
#define X(name, fields, result)                                                                                        \
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
NUMBERED(pwrite64);
NUMBERED(readv);
NUMBERED(writev);
NUMBERED(pwritev);
NUMBERED(preadv2);
NUMBERED(pwritev2);
NUMBERED(sendfile64);
NUMBERED(io_submit);
NUMBERED(io_getevents);
NUMBERED(io_pgetevents);
NUMBERED(io_uring_enter);
NUMBERED(copy_file_range);
NUMBERED(splice);

bool uring_enabled(void) {
    return lttng_ust_tracepoint_enabled(syscall, io_uring_submit_req) &&
           lttng_ust_tracepoint_enabled(syscall, io_uring_complete);
}

void number_calls(volatile __u8 *call_of) {
#define X(name, fields, result)                                                                                        \
    _Static_assert(SYS_##name < CALL_NUMBERS, "more system calls than the table has room for");                        \
    call_of[SYS_##name] = CALL_##name;
    OPLINE_CALLS(X)
#undef X
}

// Of a call that queues or takes I/Os: how many iocbs its record has, and whether they are behind it.
static size_t iocbs_of(const struct block_event *e, bool *many) {
    const bool entry = e->kind == KIND_CALL_ENTRY;
    const bool told = entry ? e->call == CALL_io_submit : e->call == CALL_io_getevents || e->call == CALL_io_pgetevents;
    const int64_t count = !told ? 0 : entry ? (int32_t)e->args[1] : (int64_t)e->args[0];
    *many = count > (entry ? IOCBS_IN_ENTRY : IOCBS_IN_EXIT);
    return count <= 0 ? 0 : count > IOCBS_MOST ? IOCBS_MOST : (size_t)count;
}

void keep_iocbs(struct block_event *e, const struct iocbs_event *record) {
    bool many;
    const size_t bytes = iocbs_of(e, &many) * sizeof(*record->iocbs);
    void *iocbs = many ? malloc(bytes) : NULL;
    if (iocbs) memcpy(iocbs, record->iocbs, bytes);
    e->args[5] = (uintptr_t)iocbs;
}

char call_iocbs[IOCBS_MOST * 17 + 1];

// Into call_iocbs; without memory for them there is none.
static void write_iocbs(const struct block_event *e) {
    bool many;
    size_t count = iocbs_of(e, &many), length = 0;
    void *behind = many ? (void *)(uintptr_t)e->args[5] : NULL;
    const size_t inside = e->kind == KIND_CALL_ENTRY ? IOCBS_IN_ENTRY : IOCBS_IN_EXIT;
    const __u64 *iocbs = many ? behind : e->args + 6 - inside;
    for (size_t i = 0; iocbs && i < count; ++i)
        length += (size_t)sprintf(call_iocbs + length, i ? ",%" PRIx64 : "%" PRIx64, (uint64_t)iocbs[i]);
    call_iocbs[length] = 0;
    free(behind);
}

#define SEND(event)                                                                                                    \
    do {                                                                                                               \
        if (!lttng_ust_tracepoint_enabled(syscall, event)) return false;                                               \
        write_syscall_##event(e->ktime, e, seq);                                                                       \
        return true;                                                                                                   \
    } while (0)

bool pass_uring(const struct block_event *e, uint64_t seq) {
    switch (e->call) {
    case URING_SUBMIT: SEND(io_uring_submit_req);
    case URING_TO_WORKER: SEND(io_uring_queue_async_work);
    case URING_WORK: SEND(io_uring_work);
    case URING_COMPLETE: SEND(io_uring_complete);
    }
    return false;
}

bool pass_call(const struct block_event *e, uint64_t seq) {
    const bool entry = e->kind == KIND_CALL_ENTRY;
    write_iocbs(e);
    switch (e->call) {
#define X(name, fields, result)                                                                                        \
    case CALL_##name:                                                                                                  \
        if (entry) SEND(syscall_entry_##name);                                                                         \
        SEND(syscall_exit_##name);
        OPLINE_CALLS(X)
#undef X
    }
    return false;
}
