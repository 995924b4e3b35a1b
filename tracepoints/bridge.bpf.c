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
    if (!c || !(c->mask >> kind & 1)) return 0;
    asm volatile("" : "+r"(c));  // clang 19 would make one `&` of both: the kernel takes none of a pointer
    return c;
}

static inline u64 pointer_at(u64 address) {
    u64 value = 0;
    bpf_probe_read_kernel(&value, sizeof(value), (void *)address);
    return value;
}

// Programs that know their arguments' types (BPF_TRACE_RAW_TP) read the kernel's structures by plain loads, where a
// call of bpf_probe_read_kernel() takes 15 to 25 ns. `pointer` is an argument, the current task, or what such a load of
// a pointer to a structure gave; `type` is the member's.
#ifdef TYPED
static u64 (*current_task_typed)(void) = (void *)158;  // bpf_get_current_task_btf, include/uapi/linux/bpf.h
#define MEMBER(type, pointer, offset) (*(type *)((pointer) + (offset)))
static inline u64 this_task(void) { return current_task_typed(); }
#else
#define MEMBER(type, pointer, offset) ((type)pointer_at((pointer) + (offset)))
static inline u64 this_task(void) { return bpf_get_current_task(); }
#endif

// The current thread as the kernel numbers it: tgid << 32 | tid.
static inline u64 kernel_ids(void) {
#ifdef TYPED
    u64 task = this_task();
    return (u64)MEMBER(u32, task, O_TASK_TGID) << 32 | MEMBER(u32, task, O_TASK_PID);
#else
    return bpf_get_current_pid_tgid();
#endif
}

static inline void name_current(char *comm) {
#ifdef TYPED
    u64 task = this_task();
    ((u64 *)comm)[0] = MEMBER(u64, task, O_TASK_COMM);
    ((u64 *)comm)[1] = MEMBER(u64, task, O_TASK_COMM + 8);
#else
    bpf_get_current_comm(comm, 16);
#endif
}

static inline struct bridge_cpu *this_cpu(void) {
    u32 cpu = bpf_get_smp_processor_id();
    return cpus.lookup(&cpu);
}

// CLOCK_MONOTONIC as the collector has it: BPF has the root time namespace's, to which the collector's own adds this.
static inline u64 now_ns(void) { return bpf_ktime_get_ns() + CLOCK_OFFSET_NS; }

// tgid << 32 | tid as the collector's PID namespace numbers them; all ones (tid -1) for a task that is not in it.
static inline u64 ids_in_our_namespace(void) {
#ifdef PIDNS_INO
    struct bpf_pidns_info ids = {};
    if (bpf_get_ns_current_pid_tgid(PIDNS_DEV, PIDNS_INO, &ids, sizeof(ids))) return ~0ull;
    return (u64)ids.tgid << 32 | ids.pid;
#else
    return kernel_ids();
#endif
}

// tgid << 32 | tid as records have them. A recording has the numbers of the root PID namespace, which mean one thread
// of the machine whatever namespace the application and the recorder are in; what the namespaces call them is told by
// threads.bpf.c. A live view, which has no such records, has the numbers that its user sees.
static inline u64 current_ids(void) {
#ifdef ROOT_NUMBERS
    return kernel_ids();
#else
    return ids_in_our_namespace();
#endif
}
