// SPDX-License-Identifier: MIT
// Who a thread is → the same ring buffer. Compiled behind block.bpf.c, before tree.bpf.c.
//
// A thread is one number in the root PID namespace and its start time. LTTng-UST's events have the number that the
// thread's own PID namespace gives it, so both must be told together. They are told
//   - at the fork, of each thread of the recorded command and of each thread in another PID namespace than the root's;
//   - of each thread in such a namespace, and of each of a process that is attached to, that runs already: the iterator
//     below, which the collector reads once;
//   - where the collector is in a PID namespace itself, whose iterator sees that namespace alone: of a thread of
//     another one when it queues its first bio.
//
// Record: tid, pid, comm; args: start time (CLOCK_MONOTONIC ns of the recorder), own process number << 32 | own number,
// inode of the time namespace << 32 | inode of the PID namespace, how far the time namespace's CLOCK_MONOTONIC is ahead
// of the recorder's (ns), parent's process << 32 | thread, cgroup.

#ifdef O_TASK_THREAD_PID

// The number that the task has in its own PID namespace, and in *ns the inode of that.
static inline u32 own_number(u64 task, u32 *ns) {
    u64 pid = pointer_at(task + O_TASK_THREAD_PID);
    u64 upid = pid + O_PID_NUMBERS + (u64)(u32)pointer_at(pid + O_PID_LEVEL) * UPID_BYTES;
    if (!pid) return 0;
    *ns = (u32)pointer_at(pointer_at(upid + O_UPID_NS) + O_PIDNS_INUM);
    return (u32)pointer_at(upid);
}

static inline int in_root_namespace(u64 task) {
    return (u32)pointer_at(pointer_at(task + O_TASK_THREAD_PID) + O_PID_LEVEL) == 0;
}

// `runs`: it runs already; else the current thread has forked it.
static inline void tell_thread(u64 task, int runs) {
    if (!wanted(KIND_THREAD)) return;
    u32 pid_ns = 0;
    u64 ids = bpf_get_current_pid_tgid(), leader = pointer_at(task + O_TASK_LEADER);
    u32 own = own_number(task, &pid_ns), own_process = own_number(leader, &pid_ns);
    struct block_event *e = reserve(KIND_THREAD);
    if (!e) return;
    e->tid = (u32)pointer_at(task + O_TASK_PID);
    e->pid = (u32)pointer_at(task + O_TASK_TGID);
    if (runs) bpf_probe_read_kernel(e->comm, sizeof(e->comm), (void *)(task + O_TASK_COMM));
    e->args[0] = pointer_at(task + O_TASK_START) + CLOCK_OFFSET_NS;
    e->args[1] = (u64)own_process << 32 | own;
    e->args[2] = pid_ns;
    e->args[3] = -CLOCK_OFFSET_NS;
    e->args[4] = runs ? 0 : ids;
    e->args[5] = cgroup_of_task(task);
#ifdef O_NSPROXY_TIME
    u64 proxy = pointer_at(task + O_TASK_NSPROXY), time = proxy ? pointer_at(proxy + O_NSPROXY_TIME) : 0;
    if (time) {
        e->args[2] |= (u64)(u32)pointer_at(time + O_TIMENS_INUM) << 32;
        e->args[3] += pointer_at(time + O_TIMENS_MONOTONIC) * 1000000000 + pointer_at(time + O_TIMENS_MONOTONIC + 8);
    }
#endif
    events.ringbuf_submit(e, RB_NO_WAKEUP);
}

static inline void tell_if_in_namespace(u64 task) {
    if (!in_root_namespace(task)) tell_thread(task, 0);
}

#ifdef PIDNS_INO
BPF_TABLE("lru_hash", u32, u64, told, 16384);  // threads that were told, with their start time

static inline void tell_unseen_thread(void) {
    u64 task = bpf_get_current_task(), start = pointer_at(task + O_TASK_START);
    u32 tid = bpf_get_current_pid_tgid();
    u64 *before = told.lookup(&tid);
    if (before && *before == start) return;
    told.update(&tid, &start);
    if (!in_root_namespace(task)) tell_thread(task, 1);
}
#else
static inline void tell_unseen_thread(void) {}
#endif

#ifdef O_TASK_CGROUPS
// What the tracepoint's cgroup is a cgroup of: 1 for cgroup2, and for the hierarchy that else tells of a thread.
static inline u64 is_told_of(u64 cgroup) {
    u32 hierarchy = pointer_at(pointer_at(cgroup + O_CGROUP_ROOT) + O_ROOT_HIERARCHY);
#ifdef MEMORY_V1
    if (hierarchy == MEMORY_V1) return CGROUP_V1;
#endif
    return hierarchy == 0;
}

// Record: process and thread that are in the cgroup (args[5]) from here on; thread 0: all of the process; process 0:
// the cgroup was made.
static inline int tell_cgroup(u64 cgroup, u32 pid, u32 tid) {
    struct block_event *e = wanted(KIND_CGROUP) ? reserve(KIND_CGROUP) : 0;
    if (!e) return 0;
    e->tid = tid;
    e->pid = pid;
    e->args[5] = cgroup;
    events.ringbuf_submit(e, RB_NO_WAKEUP);
    return 0;
}

int on_cgroup_mkdir(struct bpf_raw_tracepoint_args *ctx) {
    u64 told = is_told_of(ctx->args[0]);
    return told ? tell_cgroup(cgroup_number(ctx->args[0]) | (told & CGROUP_V1), 0, 0) : 0;
}

// Of a process' first thread: with all others, or alone (cgroup_attach_task(), kernel/cgroup/cgroup.c).
int on_cgroup_attach_task(struct bpf_raw_tracepoint_args *ctx) {
    u64 task = ctx->args[2];
    u32 tid = ctx->args[3] & 0xff ? 0 : (u32)pointer_at(task + O_TASK_PID);
    return is_told_of(ctx->args[0]) ? tell_cgroup(cgroup_of_task(task), (u32)pointer_at(task + O_TASK_TGID), tid) : 0;
}
#endif

static inline int in_tree_already(u64 task);  // tree.bpf.c
static inline void tell_running_process(u64 task);
static inline void seed(u64 task);  // wakers.bpf.c
static inline void tell_followed_again(u64 task);

struct bpf_iter__task {
    u64 meta, task;
};
// A program of type iterator (kernel/bpf/task_iter.c), run once for each thread when its descriptor is read: when the
// recording begins, and in each part of a recording in chunks.
int bpf_iter__task(struct bpf_iter__task *ctx) {
    u64 task = ctx->task;
    u32 zero = 0;
    const struct bridge_control *c = control.lookup(&zero);
    if (!task || !c) return 0;
    const int ours = in_tree_already(task);
    if (ours) tell_running_process(task);
    if (ours || !in_root_namespace(task)) tell_thread(task, 1);
    else if (!c->retells) seed(task);
    if (c->retells) tell_followed_again(task);
    return 0;
}

#endif
