// SPDX-License-Identifier: MIT
// What the shim for Ceph adds to a call, in processor time of its thread: `ceph_shim_calls COUNT` prints "NAME DIRECT
// CALLED" per call that the shim stands before: nanoseconds of the C library's own function and of the one that a
// program gets, in batches by turns. (On a busy machine a call costs half as much again from one second to the next:
// two programs, one after the other, say little.) The kernel's part is kept as small as it gets: /dev/null, a socket
// that is read back. And, "NAME NANOSECONDS", what LTTng's events cost by themselves, around the shortest system call
// there is ("bare_…", less "getppid"): the shim's own tracepoints, without the shim.
#define _GNU_SOURCE
#define LTTNG_UST_TRACEPOINT_DEFINE
#define LTTNG_UST_TRACEPOINT_PROBE_DYNAMIC_LINKAGE
#include <dlfcn.h>
#include <fcntl.h>
#include <libaio.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "../../tests/ceph/shim/wire.h"
#include "../../tracepoints/ceph/cephshim_tp.h"

enum { PAUSE_BATCHES = 100, PAUSE_US = 10000 };

static double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static struct bytes osd_op, reply;
static char sink[1 << 16];

static void must(int ok, const char *what) {
    if (!ok) perror(what), exit(1);
}

// clang-format off
#define CALLS(X) X(sendmsg) X(send) X(recv) X(write) X(read) X(pwrite) X(pread) X(fdatasync) X(epoll_wait) X(dup) \
    X(close) X(io_submit) X(io_getevents)
// clang-format on

// One way to call, and what it calls with.
static struct way {
#define MEMBER(name) __typeof__(&name) name;
    CALLS(MEMBER)
    int ends[2];   // a connection of Ceph's, both ends in this process
    int plain[2];  // one that is not
    double spent[4];
} ways[2];  // the libraries' own; what a program gets

static void drain(const struct way *way, int fd, size_t bytes) {
    must(way->recv(fd, sink, bytes, MSG_WAITALL) == (ssize_t)bytes, "recv");
}

static void find(void) {
    void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD), *libaio = dlopen("libaio.so.1", RTLD_LAZY | RTLD_NOLOAD);
    must(libc && libaio, "dlopen");
#define FIND(function)                                                                                                 \
    ways[1].function = function;                                                                                       \
    ways[0].function = (__typeof__(&function))dlsym(strncmp(#function, "io_", 3) == 0 ? libaio : libc, #function);     \
    must(ways[0].function != NULL, #function);
    CALLS(FIND)
}

static void connected(struct way *way) {
    struct bytes out = {0};
    must(socketpair(AF_UNIX, SOCK_STREAM, 0, way->ends) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, way->plain) == 0,
         "socketpair");
    for (int side = 0; side < 2; side++) {
        out.n = 0;
        add_banner(&out, 1);
        must(way->send(way->ends[side], out.p, out.n, 0) == (ssize_t)out.n, "send");
        drain(way, way->ends[!side], out.n);
    }
    out.n = 0;
    add_auth_done(&out, 1, 4115, 1);
    must(way->send(way->ends[1], out.p, out.n, 0) == (ssize_t)out.n, "send");
    drain(way, way->ends[0], out.n);
    free(out.p);
}

// To the end of what was spent, per call.
static void say(const char *name, int which, double calls) {
    printf("%s %.1f %.1f\n", name, ways[0].spent[which] / calls, ways[1].spent[which] / calls);
    ways[0].spent[which] = ways[1].spent[which] = 0;
}

static size_t cut(struct iovec *parts, uint8_t *p, const size_t *bytes) {
    size_t count = 0;
    for (; bytes[count]; p += bytes[count++]) parts[count] = (struct iovec){p, bytes[count]};
    return count;
}

static void *idle(void *nothing) {
    pause();
    return nothing;
}

static long count;
static struct bytes front, data, answer;
static struct iovec parts[6], answer_parts[5];
static struct msghdr message = {.msg_iov = parts}, answer_message = {.msg_iov = answer_parts};

// As Ceph sends them (strace, 16.2): preamble, header, its checksum, front, data, the other checksums.
static void write_messages(void) {
    add_osd_op(&front, 8, "benchmark_data_host_12345_object678", 1, 0x2201, 0, 4096);
    add_zero(&data, 4096);
    add_message(&osd_op, 1,
                &(struct wire_message){.type = 42, .version = 8, .tid = 7, .seq = 7, .front = &front, .data = &data});
    add_zero(&answer, 216);
    add_message(&reply, 1, &(struct wire_message){.type = 43, .version = 8, .tid = 7, .seq = 7, .front = &answer});
    message.msg_iovlen = cut(parts, osd_op.p, (size_t[]){32, 41, 4, front.n, data.n, 13, 0});
    answer_message.msg_iovlen = cut(answer_parts, reply.p, (size_t[]){32, 41, 4, answer.n, 13, 0});
}

// BATCHES(what is timed, by `way` or alone; what is not). After 2000 calls there is a pause, in which what takes the
// records out of a thread's ring comes to its end: a thread that outruns it writes into ever new memory.
#define BATCHES(count_ways, timed, rest)                                                                               \
    for (long batch = 0; batch < count / 20; batch++) {                                                                \
        for (int turn = 0; turn < (count_ways); turn++) {                                                              \
            struct way *way = &ways[(batch + turn) % (count_ways)];                                                    \
            double from = now_ns();                                                                                    \
            for (int i = 0; i < 20; i++) {                                                                             \
                timed;                                                                                                 \
            }                                                                                                          \
            way->spent[0] += now_ns() - from;                                                                          \
            for (int i = 0; i < 20; i++) {                                                                             \
                rest;                                                                                                  \
            }                                                                                                          \
        }                                                                                                              \
        if (batch % PAUSE_BATCHES == PAUSE_BATCHES - 1) usleep(PAUSE_US);                                              \
    }
#define MEASURE(name, timed, rest)                                                                                     \
    do {                                                                                                               \
        BATCHES(2, timed, rest)                                                                                        \
        say(name, 0, (double)(count / 20 * 20));                                                                       \
    } while (0)

static void receive(void) {
    for (long i = 0; i < 2 * count; i++) {
        struct way *way = &ways[i % 2];
        must(way->sendmsg(way->ends[0], &message, 0) == (ssize_t)osd_op.n, "sendmsg");
        double from = now_ns();
        drain(way, way->ends[1], osd_op.n);
        way->spent[0] += now_ns() - from;
        must(way->sendmsg(way->ends[1], &answer_message, 0) == (ssize_t)reply.n, "sendmsg");
        from = now_ns();
        drain(way, way->ends[0], reply.n);
        way->spent[1] += now_ns() - from;
        // Ceph reads 4 KiB, and then the rest: "begin" and "rest"
        must(way->sendmsg(way->ends[0], &message, 0) == (ssize_t)osd_op.n, "sendmsg");
        from = now_ns();
        drain(way, way->ends[1], 4096);
        double middle = now_ns();
        drain(way, way->ends[1], osd_op.n - 4096);
        way->spent[3] += now_ns() - middle;
        way->spent[2] += middle - from;
        if (i % (40 * PAUSE_BATCHES) == 0) usleep(PAUSE_US);
    }
    static const char *const received[] = {"recv_osd_op", "recv_reply", "recv_osd_op_begin", "recv_osd_op_rest"};
    for (int i = 0; i < 4; i++) say(received[i], i, (double)count);
}

static void submit(int null) {
    io_context_t aio = NULL;
    must(io_setup(16, &aio) == 0, "io_setup");
    for (long i = 0; i < 2 * count; i++) {
        struct way *way = &ways[i % 2];
        struct iocb cb, *list[1] = {&cb};
        struct io_event done;
        io_prep_pwrite(&cb, null, sink, 4096, 8192);
        double from = now_ns();
        must(way->io_submit(aio, 1, list) == 1, "io_submit");
        double middle = now_ns();
        must(way->io_getevents(aio, 1, 1, &done, NULL) == 1, "io_getevents");
        way->spent[1] += now_ns() - middle;
        way->spent[0] += middle - from;
        if (i % (40 * PAUSE_BATCHES) == 0) usleep(PAUSE_US);
    }
    say("io_submit", 0, (double)count);
    say("io_getevents", 1, (double)count);
}

static void bare_events(void) {
    struct msgr_message event = {.tid = 7,
                                 .seq = 7,
                                 .flen = 4300,
                                 .type = 42,
                                 .op = 0x2201,
                                 .length = 4096,
                                 .object = "benchmark_data_host_12345_object678",
                                 .client = 4115,
                                 .client_tid = 7};
#define EVENT(name, ...) lttng_ust_tracepoint(cephshim, name, __VA_ARGS__)
#define ALONE(name, timed)                                                                                             \
    do {                                                                                                               \
        BATCHES(1, timed, )                                                                                            \
        printf("%s %.1f\n", name, ways[0].spent[0] / (double)(count / 20 * 20));                                       \
        ways[0].spent[0] = 0;                                                                                          \
    } while (0)
    ALONE("getppid", syscall(SYS_getppid));
    ALONE("bare_message", EVENT(msgr_tx_msg, 5, &event, 4115, 0); syscall(SYS_getppid));
    ALONE("bare_pair", EVENT(sysio_pwrite_enter, 5, 4096, 64); syscall(SYS_getppid); EVENT(sysio_pwrite_exit, 5, 64));
    ALONE("bare_short", syscall(SYS_getppid); EVENT(aio_complete, 64, 4096));
}

int main(int argc, char **argv) {
    int null = open("/dev/null", O_RDWR), zero = open("/dev/zero", O_RDWR), epfd = epoll_create1(0);
    pthread_t other;
    count = argc > 1 ? atol(argv[1]) : 100000;
    // Ceph has threads, and so has whatever loads LTTng-UST: in a process of one thread the C library skips what
    // cancellation needs
    must(pthread_create(&other, NULL, idle, NULL) == 0, "pthread_create");
    write_messages();
    find();
    connected(&ways[0]), connected(&ways[1]);
    char small[64] = "not a frame";

    MEASURE("sendmsg_osd_op", must(way->sendmsg(way->ends[0], &message, 0) == (ssize_t)osd_op.n, "sendmsg"),
            drain(way, way->ends[1], osd_op.n));
    MEASURE("send_reply", must(way->sendmsg(way->ends[1], &answer_message, 0) == (ssize_t)reply.n, "sendmsg"),
            drain(way, way->ends[0], reply.n));
    receive();
    MEASURE("send_not_ceph", must(way->send(way->plain[0], small, sizeof small, 0) == sizeof small, "send"),
            drain(way, way->plain[1], sizeof small));
    MEASURE("write_not_ceph", must(way->write(null, small, sizeof small) == sizeof small, "write"), );
    MEASURE("read_not_ceph", must(way->read(zero, small, sizeof small) == sizeof small, "read"), );
    MEASURE("pwrite", must(way->pwrite(null, small, sizeof small, 4096) == sizeof small, "pwrite"), );
    MEASURE("pread", must(way->pread(zero, small, sizeof small, 4096) == sizeof small, "pread"), );
    MEASURE("fdatasync", must(way->fdatasync(null) != 0, "fdatasync"), );
    MEASURE("epoll_wait", must(way->epoll_wait(epfd, (struct epoll_event[1]){{0}}, 1, 0) == 0, "epoll_wait"), );
    MEASURE("dup_close", must(way->close(way->dup(null)) == 0, "close"), );
    submit(null);
    bare_events();
    return 0;
}
