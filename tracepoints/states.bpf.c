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

#ifdef O_TASK_ARRIVAL

#define INSTEAD_LEAST_NS 20000
#define STATE_PREEMPTED 256

// The current thread leaves the CPU to `task`. Did it run half of the time, or more, in which that waited for the CPU?
// The kernel keeps since when a thread has its CPU, or waits for one (sched_info): both on the CPU's own clock, so only
// their difference says something here.
static inline void tell_instead(u64 task, u32 tid, const struct thread_wait *t) {
    u32 ran = (u32)current_ids();
    u64 woken = t->woken_at > t->on_at ? t->woken_at : 0;
    if (!ran || !wanted(KIND_INSTEAD) || !(woken || !t->state || t->state == STATE_PREEMPTED)) return;
    u64 since = woken > t->off_at ? woken : t->off_at;
    s64 waited = now_ns() - since;
    if (!since || waited < INSTEAD_LEAST_NS) return;
    u64 queued = pointer_at(task + O_TASK_QUEUED), arrived = pointer_at(bpf_get_current_task() + O_TASK_ARRIVAL);
    if (!queued || !arrived) return;
    s64 late = arrived - queued, ran_ns = late > 0 ? waited - late : waited;
    if (ran_ns * 2 < waited) return;
    struct block_event *e = reserve_state(t, KIND_INSTEAD);
    if (!e) return;
    e->tid = tid;
    e->pid = current_ids() >> 32;
    e->args[0] = ran;
    e->args[1] = ran_ns;
    e->level = t->level;
    bpf_get_current_comm(e->comm, sizeof(e->comm));
    events.ringbuf_submit(e, RB_NO_WAKEUP);
}

#else

static inline void tell_instead(u64 task, u32 tid, const struct thread_wait *t) {}

#endif

static inline void came_back(u64 task, u32 tid, struct thread_wait *t) {
    tell_instead(task, tid, t);
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
    u32 prev = (u32)bpf_get_current_pid_tgid();
    if (c->follow) in_tree(c);
    struct thread_wait *t = prev ? thread_of(prev) : 0;
    if (t) {
#ifdef A_sched_switch_state
        u32 state = ctx->args[A_sched_switch_state];
#else
        u32 state = (u32)pointer_at(ctx->args[A_sched_switch_prev] + O_TASK_STATE);
#endif
        t->off_at = now_ns();
        t->state = state_of(ctx->args[0] & 1, state);
        if (t->lock) note_holder(t);
    }
    u64 task = ctx->args[A_sched_switch_next];
    u32 next = (u32)pointer_at(task + O_TASK_PID);
    t = next ? thread_of(next) : 0;
    if (t) came_back(task, next, t);
    return 0;
}

// The thread, if it is followed, with its waker noted. It may be woken before the switch that takes it off its CPU.
static inline struct thread_wait *woken_thread(u32 tid) {
    struct bridge_control *c = wanted(KIND_OFF_CPU);
    struct thread_wait *t = c ? thread_of(tid) : 0;
    if (!t) return 0;
    t->waker = (u32)current_ids();  // who wakes it, or was interrupted by what does
    bpf_get_current_comm(t->comm, sizeof(t->comm));
    t->woken_at = now_ns();
    note_waker(c, t);
    return t;
}

int on_sched_waking(struct bpf_raw_tracepoint_args *ctx) {
    woken_thread((u32)pointer_at(ctx->args[0] + O_TASK_PID));
    return 0;
}

#endif
