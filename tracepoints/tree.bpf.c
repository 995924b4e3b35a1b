// SPDX-License-Identifier: MIT
// The processes that the recording is about: the command and all that it forks, or those that are attached to. Compiled
// behind block.bpf.c, before calls.bpf.c and states.bpf.c: only these processes' system calls and states are recorded.
//
// The first of these programs that the command's process runs into (bridge_control.follow) puts it into `tree`, and its
// thread into `threads`; sched_process_fork adds whom they fork. Each fork, exec and exit of a process in `tree` is an
// event: it tells whose block I/O is the recorded programs', and which program a process ran when.

#ifdef O_TASK_TGID

// A thread that is followed: its wait, the last one while it runs.
struct thread_wait {
    u64 off_at;                                     // 0: not known
    u64 woken_at;                                   // 0: by nobody yet
    u64 on_at;                                      // it runs since then if this is later than off_at
    u64 useful_at;                                  // when it last woke a thread of a lower level
    u64 waker_on_at, waker_off_at, waker_woken_at;  // the waker's own last wait
    u32 waker, waker_waker;
    u32 stack, waker_stack;
    u64 lock;  // for which it waits, or is about to: locks.bpf.c; 0: for none
    u32 holder, holder_process;
    char comm[16];  // the waker's
    char holder_comm[16];
    u16 state;  // when it was taken off
    u16 lock_flags;
    u16 waker_state, waker_irq, waker_waker_irq, waker_cpu;
    u8 level;  // 0: a thread of the recorded processes
};

// What the kernel's own event prints (__trace_sched_switch_state, include/trace/events/sched.h), as LTTng writes it:
// see native/src/sched/sched.cpp. TASK_DEAD 128, TASK_NOLOAD 1024 (with TASK_UNINTERRUPTIBLE: idle):
// include/linux/sched.h of 5.12 to 6.18.
static inline u16 state_of(u64 preempt, u32 state) {
    if (preempt) return 256;
    if (state & 128) return 32;
    return (state & 1026) == 1026 ? 128 : state & 127;
}

// Processes by the kernel's own number (not the namespace's) → since when they run their program; 1: not known.
BPF_HASH(tree, u32, u64, 16384);
// The threads that are followed: sets of four by the last bits of the number, so that a look needs no call of a helper
// (a hash takes 20 to 30 ns, and several looks are at each switch). 0: free; CLAIMED: being put in. The wait of way w
// of set s is the element 4 * s + w of `threads`.
#define THREAD_SETS 8192  // a power of two; as in opline/capture/bpf/tasks.py
#define THREAD_WAYS 4
#define CLAIMED (~0ull)
struct thread_set {
    u64 of[THREAD_WAYS];  // 64 bits: clang compares and swaps no others for BPF
};
BPF_ARRAY(thread_sets, struct thread_set, THREAD_SETS);
BPF_ARRAY(threads, struct thread_wait, THREAD_SETS *THREAD_WAYS);

static inline int in_tree_already(u64 task) {
    u32 process = (u32)pointer_at(task + O_TASK_TGID);
    return tree.lookup(&process) != 0;
}

static inline struct thread_set *thread_set_of(u32 tid) {
    u32 place = tid & (THREAD_SETS - 1);
    return thread_sets.lookup(&place);
}

static inline struct thread_wait *wait_at(u32 tid, u32 way) {
    u32 place = (tid & (THREAD_SETS - 1)) * THREAD_WAYS + (way & (THREAD_WAYS - 1));
    return threads.lookup(&place);
}

static inline struct thread_wait *thread_of(u32 tid) {
    struct thread_set *s = thread_set_of(tid);
    if (!s) return 0;
#pragma unroll
    for (u32 way = 0; way < THREAD_WAYS; ++way)
        if (s->of[way] == tid) return wait_at(tid, way);
    return 0;
}

static inline int put_thread(u32 tid, struct thread_wait *fresh) {
    struct thread_set *s = thread_set_of(tid);
    struct thread_wait *t = thread_of(tid);
    if (t) *t = *fresh;
    if (t || !s) return t != 0;
#pragma unroll
    for (u32 way = 0; way < THREAD_WAYS; ++way) {
        if (s->of[way] || __sync_val_compare_and_swap(&s->of[way], 0ull, CLAIMED)) continue;
        t = wait_at(tid, way);
        if (t) *t = *fresh;
        asm volatile("" ::: "memory");  // whoever finds the number finds the wait
        s->of[way] = tid;
        return 1;
    }
    struct bridge_cpu *cpu = this_cpu();
    if (cpu) __sync_fetch_and_add(&cpu->untold_threads, 1);
    return 0;
}

static inline void take_out(u32 tid) {
    struct thread_set *s = thread_set_of(tid);
    if (!s) return;
#pragma unroll
    for (u32 way = 0; way < THREAD_WAYS; ++way)
        if (s->of[way] == tid) s->of[way] = 0;
}

static inline void add_thread(u32 tid) {
    struct thread_wait fresh = {.off_at = now_ns()};
    put_thread(tid, &fresh);
}

static inline void forget(u64 task, u32 tid);  // wakers.bpf.c

static inline void tell_process(u8 step, u32 process, u32 parent) {
    if (!wanted(KIND_PROCESS)) return;
    struct block_event *e = reserve(KIND_PROCESS);
    if (!e) return;
    e->call = step;
    e->tid = process;
    e->pid = parent;
    events.ringbuf_submit(e, RB_NO_WAKEUP);
}

// Of a process' first thread: it is one of the recorded processes, and runs already.
static inline void tell_running_process(u64 task) {
    u32 process = (u32)pointer_at(task + O_TASK_TGID);
    if ((u32)pointer_at(task + O_TASK_PID) != process || !wanted(KIND_PROCESS)) return;
    struct block_event *e = reserve(KIND_PROCESS);
    if (!e) return;
    e->call = PROCESS_RUNS;
    e->tid = process;
    bpf_probe_read_kernel(e->comm, sizeof(e->comm), (void *)(task + O_TASK_COMM));
    events.ringbuf_submit(e, RB_NO_WAKEUP);
}

static inline int in_tree(struct bridge_control *c) {
    u64 ids = kernel_ids();
    u32 tgid = ids >> 32;
    u64 since = 1;
    const struct thread_wait *t = thread_of((u32)ids);
    if ((t && !t->level) || tree.lookup(&tgid)) return 1;
    if (!c->follow || c->follow != (u32)(ids_in_our_namespace() >> 32)) return 0;
    tree.update(&tgid, &since);
    add_thread((u32)ids);
    tell_thread(bpf_get_current_task(), 1);
    c->followed = tgid;
    c->follow = 0;  // whoever comes next is a child, or nobody of ours
    return 1;
}

int on_sched_process_fork(struct bpf_raw_tracepoint_args *ctx) {
    u32 zero = 0, tgid = bpf_get_current_pid_tgid() >> 32;
    u64 since = now_ns();
    struct bridge_control *c = control.lookup(&zero);
    if (!c) return 0;
    if (!in_tree(c)) {
        tell_if_in_namespace(ctx->args[1]);
        return 0;
    }
    tell_thread(ctx->args[1], 0);
    u32 child = (u32)pointer_at(ctx->args[1] + O_TASK_TGID);
    if (child != tgid) {
        tree.update(&child, &since);
        tell_process(PROCESS_FORK, child, tgid);
    }
    add_thread((u32)pointer_at(ctx->args[1] + O_TASK_PID));
    return 0;
}

int on_sched_process_exec(struct bpf_raw_tracepoint_args *ctx) {
    u32 zero = 0, tgid = bpf_get_current_pid_tgid() >> 32;
    u64 since = now_ns();
    struct bridge_control *c = control.lookup(&zero);
    if (!c || !in_tree(c)) return 0;
    tree.update(&tgid, &since);
    tell_process(PROCESS_EXEC, current_ids() >> 32, 0);
    return 0;
}

// Threads' and processes' numbers may come back as others'.
int on_sched_process_exit(struct bpf_raw_tracepoint_args *ctx) {
    u64 ids = bpf_get_current_pid_tgid();
    u32 tgid = ids >> 32, tid = (u32)ids;
    forget(ctx->args[0], tid);
    if (!tree.lookup(&tgid)) return 0;
    u64 signal = pointer_at(ctx->args[0] + O_TASK_SIGNAL);
    if (signal && (u32)pointer_at(signal + O_SIGNAL_LIVE) == 0) {
        tell_process(PROCESS_EXIT, current_ids() >> 32, 0);
        tree.delete(&tgid);
    }
    return 0;
}

#endif
