// SPDX-License-Identifier: MIT
// When the command's threads, and those that they wait for, ran, waited for a CPU and slept → the same ring buffer.
// Compiled behind wakers.bpf.c if the recorder asks for states.
//
// sched_switch and sched_waking fire for every thread of the machine: one that is not followed costs a look or two
// into an array. Of one that is, a switch off its CPU and the wake-up are only noted down; its return makes one record
// of all three. So a thread that sleeps costs one event, not three, and one that is off its CPU is told of when it is
// back.
//
// Threads may take turns more often than anybody can write down. So that block events and system calls don't pay for
// it, states are given up first: those that wait in the ring buffer take up half of it at most, those of threads that
// are not of the recorded processes a quarter. That is counted by itself (bridge_cpu.lost_states, lost_followed).

#ifdef A_sched_switch_prev

static inline struct block_event *reserve_state(const struct thread_wait *t, u8 kind) {
    struct bridge_cpu *cpu = this_cpu();
    if (!cpu) return 0;
    if (t->level && !within_budget(cpu, t)) {
        __sync_fetch_and_add(&cpu->lost_followed, 1);
        return 0;
    }
    if (cpu->states - cpu->states_taken >= STATES_MOST) {
        __sync_fetch_and_add(&cpu->lost_states, 1);
        return 0;
    }
    struct block_event *e = events.ringbuf_reserve(sizeof(struct block_event));
    if (!e) {
        __sync_fetch_and_add(&cpu->lost, 1);
        return 0;
    }
    __sync_fetch_and_add(&cpu->states, 1);
    e->ktime = now_ns();
    e->lost = cpu->lost;
    e->cpu = bpf_get_smp_processor_id();
    e->kind = kind;
    return e;
}

// ---- who ran instead ------------------------------------------------------------------------------------------------

#define INSTEAD_LEAST_NS 20000
#define INSTEAD_SHARE 32  // a part of the wait: who ran for less is not told
#define STATE_PREEMPTED 256
#define RUN_LEAST_NS 10000
#define RUNS_KEPT 32  // of each CPU; a power of 2

struct cpu_run {
    u64 since, until;
    u64 ids;
    char comm[16];
};
struct cpu_runs {
    u64 since;  // which the thread at hand has its CPU
    u64 next;
    struct cpu_run of[RUNS_KEPT];
};
BPF_PERCPU_ARRAY(runs, struct cpu_runs, 1);

// The current thread leaves the CPU.
static inline void note_run(u64 now) {
    u32 zero = 0;
    u64 ids = kernel_ids();
    struct cpu_runs *r = runs.lookup(&zero);
    if (!r) return;
    if ((u32)ids && r->since && now - r->since >= RUN_LEAST_NS) {
        struct cpu_run *run = &r->of[r->next++ & (RUNS_KEPT - 1)];
        run->since = r->since;
        run->until = now;
        run->ids = ids;
        name_current(run->comm);
    }
    r->since = now;
}

static inline void tell_run(const struct cpu_run *run, u32 tid, const struct thread_wait *t, u64 ran_ns) {
    struct block_event *e = reserve_state(t, KIND_INSTEAD);
    if (!e) return;
    e->tid = tid;
    e->pid = run->ids >> 32;
    e->args[0] = (u32)run->ids;
    e->args[1] = ran_ns;
    e->args[2] = run->until;
    e->level = t->level;
    __builtin_memcpy(e->comm, run->comm, sizeof(e->comm));
    events.ringbuf_submit(e, RB_NO_WAKEUP);
}

// The thread gets its CPU. Who ran there while it waited?
static inline void tell_instead(u32 tid, const struct thread_wait *t, u64 now) {
    u32 zero = 0;
    u64 woken = t->woken_at > t->on_at ? t->woken_at : 0;
    if (!wanted(KIND_INSTEAD) || !(woken || !t->state || t->state == STATE_PREEMPTED)) return;
    u64 since = woken > t->off_at ? woken : t->off_at;
    if (!since || now < since + INSTEAD_LEAST_NS) return;
    struct cpu_runs *r = runs.lookup(&zero);
    if (!r) return;
    u64 next = r->next;
#pragma unroll
    for (u32 i = 0; i < RUNS_KEPT; ++i) {  // from the oldest on
        const struct cpu_run *run = &r->of[(next + i) & (RUNS_KEPT - 1)];
        if (run->until <= since || (u32)run->ids == tid) continue;
        u64 ran_ns = run->until - (run->since > since ? run->since : since);
        if (ran_ns * INSTEAD_SHARE >= now - since) tell_run(run, tid, t, ran_ns);
    }
}

static inline void came_back(u64 task, u32 tid, struct thread_wait *t, u64 switched_at) {
    tell_instead(tid, t, switched_at);
    if (t->lock) tell_lock(tid, t);
    struct block_event *e = reserve_state(t, KIND_OFF_CPU);
    u64 now = e ? e->ktime : now_ns();
    if (t->woken_at <= t->on_at) t->woken_at = 0;  // that was before it ran the last time
    if (!t->woken_at) no_waker(t);
    if (e) {
        e->tid = tid;
        e->pid = t->waker;
        e->level = t->level;
        e->off_at = t->off_at;
        e->woken_at = t->woken_at;
        e->prev_state = t->state;
        e->waker_irq = t->waker_irq;
        e->waker_cpu = t->waker_cpu;
        e->waker_state = t->waker_state;
        e->waker_waker_irq = t->waker_waker_irq;
        e->waker_waker = t->waker_waker;
        e->waker_on_at = t->waker_on_at;
        e->waker_off_at = t->waker_off_at;
        e->waker_woken_at = t->waker_woken_at;
        e->stack = t->stack;
        e->waker_stack = t->waker_stack;
        __builtin_memcpy(e->comm, t->comm, sizeof(e->comm));
        events.ringbuf_submit(e, RB_NO_WAKEUP);
    }
    t->stack = t->waker_stack = 0;
    t->on_at = now;
    forget_useless(task, tid, t, now);
}

int on_sched_switch(struct bpf_raw_tracepoint_args *ctx) {
    struct bridge_control *c = wanted(KIND_OFF_CPU);
    if (!c) return 0;
    no_irq_here();
    u32 prev = (u32)kernel_ids();
    if (c->follow) in_tree(c);
    u64 now = now_ns();
    note_run(now);
    struct thread_wait *t = prev ? thread_of(prev) : 0;
    if (t) {
#ifdef A_sched_switch_state
        u32 state = ctx->args[A_sched_switch_state];
#else
        u32 state = MEMBER(u32, ctx->args[A_sched_switch_prev], O_TASK_STATE);
#endif
        t->off_at = now;
        t->state = state_of(ctx->args[0] & 1, state);
        if (t->lock) note_holder(t);
        note_user_frames(prev, t);
    }
    u64 task = ctx->args[A_sched_switch_next];
    u32 next = MEMBER(u32, task, O_TASK_PID);
    t = next ? thread_of(next) : 0;
    if (t) came_back(task, next, t, now);
    return 0;
}

// The thread, if it is followed, with its waker noted. It may be woken before the switch that takes it off its CPU.
static inline struct thread_wait *woken_thread(u32 tid) {
    struct bridge_control *c = wanted(KIND_OFF_CPU);
    struct thread_wait *t = c ? thread_of(tid) : 0;
    if (!t) return 0;
    t->waker = (u32)current_ids();  // who wakes it, or was interrupted by what does
    name_current(t->comm);
    t->woken_at = now_ns();
    note_waker(c, t);
    return t;
}

int on_sched_waking(struct bpf_raw_tracepoint_args *ctx) {
    woken_thread(MEMBER(u32, ctx->args[0], O_TASK_PID));
    return 0;
}

#endif
