// SPDX-License-Identifier: MIT
// Kernel stacks of a thread that slept long, and of whoever wakes it, both taken at the wake-up: only then is it known
// how long the wait was, so short ones cost nothing. Compiled behind states.bpf.c.
//
// An idle worker waits for work, and its stack tells nothing. Only if a timer wakes the worker is the waker's stack
// taken: the timer's function tells whose work it is, as that of a limit (throtl_pending_timer_fn).
//
// A pair of stacks costs some microseconds. So each CPU takes 500 a second of waits below 1 ms, 500 of those from 1 to
// 5 ms, and all of longer ones. Those that it leaves out are counted.
//
// Of the same frames there is one stack, with a number. The collector takes them out of the map at its end, and
// resolves and judges them (opline/capture/bpf/stacks.py).

#ifdef WAIT_STACK_NS

#define STACKS_IN_WINDOW 67u  // 500 a second
#define LONG_NS 1000000u
#define ALWAYS_NS 5000000u
#define SLEEPS_IDLE 128  // a worker that waits for work

struct known_stack {
    u64 number;                // from 1
    u64 frames[STACK_FRAMES];  // innermost first; 0: none
};

BPF_HASH(stacks, u64, struct known_stack, STACKS_MOST);  // by a hash of the frames
BPF_PERCPU_ARRAY(stack_room, struct known_stack, 2);

// 0: none, or there is no room for it.
static inline u32 stack_number(struct bridge_cpu *cpu, struct known_stack *s, long bytes) {
    u64 hash = 0xcbf29ce484222325ull;  // FNV's, with a rotation
    if (bytes <= 0) return 0;
    u32 count = bytes / 8;
#pragma unroll
    for (u32 i = 0; i < STACK_FRAMES; ++i) {
        u64 frame = i < count ? s->frames[i] : 0;
        s->frames[i] = frame;
        hash = ((hash << 5 | hash >> 59) ^ frame) * 0x100000001b3ull;
    }
    struct known_stack *known = stacks.lookup(&hash);
    if (known) return known->number;
    s->number = ++cpu->stacks * CPU_COUNT + bpf_get_smp_processor_id() - CPU_COUNT + 1;
    if (stacks.insert(&hash, s) == 0) return s->number;
    known = stacks.lookup(&hash);  // another CPU was first
    if (known) return known->number;
    ++cpu->lost_stacks;
    return 0;
}

#ifdef FUTEX_CALL

// The address of the futex for which the thread sleeps, if it does.
static inline void take_futex(void *woken, struct thread_wait *t) {
    u64 regs = (u64)bpf_task_pt_regs(woken);
    if (t->lock || !regs || (u32)pointer_at(regs + FUTEX_CALL_REG) != FUTEX_CALL) return;
    t->lock = pointer_at(regs + FUTEX_ADDRESS_REG);
    t->lock_flags = LOCK_FUTEX;
    t->holder = t->holder_process = 0;
}

#else

static inline void take_futex(void *woken, struct thread_wait *t) {}

#endif

static inline void take_stacks(void *ctx, void *woken, struct thread_wait *t) {
    u32 first = 0, second = 1;
    t->stack = t->waker_stack = 0;
    u64 slept = t->woken_at - t->off_at, window = t->woken_at >> WINDOW_SHIFT;
    if (t->off_at <= t->on_at || !(t->state & 255) || slept < WAIT_STACK_NS) return;
    u32 idle = t->state == SLEEPS_IDLE;
    if (idle && (t->waker_irq == IRQ_UNKNOWN || !(t->waker_irq & IRQ_TIMER))) return;
    if (!idle) take_futex(woken, t);
    struct bridge_cpu *cpu = this_cpu();
    if (!cpu) return;
    if (cpu->stack_window < window) {
        cpu->stack_window = window;
        cpu->stacks_windowed = cpu->long_windowed = 0;
    }
    u64 taken = slept < LONG_NS ? ++cpu->stacks_windowed : slept < ALWAYS_NS ? ++cpu->long_windowed : 0;
    if (taken > STACKS_IN_WINDOW) {
        ++cpu->stacks_left_out;
        return;
    }
    struct known_stack *of_woken = stack_room.lookup(&first), *of_waker = stack_room.lookup(&second);
    if (!of_woken || !of_waker) return;
    if (!idle) t->stack = stack_number(cpu, of_woken, bpf_get_task_stack(woken, of_woken->frames, STACK_FRAMES * 8, 0));
    t->waker_stack = stack_number(cpu, of_waker, bpf_get_stack(ctx, of_waker->frames, STACK_FRAMES * 8, 0));
}

// As on_sched_waking, of a kind whose programs know their arguments' types (BPF_TRACE_RAW_TP).
int stacks_sched_waking(struct bpf_raw_tracepoint_args *ctx) {
    struct thread_wait *t = woken_thread(MEMBER(u32, ctx->args[0], O_TASK_PID));
    if (t) take_stacks(ctx, (void *)ctx->args[0], t);
    return 0;
}

#endif
