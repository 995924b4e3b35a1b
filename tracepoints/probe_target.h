// SPDX-License-Identifier: MIT
// A function to put a probe on, to see what a hit costs here. It begins as functions do:
// the kernel emulates a push, where another first instruction costs a single step more.
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#ifdef __x86_64__
__asm__(
    ".text\n"
    ".globl probe_target\n"
    ".type probe_target, @function\n"
    "probe_target: push %rbp\n"
    "pop %rbp\n"
    "ret\n"
    ".size probe_target, . - probe_target\n"
    ".globl probe_target_stepped\n"
    ".type probe_target_stepped, @function\n"
    "probe_target_stepped: sub $8, %rsp\n"
    "add $8, %rsp\n"
    "ret\n"
    ".size probe_target_stepped, . - probe_target_stepped\n");
void probe_target(void);
void probe_target_stepped(void);
#else
__attribute__((visibility("default"), noinline)) void probe_target(void) { __asm__ volatile(""); }
__attribute__((visibility("default"), noinline)) void probe_target_stepped(void) { __asm__ volatile(""); }
#endif

static inline uint64_t probe_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

// Calls it `times` times; ns in all. `stepped`: the one that begins with an instruction that the kernel single-steps.
__attribute__((visibility("default"))) uint64_t probe_time_calls(uint32_t times, bool stepped) {
    void (*target)(void) = stepped ? probe_target_stepped : probe_target;
    const uint64_t begin = probe_now_ns();
    for (uint32_t i = 0; i < times; ++i) target();
    return probe_now_ns() - begin;
}

// Calls it once, after so many bytes have been written: what a hit needs is in none of the caches that these fill.
__attribute__((visibility("default"))) uint64_t probe_time_cold_call(bool stepped, volatile char *bytes,
                                                                     uint64_t count) {
    void (*target)(void) = stepped ? probe_target_stepped : probe_target;
    for (uint64_t i = 0; i < count; i += 64) ++bytes[i];
    const uint64_t begin = probe_now_ns();
    target();
    return probe_now_ns() - begin;
}
