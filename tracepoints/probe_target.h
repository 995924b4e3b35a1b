// SPDX-License-Identifier: MIT
// A function to put a probe on, to see what a hit costs here. It begins as functions do:
// the kernel emulates a push, where another first instruction costs a single step more.
#pragma once
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

static inline uint64_t probe_time(void (*target)(void), uint32_t times) {
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (uint32_t i = 0; i < times; ++i) target();
    clock_gettime(CLOCK_MONOTONIC, &end);
    return (uint64_t)(end.tv_sec - begin.tv_sec) * 1000000000u + (uint64_t)end.tv_nsec - (uint64_t)begin.tv_nsec;
}

// Calls it `times` times; ns in all. The other one begins with an instruction that the kernel single-steps.
__attribute__((visibility("default"))) uint64_t probe_time_calls(uint32_t times) {
    return probe_time(probe_target, times);
}

__attribute__((visibility("default"))) uint64_t probe_time_stepped_calls(uint32_t times) {
    return probe_time(probe_target_stepped, times);
}
