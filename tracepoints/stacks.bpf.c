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
// Of the same frames there is one stack, with a number, and its hash goes into a queue. The collector takes the stacks
// out of the map by that, and resolves and judges them (opline/capture/bpf/stacks.py).
//
// With user frames (user_frames.bpf.c) a stack has those of the sleeper, too: they are part of what makes it another
// one. Their addresses mean something in one program only: that of `process`, which it runs since `since`.

#ifdef WAIT_STACK_NS

#define STACKS_IN_WINDOW 67u  // 500 a second
#define LONG_NS 1000000u
#define ALWAYS_NS 5000000u
#define SLEEPS_IDLE 128  // a worker that waits for work

struct known_stack {
    u64 number;                // from 1
    u64 frames[STACK_FRAMES];  // innermost first; 0: none
#ifdef USER_FRAMES_HERE
    u64 process, since;  // process 0: it has no user frames
    u64 tid, stack_pointer;
    u64 user[USER_FRAMES];
#endif
};

BPF_HASH(stacks, u64, struct known_stack, STACKS_MOST);  // by a hash of the frames
BPF_QUEUE(fresh_stacks, u64, STACKS_MOST);               // hashes of those that the collector has not taken yet
BPF_PERCPU_ARRAY(stack_room, struct known_stack, 2);

// FNV's, with a rotation.
static inline u64 hashed(u64 hash, u64 word) { return ((hash << 5 | hash >> 59) ^ word) * 0x100000001b3ull; }

#ifdef USER_FRAMES_HERE

static inline u64 with_user_frames(u64 hash, struct known_stack *s, u64 woken) {
    u32 tid = (u32)pointer_at(woken + O_TASK_PID), tgid = (u32)pointer_at(woken + O_TASK_TGID);
    struct user_frames *u = user_frames_of(tid);
    u64 *since = tree.lookup(&tgid);
    s->process = 0;
    if (!u || !since || !u->of[0]) return hash;
    s->process = tgid;
    s->since = *since;
    s->tid = tid;
    s->stack_pointer = u->stack_pointer;
    hash = hashed(hashed(hash, s->process), s->since);
    u64 more = ~0ull;  // 0 behind the last frame
#pragma unroll
    for (u32 i = 0; i < USER_FRAMES; ++i) {
        u64 frame = u->of[i] & more;
        s->user[i] = frame;
        more = frame ? more : 0;
        hash = hashed(hash, frame);
    }
    return hash;
}

static inline void no_user_frames(struct known_stack *s) { s->process = 0; }

#else

static inline u64 with_user_frames(u64 hash, struct known_stack *s, u64 woken) { return hash; }
static inline void no_user_frames(struct known_stack *s) {}

#endif

// `woken`: the thread, if its user frames belong to it. 0: none, or there is no room for it.
static inline u32 stack_number(struct bridge_cpu *cpu, struct known_stack *s, long bytes, u64 woken) {
    u64 hash = 0xcbf29ce484222325ull;
    if (bytes <= 0) return 0;
    u32 count = bytes / 8;
#pragma unroll
    for (u32 i = 0; i < STACK_FRAMES; ++i) {
        u64 frame = i < count ? s->frames[i] : 0;
        s->frames[i] = frame;
        hash = hashed(hash, frame);
    }
    no_user_frames(s);
    if (woken) hash = with_user_frames(hash, s, woken);
    struct known_stack *known = stacks.lookup(&hash);
    if (known) return known->number;
    s->number = ++cpu->stacks * CPU_COUNT + bpf_get_smp_processor_id() - CPU_COUNT + 1;
    if (stacks.insert(&hash, s) == 0) {
        fresh_stacks.push(&hash, 0);
        return s->number;
    }
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
    if (!idle) {
        long bytes = bpf_get_task_stack(woken, of_woken->frames, STACK_FRAMES * 8, 0);
        t->stack = stack_number(cpu, of_woken, bytes, t->level ? 0 : (u64)woken);
    }
    t->waker_stack = stack_number(cpu, of_waker, bpf_get_stack(ctx, of_waker->frames, STACK_FRAMES * 8, 0), 0);
}

// As on_sched_waking, of a kind whose programs know their arguments' types (BPF_TRACE_RAW_TP).
int stacks_sched_waking(struct bpf_raw_tracepoint_args *ctx) {
    struct thread_wait *t = woken_thread(MEMBER(u32, ctx->args[0], O_TASK_PID));
    if (t) take_stacks(ctx, (void *)ctx->args[0], t);
    return 0;
}

#endif
