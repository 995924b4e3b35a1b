// SPDX-License-Identifier: MIT
// How the bridge (bridge.c) tells what is missing: records that found no room, states that were given up, runs of
// programs that the kernel left out.
#pragma once

static void say_lost(struct bridge *b, uint64_t time_ns, int32_t cpu, uint64_t count, const char *why) {
    if (pass_lost(time_ns, cpu, count, why)) ++b->counts.lost_events;
}

// Losses after which nothing came from that CPU.
static void tell_last_losses(struct bridge *b) {
    for (uint32_t cpu = 0; cpu < b->cpu_count; ++cpu) {
        uint64_t lost = b->cpus[cpu].lost;
        if (lost <= b->lost_seen[cpu]) continue;
        uint64_t count = lost - b->lost_seen[cpu];
        b->lost_seen[cpu] = lost;
        b->seq[cpu] += count;
        b->counts.lost_ring += count;
        say_lost(b, b->watermark_ns, (int32_t)cpu, count, "ring");
    }
}

// States that were given up since the last look. The caller has taken out all up to `safe_ns`, and passes it on next:
// what is missing is no older than what has been passed on.
static void tell_given_up(struct bridge *b) {
    for (uint32_t cpu = 0; cpu < b->cpu_count; ++cpu) {
        const struct given_up now = {b->cpus[cpu].lost_states, b->cpus[cpu].lost_followed};
        struct given_up *told = &b->given_up[cpu];
        const uint64_t states = now.states - told->states, followed = now.followed - told->followed;
        *told = now;
        b->counts.lost_states += states;
        b->counts.lost_followed += followed;
        const uint64_t until = states || followed ? clock_ns(CLOCK_MONOTONIC) : 0;
        if (states && pass_lost_states(b->watermark_ns, until, (int32_t)cpu, states)) ++b->counts.lost_events;
        if (followed && pass_lost_followed(b->watermark_ns, until, (int32_t)cpu, followed)) ++b->counts.lost_events;
    }
}

// A program that is interrupted by its own tracepoint is not run again; the kernel counts that.
static void tell_misses(struct bridge *b) {
    for (int i = 0; i < b->program_count; ++i) {
        struct bpf_prog_info info;
        union bpf_attr attr;
        memset(&info, 0, sizeof(info)), memset(&attr, 0, sizeof(attr));
        attr.info.bpf_fd = (uint32_t)b->programs[i];
        attr.info.info_len = sizeof(info);
        attr.info.info = (uint64_t)(uintptr_t)&info;
        if (syscall(SYS_bpf, BPF_OBJ_GET_INFO_BY_FD, &attr, sizeof(attr)) != 0) continue;
        uint64_t count = info.recursion_misses - b->misses_seen[i];
        if (count == 0) continue;
        b->misses_seen[i] = info.recursion_misses;
        b->counts.lost_nested += count;
        say_lost(b, b->watermark_ns, -1, count, "nested");
    }
}
