// SPDX-License-Identifier: MIT
// The bridge: one thread that takes the BPF programs' records out of their ring buffer, puts them in order of kernel
// time, and passes them on as events of a UST provider. Loaded by Python (opline/capture/bpf/bpf.py) through ctypes. It
// is built once for each provider (BRIDGE_PROVIDER_H): block_provider.h for the block layer's tracepoints and system
// calls; hit_provider.h, for declared probes, writes a CTF stream instead.
//
// Order. A program reads the clock after it has reserved its record. So of what the thread has not yet seen when it
// looks at the ring buffer at time t, everything has a time after t; once it has taken out all that was reserved then,
// everything up to t is in its hands and can be sorted. (A record that is reserved but not yet filled stops it there: t
// stays what it was.) It holds back 1 ms more, for clocks that differ between CPUs. The watermark is that t.
//
// Control. Every round looks up what the LTTng session has enabled and gives it to the programs as a bit mask.
#define _GNU_SOURCE
#include <errno.h>
#include <linux/bpf.h>
#include <linux/types.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include BRIDGE_PROVIDER_H

#define EXPORT __attribute__((visibility("default")))

enum {
    HOLD_BACK_NS = 1000000,
    IDLE_PERIOD_NS = 20000000,
    IDLE_WATERMARK_NS = 20000000,  // also said when nothing happens
    MISSES_EVERY_NS = 200000000,
    FINISH_WITHIN_NS = 2000000000,  // at the end: how long a reserved record may stay unfilled
    MAX_PROGRAMS = 256,
};
#define RING_BUSY (1u << 31)
#define RING_DISCARD (1u << 30)
#define RING_HEADER 8

// The programs' text, layout first, so that it cannot differ from what this file was compiled with.
// clang-format off
__asm__(".section .rodata\n"
        ".global bridge_text\n"
        ".hidden bridge_text\n"
        "bridge_text:\n"
        ".incbin \"" BRIDGE_RECORD_H "\"\n"
        ".incbin \"" BRIDGE_COMMON_BPF_C "\"\n"
        ".incbin \"" BRIDGE_EVENT_H "\"\n"
#ifdef BRIDGE_CGROUPS_BPF_C
        ".incbin \"" BRIDGE_CGROUPS_BPF_C "\"\n"
#endif
        ".incbin \"" BRIDGE_BPF_C "\"\n"
#ifdef BRIDGE_MORE_BPF_C
        ".incbin \"" BRIDGE_THREADS_BPF_C "\"\n"
        ".incbin \"" BRIDGE_TREE_BPF_C "\"\n.incbin \"" BRIDGE_WAKERS_BPF_C "\"\n"
        ".incbin \"" BRIDGE_LOCKS_BPF_C "\"\n.incbin \"" BRIDGE_MORE_BPF_C "\"\n"
        ".incbin \"" BRIDGE_USER_FRAMES_BPF_C "\"\n"
        ".incbin \"" BRIDGE_STATES_BPF_C "\"\n.incbin \"" BRIDGE_STACKS_BPF_C "\"\n"
        ".incbin \"" BRIDGE_URING_BPF_C "\"\n.incbin \"" BRIDGE_TCP_BPF_C "\"\n"
#endif
        ".byte 0\n.previous\n");
// clang-format on
extern const char bridge_text[];

// What happened so far; read by Python when the thread has ended. Order and types are repeated in bpf.py.
struct bridge_counts {
    uint64_t sent[KIND_COUNT];  // events passed on, by kind
    uint64_t watermarks, lost_events;
    uint64_t not_enabled;  // taken out when the session did not record that event (any more)
    uint64_t lost_ring, lost_nested, lost_states, lost_followed;
    uint64_t late;       // came after the watermark had passed them: cannot be, so this says how often it was
    uint64_t reordered;  // were overtaken in the ring buffer, and put right
    uint64_t own_bios, own_events, own_overflow, chain_cut, untold_threads, calls_32bit;
    uint64_t followed;           // the process, as the root numbers it; 0: none
    uint64_t most_bytes;         // the fullest that the ring buffer was found
    uint64_t cpu_ns, rounds;     // of the thread
    uint64_t first_ns, last_ns;  // of the events passed on
};

// States that were given up: of the recorded processes' threads, and of those that these wait for.
struct given_up {
    uint64_t states, followed;
};

struct bridge {
    // the ring buffer (kernel/bpf/ringbuf.c): a page with the consumer's position, one with the producer's, data twice
    _Atomic uint64_t *consumer;
    _Atomic uint64_t *producer;
    const uint8_t *data;
    size_t ring_bytes, page;
    volatile struct bridge_control *control;
    volatile struct bridge_cpu *cpus;
    size_t cpus_bytes;
    uint32_t cpu_count;
    int programs[MAX_PROGRAMS];
    int program_count;
    uint64_t period_ns;

    struct bridge_event *held;  // sorted by time: [head, tail)
    size_t head, tail, room;
    uint64_t *seq, *lost_seen;  // per CPU
    struct given_up *given_up;  // per CPU: what was told
    uint64_t misses_seen[MAX_PROGRAMS];
    uint64_t safe_ns;       // everything up to here is in `held` or sent
    uint64_t watermark_ns;  // everything up to here is sent
    uint64_t said_at_ns;
    struct bridge_counts counts;
    bool failed;  // out of memory

    pthread_t thread;
    atomic_bool stopping;
    pthread_mutex_t asking;  // for `quiet`, and what the programs are told to record
    bool quiet;
};

static uint64_t clock_ns(clockid_t clock) {
    struct timespec t;
    return clock_gettime(clock, &t), (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#include "bridge_losses.h"

static void pass_on(struct bridge *b, const struct bridge_event *e) {
    uint32_t cpu = e->cpu < b->cpu_count ? e->cpu : 0;
    // The record carries the low 32 bits of how many this CPU had lost by then.
    uint32_t lost = e->lost - (uint32_t)b->lost_seen[cpu];
    if (lost > 0 && lost < 1u << 31) {
        b->lost_seen[cpu] += lost;
        b->seq[cpu] += lost;
        b->counts.lost_ring += lost;
        say_lost(b, e->ktime, (int32_t)cpu, lost, "ring");
    }
    // What the session does not record has no number: a gap is a loss.
    if (pass_event(e, b->seq[cpu] + 1)) {
        ++b->seq[cpu];
        ++b->counts.sent[e->kind];
        b->counts.last_ns = e->ktime;
        if (b->counts.first_ns == 0) b->counts.first_ns = e->ktime;
    } else {
        ++b->counts.not_enabled;
    }
}

// Insert by time; the ring's order is nearly that already.
static bool hold(struct bridge *b, const struct bridge_event *e) {
    if (b->tail == b->room) {
        if (b->head > b->room / 2) {
            memmove(b->held, b->held + b->head, (b->tail - b->head) * sizeof(*e));
            b->tail -= b->head;
            b->head = 0;
        } else {
            size_t room = b->room ? b->room * 2 : 4096;
            struct bridge_event *more = realloc(b->held, room * sizeof(*e));
            if (!more) return false;
            b->held = more;
            b->room = room;
        }
    }
    if (e->ktime <= b->watermark_ns) ++b->counts.late;
    size_t i = b->tail++;
    if (i > b->head && b->held[i - 1].ktime > e->ktime) ++b->counts.reordered;
    for (; i > b->head && b->held[i - 1].ktime > e->ktime; --i) b->held[i] = b->held[i - 1];
    b->held[i] = *e;
    return true;
}

// Take out all that is reserved now. False: a record is not filled yet (or no memory), `safe_ns` has not moved.
static bool drain(struct bridge *b) {
    uint64_t now = clock_ns(CLOCK_MONOTONIC);
    atomic_thread_fence(memory_order_seq_cst);
    uint64_t end = atomic_load_explicit(b->producer, memory_order_acquire);
    uint64_t at = atomic_load_explicit(b->consumer, memory_order_relaxed);
    if (end - at > b->counts.most_bytes) b->counts.most_bytes = end - at;
    bool all = true;
    while (at < end) {
        const uint8_t *record = b->data + (at & (b->ring_bytes - 1));
        uint32_t length = atomic_load_explicit((const _Atomic uint32_t *)(const void *)record, memory_order_acquire);
        if (length & RING_BUSY) {
            all = false;
            break;
        }
        if (!(length & RING_DISCARD)) {
            struct bridge_event e;
            memcpy(&e, record + RING_HEADER, sizeof(e));
            receive_event(&e, record + RING_HEADER, length);
            if (gives_way(&e) && e.cpu < b->cpu_count) ++b->cpus[e.cpu].states_taken;
            if (!hold(b, &e)) {
                b->failed = true;
                all = false;
                break;
            }
        }
        length &= ~(RING_BUSY | RING_DISCARD);
        at += (length + RING_HEADER + 7) & ~UINT64_C(7);
        atomic_store_explicit(b->consumer, at, memory_order_release);
    }
    if (all) b->safe_ns = now;
    return all;
}

static void send_until(struct bridge *b, uint64_t limit_ns) {
    bool any = false;
    for (; b->head < b->tail && b->held[b->head].ktime <= limit_ns; ++b->head) {
        pass_on(b, &b->held[b->head]);
        any = true;
    }
    if (b->head == b->tail) b->head = b->tail = 0;
    if (limit_ns <= b->watermark_ns) return;
    b->watermark_ns = limit_ns;
    uint64_t now = b->safe_ns;
    if (!any && now - b->said_at_ns < IDLE_WATERMARK_NS) return;
    b->said_at_ns = now;
    if (pass_watermark(limit_ns)) ++b->counts.watermarks;
}

static void sleep_ns(uint64_t ns) {
    struct timespec t = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
}

// The programs are detached: what they have reserved is all that will ever come.
static void finish(struct bridge *b) {
    uint64_t until = clock_ns(CLOCK_MONOTONIC) + FINISH_WITHIN_NS;
    sleep_ns(HOLD_BACK_NS);
    while (!drain(b) && !b->failed && clock_ns(CLOCK_MONOTONIC) < until) sleep_ns(HOLD_BACK_NS);
    tell_given_up(b);
    send_until(b, b->safe_ns);
    tell_last_losses(b);
    tell_misses(b);
    for (uint32_t cpu = 0; cpu < b->cpu_count; ++cpu) {
        b->counts.own_bios += b->cpus[cpu].own_bios;
        b->counts.own_events += b->cpus[cpu].own_events;
        b->counts.own_overflow += b->cpus[cpu].own_overflow;
        b->counts.chain_cut += b->cpus[cpu].chain_cut;
        b->counts.untold_threads += b->cpus[cpu].untold_threads;
        b->counts.calls_32bit += b->cpus[cpu].calls_32bit;
    }
    b->counts.followed = b->control->followed;
    b->counts.cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

static void ask_for_what_is_enabled(struct bridge *b) {
    pthread_mutex_lock(&b->asking);
    if (!b->quiet) {
        b->control->mask = enabled_mask();
        b->control->calls = enabled_calls();
    }
    pthread_mutex_unlock(&b->asking);
}

// How long until the next round. A call's file is looked up while it is open, and a session that records nothing may
// begin to: that is asked often. Else nobody waits for a bridge that has nothing to do.
static uint64_t pause_after(const struct bridge *b, uint64_t taken) {
    const bool idle = taken == 0 && b->head == b->tail && b->control->mask && !b->control->calls;
    return idle && b->period_ns < IDLE_PERIOD_NS ? IDLE_PERIOD_NS : b->period_ns;
}

static void *run(void *argument) {
    struct bridge *b = argument;
    prctl(PR_SET_NAME, "opline-bridge");
    uint64_t misses_at = 0;
    while (!atomic_load(&b->stopping)) {
        ++b->counts.rounds;
        ask_for_what_is_enabled(b);
        uint64_t before = atomic_load(b->consumer);
        drain(b);
        uint64_t taken = atomic_load(b->consumer) - before;
        tell_given_up(b);
        if (b->safe_ns > HOLD_BACK_NS) send_until(b, b->safe_ns - HOLD_BACK_NS);
        if (b->head == b->tail && taken == 0) tell_last_losses(b);
        if (b->safe_ns >= misses_at) {
            tell_misses(b);
            misses_at = b->safe_ns + MISSES_EVERY_NS;
        }
        if (taken < b->ring_bytes / 8) sleep_ns(pause_after(b, taken));
    }
    finish(b);
    return NULL;
}

static void release(struct bridge *b) {
    if (b->consumer) munmap((void *)b->consumer, b->page);
    if (b->producer) munmap((void *)b->producer, b->page + 2 * b->ring_bytes);
    if (b->control) munmap((void *)b->control, b->page);
    if (b->cpus) munmap((void *)b->cpus, b->cpus_bytes);
    free(b->held);
    free(b->seq);
    free(b->lost_seen);
    free(b->given_up);
    free(b);
}

static void *map(int fd, size_t size, int protection, size_t offset) {
    void *at = mmap(NULL, size, protection, MAP_SHARED, fd, (off_t)offset);
    return at == MAP_FAILED ? NULL : at;
}

EXPORT const char *bridge_program_text(void) { return bridge_text; }

// Begin to pass on. Descriptors stay the caller's, open until bridge_finish(). NULL with errno set if that is not
// possible; `own_tgids` (0: unused) are whose I/O is left out.
EXPORT struct bridge *bridge_start(int ring_fd, uint64_t ring_bytes, int control_fd, int cpus_fd, uint32_t cpu_count,
                                   const int *programs, uint32_t program_count, uint64_t period_ns,
                                   const uint32_t own_tgids[OWN_TGIDS]) {
    struct bridge *b = calloc(1, sizeof(*b));
    if (!b) return NULL;
    pthread_mutex_init(&b->asking, NULL);
    b->page = (size_t)sysconf(_SC_PAGESIZE);
    b->ring_bytes = ring_bytes;
    b->cpu_count = cpu_count;
    b->cpus_bytes = (cpu_count * sizeof(struct bridge_cpu) + b->page - 1) / b->page * b->page;
    b->period_ns = period_ns;
    b->program_count = program_count < MAX_PROGRAMS ? (int)program_count : MAX_PROGRAMS;
    memcpy(b->programs, programs, (size_t)b->program_count * sizeof(int));
    b->seq = calloc(cpu_count, sizeof(uint64_t));
    b->lost_seen = calloc(cpu_count, sizeof(uint64_t));
    b->given_up = calloc(cpu_count, sizeof(struct given_up));
    b->consumer = map(ring_fd, b->page, PROT_READ | PROT_WRITE, 0);
    b->producer = map(ring_fd, b->page + 2 * b->ring_bytes, PROT_READ, b->page);
    b->control = map(control_fd, b->page, PROT_READ | PROT_WRITE, 0);
    b->cpus = map(cpus_fd, b->cpus_bytes, PROT_READ | PROT_WRITE, 0);
    if (!b->seq || !b->lost_seen || !b->given_up || !b->consumer || !b->producer || !b->control || !b->cpus)
        goto failed;
    b->data = (const uint8_t *)b->producer + b->page;
    atomic_store(b->consumer, atomic_load(b->producer));  // what there is comes from measuring what a record costs
    for (uint32_t cpu = 0; cpu < cpu_count; ++cpu) b->lost_seen[cpu] = b->cpus[cpu].lost;
    for (int i = 0; i < OWN_TGIDS; ++i) b->control->own_tgids[i] = own_tgids[i];
    number_calls(b->control->call_of);
    errno = pthread_create(&b->thread, NULL, run, b);
    if (errno == 0) return b;
failed : {
    int why = errno;
    release(b);
    errno = why;
    return NULL;
}
}

// All system calls are wanted: to measure, before bridge_start(), what recording one costs.
EXPORT void bridge_want_calls(struct bridge_control *control) {
    control->calls = ~UINT64_C(0);
    number_calls(control->call_of);
}

// What the programs have been told to record, a bit per kind.
EXPORT uint64_t bridge_mask(const struct bridge *b) { return b->control->mask; }

// Record this process (as our PID namespace numbers it) and what it forks, from its next call on.
EXPORT void bridge_follow(struct bridge *b, uint32_t pid) { b->control->follow = pid; }

// The iterator over threads tells from now on what holds, and lets follow nobody new.
EXPORT void bridge_retells(struct bridge *b) { b->control->retells = 1; }

// How many events of each of the first `kinds` kinds have been passed on so far. The thread goes on counting.
EXPORT void bridge_sent(const struct bridge *b, uint64_t *sent, uint32_t kinds) {
    const volatile uint64_t *counted = b->counts.sent;
    for (uint32_t kind = 0; kind < kinds && kind < KIND_COUNT; ++kind) sent[kind] = counted[kind];
}

// Tell the programs to be quiet, all at once: while the caller detaches them one by one a request would lose steps.
EXPORT void bridge_quiet(struct bridge *b) {
    pthread_mutex_lock(&b->asking);
    b->quiet = true;
    b->control->mask = b->control->calls = 0;
    pthread_mutex_unlock(&b->asking);
}

// Pass on what is left, end, and say what happened. The programs must be detached.
EXPORT void bridge_finish(struct bridge *b, struct bridge_counts *counts) {
    atomic_store(&b->stopping, true);
    pthread_join(b->thread, NULL);
    *counts = b->counts;
    release(b);
}
