// SPDX-License-Identifier: MIT
// What the bridge (bridge.c) does with block events that are wanted at once and by nobody else: the records go as they
// are, in the order of their time, into a pipe (opline/readers/ring.py reads them). No LTTng has a part in it.
//
// Besides the kinds of block_event.h there are two, which end a run of records: LIVE_MARK, everything up to its `ktime`
// has been passed on; LIVE_LOST, `args[0]` events are missing before its `ktime`. A third, LIVE_CGROUP, comes in a row:
// each has 40 bytes of the path of the cgroup `args[0]`, from args[1] on, and in `dev` how many bytes are left.
//
// A reader that is slow lets the pipe fill, then the bridge waits, then the ring buffer fills, and what finds no room
// there is counted: memory is bounded, and a loss is told. A reader that is gone ends it: nothing is written any more.
#pragma once
#include <fcntl.h>
#include <stdbool.h>

#include "block_error.h"
#include "bridge_record.h"
#include "cgroup_paths.h"

#define bridge_event block_event

enum {
    LIVE_CGROUP = 253,
    LIVE_LOST = 254,
    LIVE_MARK = 255,
    LIVE_RECORDS = 2048,
    LIVE_FLUSH_NS = 50000000,  // what there is, is in the pipe after this time
    LIVE_PIPE_BYTES = 1 << 20,
};

static struct {
    int pipe;
    bool gone;
    uint32_t used;
    uint64_t flushed_ns, marked_ns;
    struct block_event records[LIVE_RECORDS];
} live;

static void live_flush(void) {
    const uint8_t *at = (const uint8_t *)live.records;
    for (size_t left = live.used * sizeof(live.records[0]); left > 0 && !live.gone;) {
        ssize_t done = write(live.pipe, at, left);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) {
            live.gone = true;
            break;
        }
        at += done;
        left -= (size_t)done;
    }
    live.used = 0;
}

static void live_put(const struct block_event *e) {
    if (live.used == LIVE_RECORDS) live_flush();
    live.records[live.used++] = *e;
}

static void live_put_sign(uint8_t kind, uint64_t time_ns, uint64_t number) {
    struct block_event e;
    memset(&e, 0, sizeof(e));
    e.kind = kind;
    e.ktime = time_ns;
    e.args[0] = number;
    live_put(&e);
}

// There is no session whose wishes would have to be asked; a plug says nothing of any request.
static inline void receive_event(struct block_event *e, const void *record, uint32_t bytes) {
    (void)record, (void)bytes;
    e->error = error_of(e);
}
static inline uint64_t enabled_mask(void) { return (UINT64_C(1) << KIND_PLUG) - 1; }
static inline uint64_t enabled_calls(void) { return 0; }
static inline void number_calls(volatile __u8 *call_of) { (void)call_of; }
static inline bool gives_way(const struct block_event *e) {
    (void)e;
    return false;
}

static void live_put_cgroup(const struct known_path *c, uint64_t time_ns) {
    struct block_event e;
    for (size_t left = strlen(c->path); left > 0;) {
        const size_t bytes = left < sizeof(e.args[0]) * 5 ? left : sizeof(e.args[0]) * 5;
        memset(&e, 0, sizeof(e));
        e.kind = LIVE_CGROUP;
        e.ktime = time_ns;
        e.args[0] = c->number;
        memcpy(&e.args[1], c->path + strlen(c->path) - left, bytes);
        e.dev = (uint32_t)left;
        left -= bytes;
        live_put(&e);
    }
}

static bool pass_event(const struct block_event *e, uint64_t seq) {
    (void)seq;
    const struct known_path *c = cgroup_to_tell(e);
    if (c) live_put_cgroup(c, e->ktime);
    live_put(e);
    return true;
}

static bool pass_watermark(uint64_t through_ns) {
    live.marked_ns = through_ns;
    if (through_ns - live.flushed_ns >= LIVE_FLUSH_NS) {
        live_put_sign(LIVE_MARK, through_ns, 0);
        live_flush();
        live.flushed_ns = through_ns;
    }
    return true;
}

static bool pass_lost(uint64_t time_ns, int32_t cpu, uint64_t count, const char *why) {
    (void)cpu, (void)why;
    live_put_sign(LIVE_LOST, time_ns, count);
    return true;
}

static bool pass_lost_states(uint64_t time_ns, uint64_t until_ns, int32_t cpu, uint64_t count) {
    (void)time_ns, (void)until_ns, (void)cpu, (void)count;
    return false;
}

static bool pass_lost_followed(uint64_t time_ns, uint64_t until_ns, int32_t cpu, uint64_t count) {
    (void)time_ns, (void)until_ns, (void)cpu, (void)count;
    return false;
}

__attribute__((visibility("default"))) uint64_t paths_told(void) { return cgroups.paths.told; }

// Before bridge_start(): the pipe that the records go into.
__attribute__((visibility("default"))) void live_open(int pipe) {
    live.pipe = pipe;
    (void)fcntl(pipe, F_SETPIPE_SZ, LIVE_PIPE_BYTES);  // smaller where the user may not
}

// After bridge_finish(): write what is left, and close the pipe. False: the reader had gone.
__attribute__((visibility("default"))) bool live_close(void) {
    live_put_sign(LIVE_MARK, live.marked_ns, 0);
    live_flush();
    close(live.pipe);
    return !live.gone;
}
