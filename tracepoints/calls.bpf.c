// SPDX-License-Identifier: MIT
// System calls of one command → the same ring buffer. Compiled with block.bpf.c, behind it, if the recorder asks for
// calls.
//
// sys_enter and sys_exit fire for every process of the machine. What is not wanted is sorted out first by the call's
// number, then by the process (tree.bpf.c).

#ifdef O_REG_0

static inline struct block_event *reserve_call(u32 kind, struct bridge_control *c, u64 number) {
    if (!c->calls || number >= CALL_NUMBERS) return 0;
    u8 call = c->call_of[number & (CALL_NUMBERS - 1)];
    if (!(c->calls >> (call & 63) & 1) || !in_tree(c)) return 0;
    struct block_event *e = reserve(kind);
    if (e) e->call = call;
    return e;
}

#define OPENED_TO_APPEND 02000  // O_APPEND (include/uapi/asm-generic/fcntl.h)

// Where the call is going to read or write a regular file or a block device; -1: nowhere that has a number. Two threads
// that use one descriptor at once may both be here before either moves it.
static inline u64 place_in(struct block_event *e, u64 file, u64 inode) {
    u32 type = (u32)pointer_at(inode + O_INODE_MODE) & 0170000;
    if (type != 0100000 && type != 0060000) return -1;
    int writes = e->call != CALL_NUMBER_read && e->call != CALL_NUMBER_readv;
    return pointer_at(writes && ((u32)pointer_at(file + O_FILE_FLAGS) & OPENED_TO_APPEND) ? inode + O_INODE_SIZE
                                                                                          : file + O_FILE_POS);
}

// The file behind a descriptor of this thread: which one it is now, not which one it was opened as.
static inline void fill_file(struct block_event *e, u32 fd, int place) {
    if (place) e->args[place] = -1;
    u64 files = pointer_at(bpf_get_current_task() + O_TASK_FILES);
    u64 table = files ? pointer_at(files + O_FILES_FDT) : 0;
    if (!table || fd >= (u32)pointer_at(table + O_FDT_MAX)) return;
    u64 file = pointer_at(pointer_at(table + O_FDT_FD) + 8ull * fd);
    u64 inode = file ? pointer_at(file + O_FILE_INODE) : 0;
    if (!inode) return;
    e->inode = pointer_at(inode + O_INODE_INO);
    e->dev = pointer_at(pointer_at(inode + O_INODE_SB) + O_SB_DEV);
    if (place) e->args[place] = place_in(e, file, inode);
}

// Which argument is not wanted and makes room for the place.
static inline void fill_files(struct block_event *e) {
    switch (e->call) {
    case CALL_NUMBER_read:
    case CALL_NUMBER_write:
    case CALL_NUMBER_readv:
    case CALL_NUMBER_writev: fill_file(e, e->args[0], 3); return;
    case CALL_NUMBER_sendfile64: fill_file(e, e->args[0], 4); return;
    case CALL_NUMBER_copy_file_range: {
        u64 named = e->args[3], place = -1;
        fill_file(e, e->args[2], 1);
        if (!named) return;
        if (bpf_probe_read_user(&place, sizeof(place), (void *)named)) place = -1;
        e->args[1] = place;
        return;
    }
    default:
        if (e->call <= CALLS_WITH_FILE) fill_file(e, e->args[0], 0);
    }
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
        fill_files(e);
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

#endif
