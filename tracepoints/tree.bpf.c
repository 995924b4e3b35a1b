// SPDX-License-Identifier: MIT
// Whose system calls and scheduler states are recorded: the command and whom it forks. Compiled behind block.bpf.c,
// before calls.bpf.c and states.bpf.c, if the recorder asks for either.
//
// The first of these programs that the command's process runs into (bridge_control.follow) puts it into `tree`, and its
// thread into `threads`; sched_process_fork adds whom they fork.

#ifdef O_TASK_TGID

// Since when a thread of the tree is off its CPU, and what happened meanwhile.
struct thread_off {
    u64 off_at;    // 0: not known
    u64 woken_at;  // 0: by nobody yet
    u32 state;     // when it was taken off: state_of() in states.bpf.c
    u32 waker;
    char comm[16];  // the waker's
};

BPF_HASH(tree, u32, u8, 16384);  // processes by the kernel's own number (not the namespace's)
BPF_HASH(threads, u32, struct thread_off, 32768);
// By a thread's number, modulo 65536: is it, or was it, in `threads`? Most threads of a machine are not, and a look
// into a hash that lies in no cache costs a third of a microsecond.
struct thread_marks {
    u8 of[65536];
};
BPF_ARRAY(marks, struct thread_marks, 1);

static inline struct thread_off *thread_of(u32 tid) {
    u32 zero = 0;
    struct thread_marks *m = marks.lookup(&zero);
    return m && m->of[tid & 65535] ? threads.lookup(&tid) : 0;
}

static inline void add_thread(u32 tid) {
    struct thread_off fresh = {};
    u32 zero = 0;
    struct thread_marks *m = marks.lookup(&zero);
    if (m) m->of[tid & 65535] = 1;
    fresh.off_at = bpf_ktime_get_ns();
    if (threads.update(&tid, &fresh) == 0) return;
    struct bridge_cpu *cpu = this_cpu();
    if (cpu) __sync_fetch_and_add(&cpu->untold_threads, 1);
}

static inline int in_tree(struct bridge_control *c) {
    u64 ids = bpf_get_current_pid_tgid();
    u32 tgid = ids >> 32;
    u8 one = 1;
    if (tree.lookup(&tgid)) return 1;
    if (!c->follow || c->follow != (u32)(current_ids() >> 32)) return 0;
    tree.update(&tgid, &one);
    add_thread((u32)ids);
    c->follow = 0;  // whoever comes next is a child, or nobody of ours
    return 1;
}

int on_sched_process_fork(struct bpf_raw_tracepoint_args *ctx) {
    u32 zero = 0, tgid = bpf_get_current_pid_tgid() >> 32;
    u8 one = 1;
    struct bridge_control *c = control.lookup(&zero);
    if (!c || !in_tree(c)) return 0;
    u32 child = (u32)pointer_at(ctx->args[1] + O_TASK_TGID);
    if (child != tgid) tree.update(&child, &one);
    add_thread((u32)pointer_at(ctx->args[1] + O_TASK_PID));
    return 0;
}

// Threads' and processes' numbers may come back as others'.
int on_sched_process_exit(struct bpf_raw_tracepoint_args *ctx) {
    u64 ids = bpf_get_current_pid_tgid();
    u32 tgid = ids >> 32, tid = (u32)ids;
    if (!tree.lookup(&tgid)) return 0;
    threads.delete(&tid);
    u64 signal = pointer_at(ctx->args[0] + O_TASK_SIGNAL);
    if (signal && (u32)pointer_at(signal + O_SIGNAL_LIVE) == 0) tree.delete(&tgid);
    return 0;
}

#endif
