// SPDX-License-Identifier: MIT
// Who woke a thread, and the threads that are followed for it. Compiled behind tree.bpf.c, before states.bpf.c.
//
// A wait ends because a thread or an interrupt ended it. In an interrupt the current thread is a bystander: so each CPU
// notes which interrupts it is in (bridge_cpu.irq). A thread that wakes one that is followed is followed itself, up to
// three levels away from the recorded processes, and no longer when it has woken none of a lower level for 10 s. Kernel
// threads that file systems and queues work with are followed from the start.
//
// The records of these threads are given up first, where there are too many: bridge_cpu.lost_followed.

#ifdef O_TASK_TGID

#define IRQ_UNKNOWN 0xffff  // of a wake-up
#define IRQ_TIMER 0x20      // softirq 1 (include/linux/interrupt.h): functions of timer_list
#define NO_CPU 0xffff

// Nothing is known of who wakes it.
static inline void no_waker(struct thread_wait *t) {
    t->waker_on_at = t->waker_off_at = t->waker_woken_at = 0;
    t->waker_waker = -1;
    t->waker_irq = t->waker_waker_irq = IRQ_UNKNOWN;
    t->waker_cpu = NO_CPU;
    t->waker_state = 0;
}

#ifdef WAIT_CHAINS

#define IRQ_HANDLER 1
#define IRQ_HRTIMER 2
#define IRQ_SOFT(number) (16ull << ((number)&15))

#define LEVELS 3
#define USEFUL_NS 10000000000ull
#define WINDOW_SHIFT 27           // of the budget: 134 ms
#define FOLLOWED_IN_WINDOW 6700u  // 50 000 a second
// PF_KTHREAD, PF_IO_WORKER (since 5.12): include/linux/sched.h of 5.10 to 6.18
#define TASK_IS_KERNEL_THREAD 0x200000
#define TASK_IS_IO_WORKER 0x10

// ---- interrupts -----------------------------------------------------------------------------------------------------

static inline int begin_irq(u64 bit) {
    struct bridge_cpu *cpu = this_cpu();
    if (cpu) cpu->irq |= bit;
    return 0;
}

static inline int end_irq(u64 bit) {
    struct bridge_cpu *cpu = this_cpu();
    if (cpu) cpu->irq &= ~bit;
    return 0;
}

int on_irq_handler_entry(struct bpf_raw_tracepoint_args *ctx) { return begin_irq(IRQ_HANDLER); }
int on_irq_handler_exit(struct bpf_raw_tracepoint_args *ctx) { return end_irq(IRQ_HANDLER); }
int on_softirq_entry(struct bpf_raw_tracepoint_args *ctx) { return begin_irq(IRQ_SOFT(ctx->args[0])); }
int on_softirq_exit(struct bpf_raw_tracepoint_args *ctx) { return end_irq(IRQ_SOFT(ctx->args[0])); }
int on_hrtimer_expire_entry(struct bpf_raw_tracepoint_args *ctx) { return begin_irq(IRQ_HRTIMER); }
int on_hrtimer_expire_exit(struct bpf_raw_tracepoint_args *ctx) { return end_irq(IRQ_HRTIMER); }

// No thread is switched in an interrupt: what a CPU still notes then is one whose end no program saw.
static inline void no_irq_here(void) {
    struct bridge_cpu *cpu = this_cpu();
    if (cpu && cpu->irq) cpu->irq = 0;
}

// ---- who is followed ------------------------------------------------------------------------------------------------

// `level`: -1: it is followed no longer.
static inline void tell_follow(u64 task, s8 level) {
    if (!wanted(KIND_FOLLOW)) return;
    struct block_event *e = reserve(KIND_FOLLOW);
    if (!e) return;
    e->tid = (u32)pointer_at(task + O_TASK_PID);
    e->pid = (u32)pointer_at(task + O_TASK_TGID);
    bpf_probe_read_kernel(e->comm, sizeof(e->comm), (void *)(task + O_TASK_COMM));
    e->args[0] = pointer_at(task + O_TASK_START) + CLOCK_OFFSET_NS;
    e->level = level;
    events.ringbuf_submit(e, RB_NO_WAKEUP);
}

static inline int is_own(struct bridge_control *c, u32 tgid) {
    int own = 0;
#pragma unroll
    for (int i = 0; i < OWN_TGIDS; ++i) own |= c->own_tgids[i] == tgid;
    return own;
}

// The current thread has woken `woken`.
static inline void learn(struct bridge_control *c, const struct thread_wait *woken, struct thread_wait *waker) {
    u64 ids = kernel_ids(), now = woken->woken_at;
    u32 tid = ids, tgid = ids >> 32;
    u8 level = woken->level + 1;
    if (waker) {
        if (waker->level < level) return;
        waker->useful_at = now;
        if (waker->level == level) return;
        waker->level = level;
    } else {
        if (level > LEVELS || is_own(c, tgid)) return;
        struct thread_wait fresh = {.level = tree.lookup(&tgid) ? 0 : level, .useful_at = now};
        if (!put_thread(tid, &fresh) || !fresh.level) return;
    }
    tell_follow(bpf_get_current_task(), level);
}

// A kernel thread that runs already. It wakes whom the recorded processes wait for, or is forgotten.
static inline void seed(u64 task) {
    char name[4] = {};
    if (!((u32)pointer_at(task + O_TASK_FLAGS) & TASK_IS_KERNEL_THREAD)) return;
    bpf_probe_read_kernel(name, sizeof(name), (void *)(task + O_TASK_COMM));
    u32 begin = *(u32 *)name;
#define IS(a, b, c, d) (begin == ((a) | (b) << 8 | (c) << 16 | (u32)(d) << 24))
    if (!(IS('j', 'b', 'd', '2') || IS('k', 'w', 'o', 'r') || IS('x', 'f', 's', 'a') || IS('x', 'f', 's', '-') ||
          IS('b', 't', 'r', 'f') || IS('l', 'o', 'o', 'p') || IS('d', 'm', 'c', 'r') || IS('m', 'd', '0', '_') ||
          IS('m', 'd', '1', '_') || IS('n', 'f', 's', 'd')))
        return;
#undef IS
    u32 tid = (u32)pointer_at(task + O_TASK_PID);
    struct thread_wait fresh = {.level = LEVELS, .useful_at = now_ns()};
    fresh.state = state_of(0, (u32)pointer_at(task + O_TASK_STATE));
    if (fresh.state) fresh.off_at = fresh.useful_at;  // it sleeps: since then at least
    if (!thread_of(tid) && put_thread(tid, &fresh)) tell_follow(task, LEVELS);
}

// Of a thread that is followed for others: told as when that began.
static inline void tell_followed_again(u64 task) {
    const struct thread_wait *t = thread_of((u32)pointer_at(task + O_TASK_PID));
    if (t && t->level) tell_follow(task, t->level);
}

// io_uring makes its workers without a fork that sched_process_fork would tell.
int on_task_newtask(struct bpf_raw_tracepoint_args *ctx) {
    u32 process = bpf_get_current_pid_tgid() >> 32;
    if (!((u32)pointer_at(ctx->args[0] + O_TASK_FLAGS) & TASK_IS_IO_WORKER) || !tree.lookup(&process)) return 0;
    tell_thread(ctx->args[0], 0);
    add_thread((u32)pointer_at(ctx->args[0] + O_TASK_PID));
    return 0;
}

static inline void forget(u64 task, u32 tid) {
    const struct thread_wait *t = thread_of(tid);
    if (!t) return;
    if (t->level) tell_follow(task, -1);
    take_out(tid);
}

static inline void forget_useless(u64 task, u32 tid, const struct thread_wait *t, u64 now) {
    if (t->level && (s64)(now - t->useful_at) > (s64)USEFUL_NS) forget(task, tid);
}

// Is there room for one more record of a thread that is not of the recorded processes, and was off its CPU until then?
static inline int within_budget(struct bridge_cpu *cpu, const struct thread_wait *t) {
    u64 window = (t->woken_at > t->off_at ? t->woken_at : t->off_at) >> WINDOW_SHIFT;
    if (cpu->window < window) {
        cpu->window = window;
        cpu->windowed = 0;
    }
    return ++cpu->windowed <= FOLLOWED_IN_WINDOW && cpu->states - cpu->states_taken < STATES_MOST / 2;
}

// ---- who woke -------------------------------------------------------------------------------------------------------

static inline void note_waker(struct bridge_control *c, struct thread_wait *t) {
    struct bridge_cpu *cpu = this_cpu();
    u32 tid = (u32)kernel_ids();
    no_waker(t);
    t->waker_cpu = bpf_get_smp_processor_id();
    t->waker_irq = cpu ? cpu->irq : IRQ_UNKNOWN;
    if (t->waker_irq || !tid) return;
    struct thread_wait *w = thread_of(tid);
    // One that was woken again since it is back has the new waker noted.
    if (w && w->on_at > w->off_at) {
        t->waker_on_at = w->on_at;
        if (w->woken_at <= w->on_at) {
            t->waker_off_at = w->off_at;
            t->waker_woken_at = w->woken_at;
            t->waker_state = w->state;
            t->waker_waker = w->woken_at ? w->waker : -1;
            t->waker_waker_irq = w->woken_at ? w->waker_irq : IRQ_UNKNOWN;
        }
    }
    learn(c, t, w);
}

#else

static inline void no_irq_here(void) {}
static inline void seed(u64 task) {}
static inline void tell_followed_again(u64 task) {}
static inline void forget(u64 task, u32 tid) { take_out(tid); }
static inline void forget_useless(u64 task, u32 tid, const struct thread_wait *t, u64 now) {}
static inline int within_budget(struct bridge_cpu *cpu, const struct thread_wait *t) { return 1; }
static inline void note_waker(struct bridge_control *c, struct thread_wait *t) { no_waker(t); }

#endif

#endif
