// SPDX-License-Identifier: MIT
// System calls of one command → the same ring buffer. Compiled with block.bpf.c, behind it, if the recorder asks for calls.
//
// sys_enter and sys_exit fire for every process of the machine. What is not wanted is sorted out first by the call's number,
// then by the process: `tree` has the command, put there by the first call that it makes (bridge_control.follow), and whom it
// forks.

#ifdef O_REG_0

BPF_HASH(tree, u32, u8, 16384);  // processes by the kernel's own number (not the namespace's)

static inline int in_tree(struct bridge_control *c) {
    u32 tgid = bpf_get_current_pid_tgid() >> 32;
    u8 one = 1;
    if (tree.lookup(&tgid)) return 1;
    if (!c->follow || c->follow != (u32)(current_ids() >> 32)) return 0;
    tree.update(&tgid, &one);
    return 1;
}

static inline struct block_event *reserve_call(u32 kind, struct bridge_control *c, u64 number) {
    if (!c->calls || number >= CALL_NUMBERS) return 0;
    u8 call = c->call_of[number & (CALL_NUMBERS - 1)];
    if (!(c->calls >> (call & 63) & 1) || !in_tree(c)) return 0;
    struct block_event *e = reserve(kind);
    if (e) e->call = call;
    return e;
}

// The file behind a descriptor of this thread: which one it is now, not which one it was opened as.
static inline void fill_file(struct block_event *e, u32 fd) {
    u64 files = pointer_at(bpf_get_current_task() + O_TASK_FILES);
    u64 table = files ? pointer_at(files + O_FILES_FDT) : 0;
    if (!table || fd >= (u32)pointer_at(table + O_FDT_MAX)) return;
    u64 file = pointer_at(pointer_at(table + O_FDT_FD) + 8ull * fd);
    u64 inode = file ? pointer_at(file + O_FILE_INODE) : 0;
    if (!inode) return;
    e->inode = pointer_at(inode + O_INODE_INO);
    e->dev = pointer_at(pointer_at(inode + O_INODE_SB) + O_SB_DEV);
}

int on_sys_enter(struct bpf_raw_tracepoint_args *ctx) {
    u32 zero = 0;
    struct bridge_control *c = control.lookup(&zero);
    if (!c) return 0;
    if (c->follow) in_tree(c);
    struct block_event *e = reserve_call(KIND_CALL_ENTRY, c, ctx->args[1]);
    if (!e) return 0;
    char r[REGS_SPAN] __attribute__((aligned(8)));
    if (!bpf_probe_read_kernel(r, sizeof(r), (void *)(ctx->args[0] + REGS_LOW))) {
        e->args[0] = GET(u64, r, REGS_LOW, O_REG_0);
        e->args[1] = GET(u64, r, REGS_LOW, O_REG_1);
        e->args[2] = GET(u64, r, REGS_LOW, O_REG_2);
        e->args[3] = GET(u64, r, REGS_LOW, O_REG_3);
        e->args[4] = GET(u64, r, REGS_LOW, O_REG_4);
        e->args[5] = GET(u64, r, REGS_LOW, O_REG_5);
        if (e->call <= CALLS_WITH_FILE) fill_file(e, e->args[0]);
    }
    events.ringbuf_submit(e, RB_NO_WAKEUP);
    return 0;
}

int on_sys_exit(struct bpf_raw_tracepoint_args *ctx) {
    u32 zero = 0;
    struct bridge_control *c = control.lookup(&zero);
    if (!c || !c->calls) return 0;
    struct block_event *e = reserve_call(KIND_CALL_EXIT, c, (u32)pointer_at(ctx->args[0] + O_REG_NUMBER));
    if (!e) return 0;
    e->args[0] = ctx->args[1];
    events.ringbuf_submit(e, RB_NO_WAKEUP);
    return 0;
}

int on_sched_process_fork(struct bpf_raw_tracepoint_args *ctx) {
    u32 tgid = bpf_get_current_pid_tgid() >> 32;
    u8 one = 1;
    if (!tree.lookup(&tgid)) return 0;
    u32 child = (u32)pointer_at(ctx->args[1] + O_TASK_TGID);
    tree.update(&child, &one);
    return 0;
}

// The last thread of a process ends: its number may come back as another's.
int on_sched_process_exit(struct bpf_raw_tracepoint_args *ctx) {
    u32 tgid = bpf_get_current_pid_tgid() >> 32;
    if (!tree.lookup(&tgid)) return 0;
    u64 signal = pointer_at(ctx->args[0] + O_TASK_SIGNAL);
    if (signal && (u32)pointer_at(signal + O_SIGNAL_LIVE) == 0) tree.delete(&tgid);
    return 0;
}

#endif
