// SPDX-License-Identifier: MIT
// Uprobes → ring buffer. Compiled by bcc at run time, after bridge_record.h, bridge.bpf.c and probe_event.h, which says
// what each one's arguments are.

struct pt_regs {  // x86-64, arch/x86/include/asm/ptrace.h
    unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss;
};

static inline u64 pointer_at(u64 address) {
    u64 value = 0;
    bpf_probe_read_user(&value, sizeof(value), (void *)address);
    return value;
}

static inline struct probe_event *reserve(u32 kind) {
    struct bridge_cpu *cpu = this_cpu();
    if (!cpu || !wanted(kind)) return 0;
    struct probe_event *e = events.ringbuf_reserve(sizeof(struct probe_event));
    if (!e) {
        __sync_fetch_and_add(&cpu->lost, 1);
        return 0;
    }
    e->ktime = bpf_ktime_get_ns();
    e->lost = cpu->lost;
    e->cpu = bpf_get_smp_processor_id();
    e->kind = kind;
    u64 ids = current_ids();
    e->tid = (u32)ids;
    e->pid = ids >> 32;
    bpf_get_current_comm(e->comm, sizeof(e->comm));
    e->op = e->msg = e->msg_tid = e->client = e->repop = e->txc = 0;
    e->msg_type = 0;
    e->state = 0;
    __builtin_memset(e->text, 0, sizeof(e->text));
    return e;
}

static inline void submit(struct probe_event *e) { events.ringbuf_submit(e, RB_NO_WAKEUP); }

static inline void fill_message(struct probe_event *e, u64 message) {
    u16 type = 0;
    bpf_probe_read_user(&type, sizeof(type), (void *)(message + MESSAGE_TYPE));
    e->msg = message;
    e->msg_type = type;
    e->msg_tid = pointer_at(message + MESSAGE_TID);
    e->client = pointer_at(message + MESSAGE_CLIENT);
}

#define FILL_THREAD
#define FILL_MESSAGE fill_message(e, ctx->si);
#define FILL_REQUEST                                                                                                   \
    e->op = ctx->di;                                                                                                   \
    fill_message(e, ctx->si);
#define FILL_OP(r) e->op = ctx->r;
#define FILL_OP_AT(r) e->op = pointer_at(ctx->r);
#define FILL_ISSUE                                                                                                     \
    e->repop = ctx->si;                                                                                                \
    e->op = pointer_at(ctx->dx);
#define FILL_REPOP e->repop = ctx->si;
#define FILL_COMMIT e->op = pointer_at(pointer_at(ctx->si) + IN_PROGRESS_OP);
#define FILL_TXC(r) e->txc = ctx->r;
#define FILL_STATE                                                                                                     \
    e->txc = ctx->si;                                                                                                  \
    e->state = (s32)ctx->cx - FIRST_COUNTER;
#define FILL_MARK                                                                                                      \
    e->op = ctx->di;                                                                                                   \
    u64 length = ctx->si;                                                                                              \
    if (length > sizeof(e->text) - 1) length = sizeof(e->text) - 1;                                                    \
    bpf_probe_read_user(e->text, length, (void *)ctx->dx);

#define PROGRAM(event, at, shape, symbol)                                                                              \
    int on_##event(struct pt_regs *ctx) {                                                                              \
        struct probe_event *e = reserve(PROBE_##event);                                                                \
        if (!e) return 0;                                                                                              \
        FILL_##shape submit(e);                                                                                        \
        return 0;                                                                                                      \
    }
PROBES(PROGRAM)
