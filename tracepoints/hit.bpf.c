// SPDX-License-Identifier: MIT
// What the generated programs for declared probes are made of. Compiled by bcc at run time, after bridge_record.h,
// bridge.bpf.c and hit_event.h. x86-64 only.

struct pt_regs {  // x86-64, arch/x86/include/asm/ptrace.h
    unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss;
};

#define READ_AS(name, type)                                                                                            \
    static inline u64 at_##name(u64 address) {                                                                         \
        type value = 0;                                                                                                \
        bpf_probe_read_user(&value, sizeof(value), (void *)address);                                                   \
        return (u64)(s64)value;                                                                                        \
    }                                                                                                                  \
    static inline u64 kernel_##name(u64 address) {                                                                     \
        type value = 0;                                                                                                \
        bpf_probe_read_kernel(&value, sizeof(value), (void *)address);                                                 \
        return (u64)(s64)value;                                                                                        \
    }
READ_AS(u8, u8)
READ_AS(s8, s8)
READ_AS(u16, u16)
READ_AS(s16, s16)
READ_AS(u32, u32)
READ_AS(s32, s32)
READ_AS(u64, u64)
READ_AS(s64, s64)

static inline void begin_hit(struct hit_head *h, struct bridge_cpu *cpu, u32 kind) {
    h->ktime = now_ns();
    h->lost = cpu->lost;
    h->cpu = bpf_get_smp_processor_id();
    h->kind = kind;
    h->pad = 0;
    u64 ids = current_ids();
    h->tid = (u32)ids;
    h->pid = ids >> 32;
    bpf_get_current_comm(h->comm, sizeof(h->comm));
}

// In a program, where `e` is its record.
#define HIT_NUMBER(at, value) *(u64 *)(e->payload + (at)) = (u64)(value);
#define HIT_TEXT(at, bytes, address)                                                                                   \
    __builtin_memset(e->payload + (at), 0, bytes);                                                                     \
    bpf_probe_read_user_str(e->payload + (at), bytes, (void *)(address));
#define KERNEL_TEXT(at, bytes, address)                                                                                \
    __builtin_memset(e->payload + (at), 0, bytes);                                                                     \
    bpf_probe_read_kernel_str(e->payload + (at), bytes, (void *)(address));
// Of a text whose length is known, and which has no NUL.
#define TEXT_OF(read, at, bytes, address, length)                                                                      \
    __builtin_memset(e->payload + (at), 0, bytes);                                                                     \
    {                                                                                                                  \
        u64 known = (length);                                                                                          \
        if (known > (bytes)-1) known = (bytes)-1;                                                                      \
        read(e->payload + (at), known, (void *)(address));                                                             \
    }
#define HIT_TEXT_OF(at, bytes, address, length) TEXT_OF(bpf_probe_read_user, at, bytes, address, length)
#define KERNEL_TEXT_OF(at, bytes, address, length) TEXT_OF(bpf_probe_read_kernel, at, bytes, address, length)
