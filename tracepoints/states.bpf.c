// SPDX-License-Identifier: MIT
// When the command's threads ran, waited for a CPU and slept → the same ring buffer. Compiled behind tree.bpf.c if the
// recorder asks for states.
//
// sched_switch and sched_waking fire for every thread of the machine: one that is not in the tree costs a look or two
// into a hash. Of one that is, a switch off its CPU and the wake-up are only noted down; its return makes one record of
// all three. So a thread that sleeps costs one event, not three, and one that is off its CPU is told of when it is
// back.
//
// Threads may take turns more often than anybody can write down. So that block events and system calls don't pay for
// it, states are given up first: those that wait in the ring buffer take up half of it at most. That is counted by
// itself (bridge_cpu.lost_states).

#ifdef A_sched_switch_prev

static inline struct block_event *reserve_state(void) {
    struct bridge_cpu *cpu = this_cpu();
    if (!cpu) return 0;
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
    e->kind = KIND_OFF_CPU;
    return e;
}

// What the kernel's own event prints (__trace_sched_switch_state, include/trace/events/sched.h), as LTTng writes it:
// see native/src/sched/sched.cpp. TASK_DEAD 128, TASK_NOLOAD 1024 (with TASK_UNINTERRUPTIBLE: idle):
// include/linux/sched.h of 5.12 to 6.18.
static inline u64 state_of(u64 preempt, u32 state) {
    if (preempt) return 256;
    if (state & 128) return 32;
    return (state & 1026) == 1026 ? 128 : state & 127;
}

static inline void came_back(u64 task, struct thread_off *t) {
    struct block_event *e = reserve_state();
    if (e) {
        e->tid = (u32)pointer_at(task + O_TASK_PID);
        e->pid = t->waker;
        e->args[0] = t->off_at;
        e->args[1] = t->woken_at;
        e->args[2] = t->state;
        __builtin_memcpy(e->comm, t->comm, sizeof(e->comm));
        events.ringbuf_submit(e, RB_NO_WAKEUP);
    }
    t->woken_at = 0;
}

int on_sched_switch(struct bpf_raw_tracepoint_args *ctx) {
    struct bridge_control *c = wanted(KIND_OFF_CPU);
    if (!c) return 0;
    u32 prev = (u32)bpf_get_current_pid_tgid();
    if (c->follow) in_tree(c);
    struct thread_off *t = prev ? thread_of(prev) : 0;
    if (t) {
#ifdef A_sched_switch_state
        u32 state = ctx->args[A_sched_switch_state];
#else
        u32 state = (u32)pointer_at(ctx->args[A_sched_switch_prev] + O_TASK_STATE);
#endif
        t->off_at = now_ns();
        t->state = state_of(ctx->args[0] & 1, state);
    }
    u64 task = ctx->args[A_sched_switch_next];
    u32 next = (u32)pointer_at(task + O_TASK_PID);
    t = next ? thread_of(next) : 0;
    if (t) came_back(task, t);
    return 0;
}

// It may come before the switch that takes the thread off its CPU.
int on_sched_waking(struct bpf_raw_tracepoint_args *ctx) {
    if (!wanted(KIND_OFF_CPU)) return 0;
    u32 tid = (u32)pointer_at(ctx->args[0] + O_TASK_PID);
    struct thread_off *t = thread_of(tid);
    if (!t) return 0;
    t->waker = (u32)current_ids();  // who wakes it, or was interrupted by what does
    bpf_get_current_comm(t->comm, sizeof(t->comm));
    t->woken_at = now_ns();
    return 0;
}

#endif
