// SPDX-License-Identifier: MIT
// Where in its program a recorded thread went to sleep: the addresses of its user stack. Compiled behind tree.bpf.c,
// before states.bpf.c. x86-64 only.
//
// Only the thread itself can read its stack, so they are noted at each switch off the CPU that is a sleep. The wake-up
// finds out whether the wait was a long one, and makes a stack of them then (stacks.bpf.c).
//
// The way from a frame to its caller's depends on the place in the code. The collector says it for the places that it
// meets (opline/capture/bpf/user_names.py), from what compilers write beside the code: so a stack is whole without
// frame pointers, too. At a place that is not known yet the stack ends.

#if defined(USER_FRAMES) && defined(TYPED)

#define USER_FRAMES_HERE 1
#define BY_RBP 1

struct user_frames {
    u64 stack_pointer;
    u64 of[USER_FRAMES + 1];  // innermost first; 0: no more
};
BPF_ARRAY(user_frames, struct user_frames, THREAD_SETS *THREAD_WAYS);  // in the places of `threads`

struct code_place {
    u64 address;
    u32 process;
    u32 since;  // the low half of `tree`'s
};
// From the stack pointer, or BY_RBP from rbp, to the caller's frame; the caller's rbp lies `rbp_at` below that, 0: rbp
// has it still. The return address lies 8 below.
struct code_frame {
    u32 frame_at;
    u16 rbp_at;
    u16 flags;
};
BPF_HASH(code_frames, struct code_place, struct code_frame, CODE_PLACES_MOST);

static inline struct user_frames *user_frames_of(u32 tid) {
    struct thread_set *s = thread_set_of(tid);
    if (!s) return 0;
#pragma unroll
    for (u32 way = 0; way < THREAD_WAYS; ++way) {
        u32 place = (tid & (THREAD_SETS - 1)) * THREAD_WAYS + way;
        if (s->of[way] == tid) return user_frames.lookup(&place);
    }
    return 0;
}

// The current thread leaves its CPU.
static inline void note_user_frames(u32 tid, const struct thread_wait *t) {
    if (t->level || !(t->state & 255)) return;
    u64 task = this_task(), registers = (u64)bpf_task_pt_regs((void *)task);
    u32 process = MEMBER(u32, task, O_TASK_TGID);
    struct user_frames *u = user_frames_of(tid);
    u64 *since = tree.lookup(&process);
    if (!u || !since || !registers) return;
    struct code_place at = {.process = process, .since = *since};
    u64 bp = pointer_at(registers + O_REGS_BP);
    u64 sp = u->stack_pointer = pointer_at(registers + O_REGS_SP);
    at.address = u->of[0] = pointer_at(registers + O_REGS_IP);
    u->of[1] = 0;
#pragma unroll
    for (u32 i = 1; i < USER_FRAMES; ++i) {
        struct code_frame *f = code_frames.lookup(&at);
        if (!f) return;
        sp = (f->flags & BY_RBP ? bp : sp) + f->frame_at;
        if (bpf_probe_read_user(&at.address, sizeof(at.address), (void *)(sp - 8)) || !at.address) return;
        if (f->rbp_at && bpf_probe_read_user(&bp, sizeof(bp), (void *)(sp - f->rbp_at))) return;
        u->of[i] = at.address;
        u->of[i + 1] = 0;
    }
}

#else

static inline void note_user_frames(u32 tid, const void *t) {}

#endif
