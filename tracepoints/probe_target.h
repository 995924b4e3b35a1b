// SPDX-License-Identifier: MIT
// A function to put a probe on, to see what a hit costs here, in each bridge for uprobes. It begins as functions do:
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
    ".size probe_target, . - probe_target\n");
void probe_target(void);
#else
__attribute__((visibility("default"), noinline)) void probe_target(void) { __asm__ volatile(""); }
#endif

// Calls it `times` times; ns in all.
__attribute__((visibility("default"))) uint64_t probe_time_calls(uint32_t times) {
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (uint32_t i = 0; i < times; ++i) probe_target();
    clock_gettime(CLOCK_MONOTONIC, &end);
    return (uint64_t)(end.tv_sec - begin.tv_sec) * 1000000000u + (uint64_t)end.tv_nsec - (uint64_t)begin.tv_nsec;
}
