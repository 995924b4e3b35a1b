// SPDX-License-Identifier: MIT
// Which lock a followed thread sleeps for, and which thread holds that lock → the same ring buffer, just before the
// record of the wait. Compiled behind wakers.bpf.c, before states.bpf.c.
//
// Locks of the kernel: lock:contention_begin and contention_end (Linux 5.19) bracket the waiting, as often as the
// thread sleeps in it. The holder is read when the thread goes to sleep: the word `owner` of the lock. A rwsem that
// readers hold names one of them at best, so no holder is told then. Spinning tells nothing here: the thread runs.
//
// A futex is known by its address in the process, from the registers that the sleeper entered the kernel with
// (stacks.bpf.c: so only of waits that have stacks). Its holder is the thread that wakes the sleeper.

#ifdef O_TASK_TGID

// LCB_F_* of include/trace/events/lock.h
#define LOCK_SPINS 1
#define LOCK_READS 2
#define LOCK_WRITES 4
#define LOCK_PERCPU 16
#define LOCK_MUTEX 32
#define LOCK_FUTEX 0x8000  // our own

#if defined(WAIT_CHAINS) && defined(O_MUTEX_OWNER)

#define OWNER_FLAGS 7ull  // of both kinds: kernel/locking/mutex.h, rwsem.c
#define RWSEM_OF_READERS 1ull
#define LOCK_LEAST_NS 20000

static inline struct thread_wait *contending(void) {
    struct bridge_control *c = wanted(KIND_LOCK);
    return c ? thread_of((u32)kernel_ids()) : 0;
}

int on_contention_begin(struct bpf_raw_tracepoint_args *ctx) {
    u32 flags = ctx->args[1];
    if (flags & LOCK_SPINS) return 0;
    struct thread_wait *t = contending();
    if (!t) return 0;
    t->lock = ctx->args[0];
    t->lock_flags = flags;
    t->holder = 0;
    return 0;
}

int on_contention_end(struct bpf_raw_tracepoint_args *ctx) {
    struct thread_wait *t = contending();
    if (t && t->lock == ctx->args[0]) t->lock = 0;
    return 0;
}

// The thread goes to sleep.
static inline void note_holder(struct thread_wait *t) {
    u64 at = t->lock_flags & LOCK_MUTEX ? O_MUTEX_OWNER : O_RWSEM_OWNER;
    t->holder = 0;
    if (!(t->lock_flags & (LOCK_MUTEX | LOCK_READS | LOCK_WRITES)) || t->lock_flags & LOCK_PERCPU) return;
    u64 owner = pointer_at(t->lock + at), task = owner & ~OWNER_FLAGS;
    if (!task || (!(t->lock_flags & LOCK_MUTEX) && owner & RWSEM_OF_READERS)) return;
    t->holder = (u32)pointer_at(task + O_TASK_PID);
    t->holder_process = (u32)pointer_at(task + O_TASK_TGID);
    bpf_probe_read_kernel(t->holder_comm, sizeof(t->holder_comm), (void *)(task + O_TASK_COMM));
}

static inline struct block_event *reserve_state(const struct thread_wait *t, u8 kind);  // states.bpf.c

// The thread is on a CPU again.
static inline void tell_lock(u32 tid, struct thread_wait *t) {
    u32 flags = t->lock_flags;
    if (t->woken_at > t->off_at && (s64)(t->woken_at - t->off_at) >= LOCK_LEAST_NS && wanted(KIND_LOCK)) {
        struct block_event *e = reserve_state(t, KIND_LOCK);
        if (e) {
            e->tid = tid;
            e->pid = t->holder_process;
            e->args[0] = t->lock;
            e->args[1] = flags;
            e->args[2] = t->holder;
            e->args[3] = t->off_at;
            e->level = t->level;
            __builtin_memcpy(e->comm, t->holder_comm, sizeof(e->comm));
            events.ringbuf_submit(e, RB_NO_WAKEUP);
        }
    }
    if (flags & LOCK_FUTEX) t->lock = 0;
}

#else

static inline void note_holder(struct thread_wait *t) {}
static inline void tell_lock(u32 tid, struct thread_wait *t) {}

#endif

#endif
