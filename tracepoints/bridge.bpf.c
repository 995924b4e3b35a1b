// SPDX-License-Identifier: MIT
// What all programs of the bridge share: the ring, the maps that the bridge looks into, who runs. Compiled after
// bridge_record.h.

#define RB_NO_WAKEUP 1  // BPF_RB_NO_WAKEUP: the bridge looks by itself, a wake-up per event costs 7 to 17 us
#define MMAPABLE 1024   // BPF_F_MMAPABLE

BPF_RINGBUF_OUTPUT(events, RING_PAGES);
BPF_F_TABLE("array", u32, struct bridge_control, control, 1, MMAPABLE);
BPF_F_TABLE("array", u32, struct bridge_cpu, cpus, CPU_COUNT, MMAPABLE);

static inline struct bridge_control *wanted(u32 kind) {
    u32 zero = 0;
    struct bridge_control *c = control.lookup(&zero);
    return c && (c->mask >> kind & 1) ? c : 0;
}

static inline struct bridge_cpu *this_cpu(void) {
    u32 cpu = bpf_get_smp_processor_id();
    return cpus.lookup(&cpu);
}

// tgid << 32 | tid as the collector's PID namespace numbers them; all ones (tid -1) for a task that is not in it.
static inline u64 current_ids(void) {
#ifdef PIDNS_INO
    struct bpf_pidns_info ids = {};
    if (bpf_get_ns_current_pid_tgid(PIDNS_DEV, PIDNS_INO, &ids, sizeof(ids))) return ~0ull;
    return (u64)ids.tgid << 32 | ids.pid;
#else
    return bpf_get_current_pid_tgid();
#endif
}
