/* SPDX-License-Identifier: MIT */
/*
 * LTTng-UST provider `opline`: three events with which any C or C++ application tells where its operations are.
 *
 * Include it, call the OPLINE_* macros, and link opline_tp.c and -llttng-ust into the program (README.md). Needs
 * lttng-ust 2.13 or newer. With OPLINE_DISABLE defined the macros vanish and lttng-ust is not needed.
 */
#ifdef OPLINE_DISABLE
#ifndef OPLINE_TP_MACROS
#define OPLINE_TP_MACROS
#define OPLINE_BEGIN(key, object, op_class, offset, length) ((void) 0)
#define OPLINE_BEGIN_HERE(key, object, op_class, offset, length) ((void) 0)
#define OPLINE_POINT(key, point) ((void) 0)
#define OPLINE_IO(key, point, offset, length) ((void) 0)
#define OPLINE_ENTER(key, point) ((void) 0)
#define OPLINE_LEAVE(key, point) ((void) 0)
#define OPLINE_SWITCH(key, point) ((void) 0)
#define OPLINE_STEP(point) ((void) 0)
#define OPLINE_LEAVE_HERE(point) ((void) 0)
#define OPLINE_END(key, result) ((void) 0)
#endif
#else /* OPLINE_DISABLE */

#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER opline

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "opline_tp.h"

#if !defined(OPLINE_TP_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define OPLINE_TP_H

#include <lttng/tracepoint.h>
#include <stdint.h>

/*
 * key: names the op inside its process, until it ends; usually the address of the application's own structure.
 *      0: no key, the op is the one that the thread works for.
 * thread: what the thread does with the op: 0 nothing, 1 enters (works for it from here on), 2 leaves (back to what it
 *      was entered from), 3 switches (enters, and forgets what it worked for).
 */

/* The op begins. */
LTTNG_UST_TRACEPOINT_EVENT(
    opline, op_begin,
    LTTNG_UST_TP_ARGS(uint64_t, key, uint8_t, thread, const char *, object, const char *, op_class, uint64_t, offset,
                      uint64_t, length),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer_hex(uint64_t, key, key)
        lttng_ust_field_integer(uint8_t, thread, thread)
        lttng_ust_field_string(object, object)
        lttng_ust_field_string(op_class, op_class)
        lttng_ust_field_integer(uint64_t, offset, offset)
        lttng_ust_field_integer(uint64_t, length, length)))

/* The op passes a point. offset and length: the bytes concerned, 0 and 0 where the point has none. */
LTTNG_UST_TRACEPOINT_EVENT(
    opline, op_point,
    LTTNG_UST_TP_ARGS(uint64_t, key, uint8_t, thread, const char *, point, uint64_t, offset, uint64_t, length),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer_hex(uint64_t, key, key)
        lttng_ust_field_integer(uint8_t, thread, thread)
        lttng_ust_field_string(point, point)
        lttng_ust_field_integer(uint64_t, offset, offset)
        lttng_ust_field_integer(uint64_t, length, length)))

/* The op ends; the thread leaves it. result: bytes, 0, or a negative error. */
LTTNG_UST_TRACEPOINT_EVENT(
    opline, op_end,
    LTTNG_UST_TP_ARGS(uint64_t, key, int64_t, result),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer_hex(uint64_t, key, key)
        lttng_ust_field_integer(int64_t, result, result)))

#endif /* OPLINE_TP_H */

#include <lttng/tracepoint-event.h>

#ifndef OPLINE_TP_MACROS
#define OPLINE_TP_MACROS

/* A pointer or an integer as a key. */
#define OPLINE_KEY(key) ((uint64_t) (uintptr_t) (key))
#define OPLINE_EMIT_BEGIN(key, thread, object, op_class, offset, length) \
    lttng_ust_tracepoint(opline, op_begin, OPLINE_KEY(key), thread, object, op_class, offset, length)
#define OPLINE_EMIT_POINT(key, thread, point, offset, length) \
    lttng_ust_tracepoint(opline, op_point, key, thread, point, offset, length)

/* The op begins. BEGIN: the thread enters it; say LEAVE where it hands the op over. BEGIN_HERE: the thread does not. */
#define OPLINE_BEGIN(key, object, op_class, offset, length) OPLINE_EMIT_BEGIN(key, 1, object, op_class, offset, length)
#define OPLINE_BEGIN_HERE(key, object, op_class, offset, length) OPLINE_EMIT_BEGIN(key, 0, object, op_class, offset, length)
/* A point of the op that the key names. */
#define OPLINE_POINT(key, point) OPLINE_EMIT_POINT(OPLINE_KEY(key), 0, point, 0, 0)
/* The same, and the bytes concerned: on a raw device, what a block request is found by. */
#define OPLINE_IO(key, point, offset, length) OPLINE_EMIT_POINT(OPLINE_KEY(key), 0, point, offset, length)
/* A point from which on, up to which, the thread works for the op. */
#define OPLINE_ENTER(key, point) OPLINE_EMIT_POINT(OPLINE_KEY(key), 1, point, 0, 0)
#define OPLINE_LEAVE(key, point) OPLINE_EMIT_POINT(OPLINE_KEY(key), 2, point, 0, 0)
#define OPLINE_SWITCH(key, point) OPLINE_EMIT_POINT(OPLINE_KEY(key), 3, point, 0, 0)
/* Without a key, where none is at hand: of the op that the thread works for. */
#define OPLINE_STEP(point) OPLINE_EMIT_POINT((uint64_t) 0, 0, point, 0, 0)
#define OPLINE_LEAVE_HERE(point) OPLINE_EMIT_POINT((uint64_t) 0, 2, point, 0, 0)
/* The op ends. */
#define OPLINE_END(key, result) lttng_ust_tracepoint(opline, op_end, OPLINE_KEY(key), result)

#endif /* OPLINE_TP_MACROS */
#endif /* OPLINE_DISABLE */
