// SPDX-License-Identifier: MIT
// Events that go into the ring buffer in one piece. The probes that LTTng-UST's headers make (2.13: stage 5 of
// lttng/ust-tracepoint-event.h) write each field by a call of its own, 10 to 15 ns apiece: half of what an event with
// twelve fields costs. Here the same probes collect the fields, and write them when the event is committed. Included
// before the provider's header where the probes are made. The layout of the trace is the same.
#pragma once
#include <lttng/tracepoint.h>
#include <lttng/ust-events.h>
#include <lttng/ust-ringbuffer-context.h>
#include <string.h>

// Where fields are aligned there are gaps between them, which the ring buffer knows about and we do not. Probes of
// another ABI may call other things.
#if !defined(LTTNG_UST_RING_BUFFER_NATURAL_ALIGN) && LTTNG_UST_PROVIDER_MAJOR == 3

enum { ONE_WRITE_BYTES = 256 };

#define ONE_WRITE static inline __attribute__((always_inline)) void
// The collected bytes, how many they are, and where they go. The count is a variable of its own: nobody else has its
// address, so it is mostly constant.
#define ONE_WRITE_ARGS                                                                                                 \
    unsigned char *collected, size_t *n, const struct lttng_ust_channel_buffer *chan,                                  \
        struct lttng_ust_ring_buffer_ctx *ctx

ONE_WRITE one_write_flush(ONE_WRITE_ARGS) {
    if (*n) chan->ops->event_write(ctx, collected, *n, 1);
    *n = 0;
}

ONE_WRITE one_write_add(ONE_WRITE_ARGS, const void *field, size_t bytes) {
    if (*n + bytes > ONE_WRITE_BYTES) one_write_flush(collected, n, chan, ctx);
    memcpy(collected + *n, field, bytes);
    *n += bytes;
}

// `bytes` with the end, as the event's size was computed. What has become shorter since is filled, as LTTng does it.
ONE_WRITE one_write_string(ONE_WRITE_ARGS, const char *text, size_t bytes) {
    if (*n + bytes > ONE_WRITE_BYTES) one_write_flush(collected, n, chan, ctx);
    if (bytes > ONE_WRITE_BYTES) {
        chan->ops->event_strcpy(ctx, text, bytes);
        return;
    }
    char *at = (char *)collected + *n, *end = at + bytes - 1;
    memcpy(at, text, bytes - 1);
    char *early = memchr(at, 0, bytes - 1);
    if (early) memset(early, '#', (size_t)(end - early));
    *end = 0;
    *n += bytes;
}

// In the probes' text `__chan->ops->event_write(&__ctx, …)` becomes an expression without effect, and a call of the
// above behind it.
#define lttng_ust_ring_buffer_ctx_init(ctx, ...)                                                                       \
    lttng_ust_ring_buffer_ctx_init(ctx, __VA_ARGS__);                                                                  \
    unsigned char one_write_bytes[ONE_WRITE_BYTES];                                                                    \
    size_t one_write_n = 0
#define ONE_WRITE_HERE one_write_bytes, &one_write_n, __chan
#define event_write(ctx, field, bytes, alignment)                                                                      \
    struct_size;                                                                                                       \
    one_write_add(ONE_WRITE_HERE, ctx, field, bytes)
#define event_strcpy(ctx, text, bytes)                                                                                 \
    struct_size;                                                                                                       \
    one_write_string(ONE_WRITE_HERE, ctx, text, bytes)
#define event_commit(ctx)                                                                                              \
    struct_size;                                                                                                       \
    one_write_flush(ONE_WRITE_HERE, ctx);                                                                              \
    __chan->ops->event_commit(ctx)

#endif
