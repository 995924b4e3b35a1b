// SPDX-License-Identifier: MIT
// The CTF stream into which a bridge writes the events of its providers (tp_writer.h makes functions of them).
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <linux/types.h>

#include "block_event.h"
#include "ctf_stream.h"

enum { TP_EVENT_MOST = 12288 };  // bytes of an event at most: a path, 256 addresses

// Where fields go: into the stream, or as text into the metadata.
struct tp_output {
    uint8_t *at;
    FILE *metadata;
};

struct tp_event {
    const char *name;
    void (*describe)(struct tp_output *);
} __attribute__((aligned(16)));
// All of them: the linker makes the table, and an event's place in it is its number.
extern const struct tp_event __start_tp_events[] __attribute__((visibility("hidden")));
extern const struct tp_event __stop_tp_events[] __attribute__((visibility("hidden")));

extern struct ctf_stream bridge_stream;
static inline bool bridge_is_open(void) { return bridge_stream.uuid != NULL; }
extern const struct block_event tp_blank;

struct tp_output *tp_begin(const struct tp_event *event, uint64_t time_ns);
void tp_end(struct tp_output *tp);

static inline __attribute__((always_inline)) void tp_integer(struct tp_output *tp, bool describes, const char *name,
                                                             size_t bytes, bool is_signed, int base, uint64_t value) {
    if (describes)
        fprintf(tp->metadata, "\t\tinteger { size = %zu; align = 8; signed = %d; encoding = none; base = %d; } _%s;\n",
                bytes * 8, is_signed, base, name);
    else tp->at = ctf_put(tp->at, &value, bytes);  // of a little-endian machine
}

static inline void tp_array(struct tp_output *tp, bool describes, const char *name, const char *from, size_t length) {
    if (describes)
        fprintf(tp->metadata,
                "\t\tinteger { size = 8; align = 8; signed = 1; encoding = UTF8; base = 10; } _%s[%zu];\n", name,
                length);
    else tp->at = ctf_put(tp->at, from, length);
}

static inline void tp_string(struct tp_output *tp, bool describes, const char *name, const char *from) {
    if (describes) fprintf(tp->metadata, "\t\tstring _%s;\n", name);
    else tp->at = ctf_put(tp->at, from, strlen(from) + 1);
}
