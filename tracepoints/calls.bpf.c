// SPDX-License-Identifier: MIT
// System calls of one command → the same ring buffer. Compiled with block.bpf.c, behind it, if the recorder asks for
// calls.
//
// sys_enter and sys_exit fire for every process of the machine. What is not wanted is sorted out first by the call's
// number, then by the process (tree.bpf.c).

#ifdef O_REG_0

// A call that a 32-bit program makes, or a 64-bit one by a 32-bit program's way (int 0x80): its number means another
// call.
static inline int numbered_otherwise(void) {
    if (!(MEMBER(u32, this_task(), O_TASK_ABI) & ABI_32BIT)) return 0;
    struct bridge_cpu *cpu = this_cpu();
    if (cpu) __sync_fetch_and_add(&cpu->calls_32bit, 1);
    return 1;
}

// 0: it is not recorded.
static inline u8 recorded_call(struct bridge_control *c, u64 number) {
    if (!c->calls || number >= CALL_NUMBERS) return 0;
    u8 call = c->call_of[number & (CALL_NUMBERS - 1)];
    return (c->calls >> (call & 63) & 1) && in_tree(c) && !numbered_otherwise() ? call : 0;
}

static inline struct block_event *reserve_call(u32 kind, u8 call) {
    struct block_event *e = reserve(kind);
    if (e) e->call = call;
    return e;
}

// With room for many iocbs.
static inline struct iocbs_event *reserve_iocbs(u32 kind, u8 call) {
    struct bridge_cpu *cpu = this_cpu();
    if (!cpu) return 0;
    struct iocbs_event *x = events.ringbuf_reserve(sizeof(struct iocbs_event));
    if (!x) {
        __sync_fetch_and_add(&cpu->lost, 1);
        return 0;
    }
    begin_record(&x->e, cpu, kind);
    x->e.call = call;
    return x;
}

// Of how many iocbs the record of a call tells that has so many.
static inline u32 iocbs_told(s64 count) { return count <= 0 ? 0 : count > IOCBS_MOST ? IOCBS_MOST : count; }

// From an array of addresses that lie `step` bytes apart; `most`, a constant, bounds the loop. What can't be read is 0.
static inline void read_iocbs(u64 *to, u32 most, u64 from, u32 step, u32 count) {
    for (u32 i = 0; i < most && i < count; ++i) {
        asm volatile("" : "+r"(i));  // the kernel's verifier must find both conditions
        u64 iocb = 0;
        bpf_probe_read_user(&iocb, sizeof(iocb), (void *)(from + i * step));
        to[i] = iocb;
    }
}

#define OPENED_TO_APPEND 02000  // O_APPEND (include/uapi/asm-generic/fcntl.h)
#define APPENDS_THIS_TIME 0x10  // RWF_APPEND, RWF_NOAPPEND (include/uapi/linux/fs.h)
#define HOLDS_TO_ITS_PLACE 0x20

static inline int opened_to_append(u64 file) { return ((u32)pointer_at(file + O_FILE_FLAGS) & OPENED_TO_APPEND) != 0; }

// Does the call write at the file's end, wherever the file is, and whatever place the call names?
static inline int appends(struct block_event *e, u64 file) {
    u32 how = 0;
    switch (e->call) {
    case CALL_NUMBER_read:
    case CALL_NUMBER_readv:
    case CALL_NUMBER_preadv2: return 0;
    case CALL_NUMBER_pwritev2: how = e->args[5];
    }
    if (how & APPENDS_THIS_TIME) return 1;
    return !(how & HOLDS_TO_ITS_PLACE) && opened_to_append(file);
}

// The file (struct file) behind a descriptor of this thread; 0: none.
static inline u64 file_of(u32 fd) {
    u64 files = MEMBER(u64, this_task(), O_TASK_FILES);
    u64 table = files ? MEMBER(u64, files, O_FILES_FDT) : 0;
    if (!table || fd >= MEMBER(u32, table, O_FDT_MAX)) return 0;
    return pointer_at(MEMBER(u64, table, O_FDT_FD) + 8ull * fd);
}

// Which file it is now, not which one it was opened as; `file`, 0: it has no inode.
static inline u64 fill_inode(struct block_event *e, u64 file) {
    u64 inode = file ? pointer_at(file + O_FILE_INODE) : 0;
    char i[INODE_SPAN] __attribute__((aligned(8)));
    if (!inode || bpf_probe_read_kernel(i, sizeof(i), (void *)(inode + INODE_LOW))) return 0;
    e->inode = GET(u64, i, INODE_LOW, O_INODE_INO);
    e->old_dev = pointer_at(inode + O_INODE_GENERATION);
    e->dev = pointer_at(GET(u64, i, INODE_LOW, O_INODE_SB) + O_SB_DEV);
    return file;
}

static inline u64 fill_file(struct block_event *e, u32 fd) { return fill_inode(e, file_of(fd)); }

// Where the call is going to read or write a regular file or a block device; -1: nowhere that has a number. Two threads
// that use one descriptor at once may both be here before either moves it.
static inline u64 place_in(int at_end, u64 file) {
    u64 inode = file ? pointer_at(file + O_FILE_INODE) : 0;
    u32 type = inode ? (u32)pointer_at(inode + O_INODE_MODE) & 0170000 : 0;
    if (type != 0100000 && type != 0060000) return -1;
    return pointer_at(at_end ? inode + O_INODE_SIZE : file + O_FILE_POS);
}

// Of calls that name a place, in their fourth argument: it is another one if they append, or say -1: where the file is.
static inline void correct_place(struct block_event *e, u64 file) {
    int at_end = file && appends(e, file);
    int own = (e->call == CALL_NUMBER_preadv2 || e->call == CALL_NUMBER_pwritev2) && e->args[3] == ~0ull;
    if (file && (own || at_end)) e->args[3] = place_in(at_end, file);
}

// Of the file behind this descriptor, which is the record's.
static inline u64 place_behind(struct block_event *e, u32 fd) {
    u64 file = fill_file(e, fd);
    return place_in(file && appends(e, file), file);
}

#define RING_IS_REGISTERED 16  // IORING_ENTER_REGISTERED_RING, include/uapi/linux/io_uring.h
#define RINGS_REGISTERED 16    // at most: IO_RINGFD_REG_MAX, include/linux/io_uring_types.h

// Of io_uring_enter: how many completions the application has taken from the ring so far. It writes the number into
// memory that the kernel shares (struct io_uring, io_uring_types.h).
static inline void fill_ring(struct block_event *e) {
    if (!wanted(KIND_URING)) return;
    e->old_dev = RING_TOLD;
#ifdef O_CQ_HEAD
    u32 fd = e->args[0], head;
    u64 file = 0;
    if (!(e->args[3] & RING_IS_REGISTERED)) file = file_of(fd);
    else if (fd < RINGS_REGISTERED)
        file = pointer_at(pointer_at(bpf_get_current_task() + O_TASK_RINGS) + O_RINGS_REGISTERED + 8ull * fd);
    u64 rings = file ? pointer_at(pointer_at(file + O_FILE_PRIVATE) + O_RING_RINGS) : 0;
    if (!rings || bpf_probe_read_kernel(&head, sizeof(head), (void *)(rings + O_CQ_HEAD))) return;
    e->dev = head;
    e->old_dev |= RING_COUNTED;
#endif
}

// Which argument is not wanted and makes room for the place.
static inline void fill_files(struct block_event *e) {
    switch (e->call) {
    case CALL_NUMBER_read:
    case CALL_NUMBER_write:
    case CALL_NUMBER_readv:
    case CALL_NUMBER_writev: e->args[3] = place_behind(e, e->args[0]); return;
    case CALL_NUMBER_pwrite64:
    case CALL_NUMBER_pwritev:
    case CALL_NUMBER_preadv2:
    case CALL_NUMBER_pwritev2: correct_place(e, fill_file(e, e->args[0])); return;
    case CALL_NUMBER_sendfile64: e->args[4] = place_behind(e, e->args[0]); return;
    case CALL_NUMBER_copy_file_range:
    case CALL_NUMBER_splice: {
        u64 named = e->args[3], place = place_behind(e, e->args[2]);
        if (named && bpf_probe_read_user(&place, sizeof(place), (void *)named)) place = -1;
        e->args[1] = place;
        return;
    }
    case CALL_NUMBER_io_uring_enter: fill_ring(e); return;
    default:
        if (e->call <= CALLS_WITH_FILE) fill_file(e, e->args[0]);
    }
}

static inline void fill_arguments(struct block_event *e, u64 registers) {
    e->args[0] = MEMBER(u64, registers, O_REG_0);
    e->args[1] = MEMBER(u64, registers, O_REG_1);
    e->args[2] = MEMBER(u64, registers, O_REG_2);
    e->args[3] = MEMBER(u64, registers, O_REG_3);
    e->args[4] = MEMBER(u64, registers, O_REG_4);
    e->args[5] = MEMBER(u64, registers, O_REG_5);
}

// The file of a call's iocbs, and the descriptor in the upper half of their number, if all of them name the same:
// aio_fildes of struct iocb is at byte 20 (include/uapi/linux/aio_abi.h).
static inline void fill_file_of_iocbs(struct block_event *e, const u64 *iocbs, u32 most, u32 count) {
    u32 first = 0, fd = 0;
    for (u32 i = 0; i < most && i < count; ++i) {
        asm volatile("" : "+r"(i));  // the kernel's verifier must find both conditions
        if (!iocbs[i] || bpf_probe_read_user(&fd, sizeof(fd), (void *)(iocbs[i] + 20))) return;
        if (i == 0) first = fd;
        if (fd != first) return;
    }
    if (!count) return;
    e->args[1] = (u32)e->args[1] | (u64)first << 32;
    fill_file(e, first);
}

// io_submit(ctx, nr, iocbpp): which iocbs it queues.
static inline int on_io_submit(u64 registers) {
    u32 count = iocbs_told(MEMBER(u64, registers, O_REG_1));
    u64 from = MEMBER(u64, registers, O_REG_2);
    if (count > IOCBS_IN_ENTRY) {
        struct iocbs_event *x = reserve_iocbs(KIND_CALL_ENTRY, CALL_NUMBER_io_submit);
        if (!x) return 0;
        fill_arguments(&x->e, registers);
        u32 bytes = count * sizeof(x->iocbs[0]);
        asm volatile("" : "+r"(bytes));  // the kernel's verifier must find the condition
        if (bytes <= sizeof(x->iocbs)) bpf_probe_read_user(x->iocbs, bytes, (void *)from);
        fill_file_of_iocbs(&x->e, x->iocbs, IOCBS_MOST, count);
        events.ringbuf_submit(x, RB_NO_WAKEUP);
        return 0;
    }
    struct block_event *e = reserve_call(KIND_CALL_ENTRY, CALL_NUMBER_io_submit);
    if (!e) return 0;
    fill_arguments(e, registers);
    read_iocbs(e->args + 6 - IOCBS_IN_ENTRY, IOCBS_IN_ENTRY, from, 8, count);
    fill_file_of_iocbs(e, e->args + 6 - IOCBS_IN_ENTRY, IOCBS_IN_ENTRY, count);
    events.ringbuf_submit(e, RB_NO_WAKEUP);
    return 0;
}

int on_sys_enter(struct bpf_raw_tracepoint_args *ctx) {
    u32 zero = 0;
    struct bridge_control *c = control.lookup(&zero);
    if (!c) return 0;
    if (c->follow) in_tree(c);
    u8 call = recorded_call(c, ctx->args[1]);
    if (!call) return 0;
    if (call == CALL_NUMBER_io_submit) return on_io_submit(ctx->args[0]);
    struct block_event *e = reserve_call(KIND_CALL_ENTRY, call);
    if (!e) return 0;
    fill_arguments(e, ctx->args[0]);
    fill_files(e);
    events.ringbuf_submit(e, RB_NO_WAKEUP);
    return 0;
}

// A call that has taken completions: struct io_event, 32 bytes, has the iocb's address in its second field.
static inline int on_taken(u64 registers, u8 call, u64 returned) {
    u32 count = iocbs_told(returned);
    u64 from = MEMBER(u64, registers, O_REG_3) + 8;
    if (count > IOCBS_IN_EXIT) {
        struct iocbs_event *x = reserve_iocbs(KIND_CALL_EXIT, call);
        if (!x) return 0;
        x->e.args[0] = returned;
        read_iocbs(x->iocbs, IOCBS_MOST, from, 32, count);
        events.ringbuf_submit(x, RB_NO_WAKEUP);
        return 0;
    }
    struct block_event *e = reserve_call(KIND_CALL_EXIT, call);
    if (!e) return 0;
    e->args[0] = returned;
    read_iocbs(e->args + 6 - IOCBS_IN_EXIT, IOCBS_IN_EXIT, from, 32, count);
    events.ringbuf_submit(e, RB_NO_WAKEUP);
    return 0;
}

int on_sys_exit(struct bpf_raw_tracepoint_args *ctx) {
    u32 zero = 0;
    struct bridge_control *c = control.lookup(&zero);
    if (!c || !c->calls) return 0;
    u8 call = recorded_call(c, (u32)MEMBER(u64, ctx->args[0], O_REG_NUMBER));
    if (!call) return 0;
    if (call == CALL_NUMBER_io_getevents || call == CALL_NUMBER_io_pgetevents)
        return on_taken(ctx->args[0], call, ctx->args[1]);
    struct block_event *e = reserve_call(KIND_CALL_EXIT, call);
    if (!e) return 0;
    e->args[0] = ctx->args[1];
    events.ringbuf_submit(e, RB_NO_WAKEUP);
    return 0;
}

#endif
