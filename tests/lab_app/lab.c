/* SPDX-License-Identifier: MIT
 * The lab application: a client queues writes, workers take them and write; whoever sees the completion replies. Each
 * step passes an LTTng tracepoint (provider `lab`) and, right behind it, calls a function of that name with the same
 * arguments (lab_client_submit(oid, op_id, off, len, aux) …), which does nothing and can be probed.
 *   usage: lab direct|aio|buffered|nowait|uring PATH OPS WORKERS DEPTH [prefork|doublefork]
 * nowait: as direct, each write with RWF_NOWAIT first. uring: each write by io_uring, in a kernel worker (IOSQE_ASYNC).
 * prefork, doublefork: a child, or a child's child, does all, after the program has passed a tracepoint.
 */
#define _GNU_SOURCE
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "lab_tp.h"

#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define BYTES 4096u
#define BLOCKS 4096u /* of the region that is written */

enum mode { DIRECT, AIO, BUFFERED, NOWAIT, URING };
static const char *const modes[] = {"direct", "aio", "buffered", "nowait", "uring"};

struct op {
    uint64_t id, off;
    char oid[16];
    struct op *next;
    void *data;
    struct iocb cb;
};

/* noipa: neither inlined nor given other arguments */
#define PLACE(name)                                                                                                    \
    __attribute__((noipa)) void lab_##name(const char *oid, uint64_t id, uint64_t off, uint32_t len, int aux) {        \
        __asm__ volatile("nop" ::"r"(oid), "r"(id), "r"(off), "r"(len), "r"(aux));                                     \
    }
PLACE(client_submit)
PLACE(queue_enter)
PLACE(dequeue)
PLACE(io_begin)
PLACE(io_end)
PLACE(sync_begin)
PLACE(sync_end)
PLACE(client_reply)
#define PASS(name, op, aux)                                                                                            \
    do {                                                                                                               \
        lttng_ust_tracepoint(lab, name, (op)->oid, (op)->id, (op)->off, BYTES, aux);                                   \
        lab_##name((op)->oid, (op)->id, (op)->off, BYTES, aux);                                                        \
    } while (0)

static enum mode mode;
static int fd;
static long count;
static aio_context_t context;
static sem_t slots;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct op *head, **tail = &head;
static int queued, stopping;

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static void finish(struct op *op, int result) {
    PASS(client_reply, op, result);
    free(op->data);
    free(op);
    sem_post(&slots);
}

static struct op *take(int worker) {
    pthread_mutex_lock(&mutex);
    while (!head && !stopping) pthread_cond_wait(&changed, &mutex);
    struct op *op = head;
    if (op) {
        head = op->next;
        if (!head) tail = &head;
        queued--;
    }
    pthread_mutex_unlock(&mutex);
    if (op) PASS(dequeue, op, worker);
    return op;
}

static void *reap(void *unused) {
    (void)unused;
    for (long done = 0; done < count;) {
        struct io_event events[8];
        long n = syscall(SYS_io_getevents, context, 1, 8, events, NULL);
        if (n < 0) fail("io_getevents");
        for (long i = 0; i < n; i++, done++) {
            struct op *op = (struct op *)events[i].data;
            PASS(io_end, op, (int)events[i].res);
            finish(op, (int)events[i].res);
        }
    }
    return NULL;
}

/* A ring of one worker, for one write at a time. */
struct ring {
    int fd;
    struct io_uring_params p;
    char *queues;
    struct io_uring_sqe *entries;
};

static void set_up(struct ring *r) {
    r->fd = (int)syscall(SYS_io_uring_setup, 4, &r->p);
    if (r->fd < 0) fail("io_uring_setup");
    size_t bytes = r->p.cq_off.cqes + r->p.cq_entries * sizeof(struct io_uring_cqe); /* one mapping since 5.4 */
    r->queues = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, IORING_OFF_SQ_RING);
    r->entries = mmap(NULL, 4 * sizeof(*r->entries), PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, IORING_OFF_SQES);
    if (r->queues == MAP_FAILED || r->entries == MAP_FAILED) fail("mmap");
}

static ssize_t write_in_worker(struct ring *r, const void *data, off_t off) {
    unsigned *tail = (unsigned *)(r->queues + r->p.sq_off.tail), *head = (unsigned *)(r->queues + r->p.cq_off.head);
    unsigned slot = *tail & 3;
    r->entries[slot] = (struct io_uring_sqe){.opcode = IORING_OP_WRITE,
                                             .flags = IOSQE_ASYNC,
                                             .fd = fd,
                                             .off = (uint64_t)off,
                                             .addr = (uint64_t)data,
                                             .len = BYTES};
    ((unsigned *)(r->queues + r->p.sq_off.array))[slot] = slot;
    __atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
    if (syscall(SYS_io_uring_enter, r->fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) != 1) fail("io_uring_enter");
    while (__atomic_load_n((unsigned *)(r->queues + r->p.cq_off.tail), __ATOMIC_ACQUIRE) == *head)
        if (syscall(SYS_io_uring_enter, r->fd, 0, 1, IORING_ENTER_GETEVENTS, NULL, 0) < 0) fail("io_uring_enter");
    struct io_uring_cqe *done = (struct io_uring_cqe *)(r->queues + r->p.cq_off.cqes) + (*head & (r->p.cq_entries - 1));
    int result = done->res;
    __atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
    errno = -result;
    return result;
}

static ssize_t write_out(struct ring *r, void *data, off_t off) {
    struct iovec all = {data, BYTES};
    if (mode == URING) return write_in_worker(r, data, off);
    if (mode == NOWAIT) {
        ssize_t done = pwritev2(fd, &all, 1, off, RWF_NOWAIT);
        if (done >= 0 || errno != EAGAIN) return done;
    }
    return pwrite(fd, data, BYTES, off);
}

static void *work(void *argument) {
    struct op *op;
    struct ring ring = {0};
    if (mode == URING) set_up(&ring);
    while ((op = take((int)(long)argument))) {
        PASS(io_begin, op, fd);
        if (mode == AIO) {
            struct iocb *cb = &op->cb;
            *cb = (struct iocb){
                .aio_data = (uint64_t)op,
                .aio_lio_opcode = IOCB_CMD_PWRITE,
                .aio_fildes = (uint32_t)fd,
                .aio_buf = (uint64_t)op->data,
                .aio_nbytes = BYTES,
                .aio_offset = (int64_t)op->off,
            };
            if (syscall(SYS_io_submit, context, 1, &cb) != 1) fail("io_submit");
            continue;
        }
        ssize_t written = write_out(&ring, op->data, (off_t)op->off);
        if (written != (ssize_t)BYTES) fail("pwrite");
        PASS(io_end, op, (int)written);
        if (mode == BUFFERED) {
            PASS(sync_begin, op, fd);
            if (fdatasync(fd)) fail("fdatasync");
            PASS(sync_end, op, 0);
        }
        finish(op, (int)written);
    }
    return NULL;
}

static void submit(long id) {
    sem_wait(&slots);
    struct op *op = calloc(1, sizeof *op);
    if (!op || posix_memalign(&op->data, BYTES, BYTES)) exit(1);
    memset(op->data, (int)id, BYTES);
    op->id = (uint64_t)id;
    op->off = (uint64_t)rand() % BLOCKS * BYTES;
    snprintf(op->oid, sizeof op->oid, "obj.%04u", (unsigned)(op->off >> 20));
    PASS(client_submit, op, 0);
    pthread_mutex_lock(&mutex);
    *tail = op;
    tail = &op->next;
    PASS(queue_enter, op, ++queued);
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&mutex);
}

/* Goes on in a child, or a child's child; its parent waits until it has ended. */
static void go_on_in_child(int again) {
    int ends[2];
    char nothing;
    struct op none = {.id = ~0ull};
    PASS(queue_enter, &none, 0);
    if (pipe(ends)) fail("pipe");
    pid_t child = fork();
    if (child < 0) fail("fork");
    if (child == 0 && again && fork() != 0) _exit(0);
    if (child != 0) {
        close(ends[1]);
        if (read(ends[0], &nothing, 1) != 0) fail("read");
        exit(wait(NULL) < 0);
    }
}

int main(int argc, char **argv) {
    if (argc < 6) return 2;
    for (unsigned i = 0; i < sizeof modes / sizeof *modes; i++)
        if (!strcmp(argv[1], modes[i])) mode = (enum mode)i;
    if (argc > 6) go_on_in_child(!strcmp(argv[6], "doublefork"));
    count = atol(argv[3]);
    long workers = atol(argv[4]), depth = atol(argv[5]);
    fd = open(argv[2], O_RDWR | (mode == BUFFERED ? 0 : O_DIRECT));
    if (fd < 0) fail(argv[2]);
    if (mode == AIO && syscall(SYS_io_setup, (unsigned)depth, &context)) fail("io_setup");
    sem_init(&slots, 0, (unsigned)depth);
    pthread_t threads[16], reaper;
    if (mode == AIO) pthread_create(&reaper, NULL, reap, NULL);
    for (long i = 0; i < workers && i < 16; i++) pthread_create(&threads[i], NULL, work, (void *)i);
    for (long i = 0; i < count; i++) submit(i);
    for (long i = 0; i < depth; i++) sem_wait(&slots);
    pthread_mutex_lock(&mutex);
    stopping = 1;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
    for (long i = 0; i < workers && i < 16; i++) pthread_join(threads[i], NULL);
    if (mode == AIO) pthread_join(reaper, NULL);
    return 0;
}
