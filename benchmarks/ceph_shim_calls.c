// SPDX-License-Identifier: MIT
// What one call costs, in processor time of its thread: `ceph_shim_calls COUNT` prints "NAME NANOSECONDS" per call that the shim for Ceph
// stands before. The kernel's part is kept as small as it gets: /dev/null, a socket that is read back. And what LTTng's events cost by themselves, around
// the shortest system call there is ("bare_…", less "getppid"): the shim's own tracepoints, without the shim.
#define _GNU_SOURCE
#define LTTNG_UST_TRACEPOINT_DEFINE
#define LTTNG_UST_TRACEPOINT_PROBE_DYNAMIC_LINKAGE
#include <fcntl.h>
#include <libaio.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "../tests/ceph_shim/wire.h"
#include "../tracepoints/ceph/cephshim_tp.h"

enum { PAUSE_BATCHES = 100, PAUSE_US = 10000 };

static double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int ends[2];      // a connection of Ceph's, both ends in this process
static int plain[2];     // one that is not
static struct bytes osd_op, reply;
static char sink[1 << 16];

static void must(int ok, const char *what) {
    if (!ok) perror(what), exit(1);
}

static void drain(int fd, size_t bytes) { must(recv(fd, sink, bytes, MSG_WAITALL) == (ssize_t)bytes, "recv"); }

static void connected(void) {
    struct bytes out = {0};
    must(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, plain) == 0, "socketpair");
    for (int side = 0; side < 2; side++) {
        out.n = 0;
        add_banner(&out, 1);
        must(send(ends[side], out.p, out.n, 0) == (ssize_t)out.n, "send");
        drain(ends[!side], out.n);
    }
    out.n = 0;
    add_auth_done(&out, 1, 4115, 1);
    must(send(ends[1], out.p, out.n, 0) == (ssize_t)out.n, "send");
    drain(ends[0], out.n);
    free(out.p);
}

static void *idle(void *nothing) {
    pause();
    return nothing;
}

int main(int argc, char **argv) {
    long count = argc > 1 ? atol(argv[1]) : 100000;
    int null = open("/dev/null", O_RDWR), zero = open("/dev/zero", O_RDWR), epfd = epoll_create1(0);
    struct bytes front = {0}, data = {0}, answer = {0};
    io_context_t aio = NULL;
    pthread_t other;
    // Ceph has threads, and so has whatever loads LTTng-UST: in a process of one thread the C library skips what cancellation needs
    must(pthread_create(&other, NULL, idle, NULL) == 0, "pthread_create");
    must(io_setup(16, &aio) == 0, "io_setup");
    add_osd_op(&front, 8, "benchmark_data_host_12345_object678", 1, 0x2201, 0, 4096);
    add_zero(&data, 4096);
    add_message(&osd_op, 1, &(struct wire_message){.type = 42, .version = 8, .tid = 7, .seq = 7, .front = &front, .data = &data});
    add_zero(&answer, 170);
    add_message(&reply, 1, &(struct wire_message){.type = 43, .version = 8, .tid = 7, .seq = 7, .front = &answer});
    connected();
    struct iovec parts[3] = {{osd_op.p, 77}, {osd_op.p + 77, front.n}, {osd_op.p + 77 + front.n, osd_op.n - 77 - front.n}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 3};
    char small[64] = "not a frame";

    // MEASURE(name, what is timed, what is not). After 2000 calls there is a pause, in which what takes the records out of a thread's ring comes to
    // its end: a thread that outruns it writes into ever new memory.
#define MEASURE(name, timed, rest)                                                                                     \
    do {                                                                                                               \
        double spent = 0;                                                                                              \
        for (long batch = 0; batch < count / 20; batch++) {                                                            \
            double from = now_ns();                                                                                    \
            for (int i = 0; i < 20; i++) { timed; }                                                                    \
            spent += now_ns() - from;                                                                                  \
            for (int i = 0; i < 20; i++) { rest; }                                                                     \
            if (batch % PAUSE_BATCHES == PAUSE_BATCHES - 1) usleep(PAUSE_US);                                          \
        }                                                                                                              \
        printf("%s %.1f\n", name, spent / (double)(count / 20 * 20));                                                  \
    } while (0)

    MEASURE("sendmsg_osd_op", must(sendmsg(ends[0], &message, 0) == (ssize_t)osd_op.n, "sendmsg"), drain(ends[1], osd_op.n));
    MEASURE("send_reply", must(send(ends[1], reply.p, reply.n, 0) == (ssize_t)reply.n, "send"), drain(ends[0], reply.n));
    {
        // Ceph reads 4 KiB, and then the rest: "begin" and "rest"
        double osd = 0, client = 0, begin = 0, rest = 0;
        for (long i = 0; i < count; i++) {
            must(sendmsg(ends[0], &message, 0) == (ssize_t)osd_op.n, "sendmsg");
            double from = now_ns();
            drain(ends[1], osd_op.n);
            osd += now_ns() - from;
            must(send(ends[1], reply.p, reply.n, 0) == (ssize_t)reply.n, "send");
            from = now_ns();
            drain(ends[0], reply.n);
            client += now_ns() - from;
            must(sendmsg(ends[0], &message, 0) == (ssize_t)osd_op.n, "sendmsg");
            from = now_ns();
            drain(ends[1], 4096);
            double middle = now_ns();
            drain(ends[1], osd_op.n - 4096);
            begin += middle - from;
            rest += now_ns() - middle;
            if (i % (20 * PAUSE_BATCHES) == 0) usleep(PAUSE_US);
        }
        double n = (double)count;
        printf("recv_osd_op %.1f\nrecv_reply %.1f\nrecv_osd_op_begin %.1f\nrecv_osd_op_rest %.1f\n", osd / n, client / n, begin / n, rest / n);
    }
    MEASURE("send_not_ceph", must(send(plain[0], small, sizeof small, 0) == sizeof small, "send"), drain(plain[1], sizeof small));
    MEASURE("write_not_ceph", must(write(null, small, sizeof small) == sizeof small, "write"), );
    MEASURE("read_not_ceph", must(read(zero, small, sizeof small) == sizeof small, "read"), );
    MEASURE("pwrite", must(pwrite(null, small, sizeof small, 4096) == sizeof small, "pwrite"), );
    MEASURE("pread", must(pread(zero, small, sizeof small, 4096) == sizeof small, "pread"), );
    MEASURE("fdatasync", must(fdatasync(null) != 0, "fdatasync"), );
    MEASURE("epoll_wait", must(epoll_wait(epfd, (struct epoll_event[1]){{0}}, 1, 0) == 0, "epoll_wait"), );
    MEASURE("dup_close", must(close(dup(null)) == 0, "close"), );
    struct msgr_message event = {.tid = 7, .seq = 7, .flen = 4300, .type = 42, .op = 0x2201, .length = 4096,
                                 .object = "benchmark_data_host_12345_object678", .client = 4115, .client_tid = 7};
#define EVENT(name, ...) lttng_ust_tracepoint(cephshim, name, __VA_ARGS__)
    MEASURE("getppid", syscall(SYS_getppid), );
    MEASURE("bare_message", EVENT(msgr_tx_msg, 5, &event, 4115, 0); syscall(SYS_getppid), );
    MEASURE("bare_pair", EVENT(sysio_pwrite_enter, 5, 4096, 64); syscall(SYS_getppid); EVENT(sysio_pwrite_exit, 5, 64), );
    MEASURE("bare_short", syscall(SYS_getppid); EVENT(aio_complete, 64, 4096), );
    {
        struct iocb cb, *list[1] = {&cb};
        struct io_event event;
        double submit = 0, reap = 0;
        for (long i = 0; i < count; i++) {
            io_prep_pwrite(&cb, null, sink, 4096, 8192);
            double from = now_ns();
            must(io_submit(aio, 1, list) == 1, "io_submit");
            double middle = now_ns();
            must(io_getevents(aio, 1, 1, &event, NULL) == 1, "io_getevents");
            submit += middle - from;
            reap += now_ns() - middle;
            if (i % (20 * PAUSE_BATCHES) == 0) usleep(PAUSE_US);
        }
        printf("io_submit %.1f\nio_getevents %.1f\n", submit / (double)count, reap / (double)count);
    }
    return 0;
}
