// SPDX-License-Identifier: MIT
// A thread's ring: made at its first event in a recording, handed to the collector (collector.c), given up when the
// collector has closed it. The memory is both's: what was written is there whatever becomes of the process. System
// calls go past our own wrappers.
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "shim.h"

__thread struct event_ring *ring_own __attribute__((tls_model("initial-exec")));

#define ASK_AGAIN_NS 1000000000u  // after nobody listened
#define GIVEN_UP_NS 2000000000u   // full for so long: nobody takes out
#define REFUSED_NS 600000000000u  // the collector does not take this process' rings: its threads write by themselves
#define PATIENCE_US 50000         // the collector's queue of new rings is full

// where a collector may listen: beside the user's session daemon, beside the system's
static struct sockaddr_un places[2];
static uint64_t ask_again_ns;
static bool never;
static pthread_key_t key;
static bool has_key;

static void give_up(struct event_ring *ring) {
    ring_own = NULL;
    if (has_key) pthread_setspecific(key, NULL);
    __atomic_store_n(&ring->done, 1, __ATOMIC_RELEASE);
    munmap(ring, RING_MAPPED_BYTES);
}

// In a child of a traced process the ring is still the parent's.
static void thread_ends(void *ring) {
    if (!shim_ended) give_up(ring);
}

// Once, where the provider is loaded. A key whose values would be allocated by the C library is not used: an event may
// come from a signal handler.
void ring_begin_process(bool direct) {
    enum { INLINE_KEYS = 32 };
    never = direct;
    if (pthread_key_create(&key, thread_ends) == 0) {
        has_key = key < INLINE_KEYS;
        if (!has_key) pthread_key_delete(key);
    }
    const char *home = getenv("LTTNG_HOME");
    if (!home) home = getenv("HOME");
    for (int i = 0; i < 2; i++) places[i].sun_family = AF_UNIX;
    if (home) {
        int n = snprintf(places[0].sun_path, sizeof places[0].sun_path, "%s/.lttng/" RING_SOCKET, home);
        if (n >= (int)sizeof places[0].sun_path) places[0].sun_path[0] = 0;
    }
    snprintf(places[1].sun_path, sizeof places[1].sun_path, "/run/lttng/" RING_SOCKET);
}

static bool hand_over(int fd) {
    int to = (int)syscall(SYS_socket, AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (to < 0) return false;
    struct timeval patience = {.tv_usec = PATIENCE_US};
    setsockopt(to, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {.head = {.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
    memcpy(CMSG_DATA(&control.head), &fd, sizeof fd);
    uint32_t version = RING_VERSION;
    struct iovec iov = {&version, sizeof version};
    bool handed = false;
    for (int i = 0; i < 2 && !handed; i++) {
        if (!places[i].sun_path[0]) continue;
        struct msghdr message = {.msg_name = &places[i],
                                 .msg_namelen = sizeof places[i],
                                 .msg_iov = &iov,
                                 .msg_iovlen = 1,
                                 .msg_control = &control,
                                 .msg_controllen = sizeof control};
        handed = syscall(SYS_sendmsg, to, &message, MSG_NOSIGNAL) == (long)sizeof version;
    }
    syscall(SYS_close, to);
    return handed;
}

static struct event_ring *make(void) {
    int fd = memfd_create("opline-ceph", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) return NULL;
    struct event_ring *ring = NULL;
    if (ftruncate(fd, RING_HEADER_BYTES + RING_BYTES) == 0 &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        ring = ring_map(fd);
    if (ring) {
        ring->version = RING_VERSION;
        ring->pid = (int32_t)getpid();
        ring->tid = (int32_t)syscall(SYS_gettid);
        prctl(PR_GET_NAME, ring->name);
        // Linux 5.14; else page by page, later
        madvise((char *)ring + RING_HEADER_BYTES, RING_NEAR_BYTES, MADV_POPULATE_WRITE);
        if (!hand_over(fd)) {
            munmap(ring, RING_MAPPED_BYTES);
            ring = NULL;
        }
    }
    syscall(SYS_close, fd);
    return ring;
}

// The thread's ring is none, or closed.
struct event_ring *ring_attach(void) {
    if (never) return NULL;
    int errno_before = errno;
    struct event_ring *ring = ring_own;
    uint64_t now = ring_now();
    if (ring) {
        bool refused = __atomic_load_n(&ring->closed, __ATOMIC_RELAXED) == RING_REFUSED;
        give_up(ring);
        __atomic_store_n(&ask_again_ns, refused ? now + REFUSED_NS : 0, __ATOMIC_RELAXED);
    }
    ring = NULL;
    if (now >= __atomic_load_n(&ask_again_ns, __ATOMIC_RELAXED)) {
        ring = make();
        if (!ring) __atomic_store_n(&ask_again_ns, now + ASK_AGAIN_NS, __ATOMIC_RELAXED);
    }
    if (ring) {
        ring_own = ring;
        if (has_key) pthread_setspecific(key, ring);
    }
    errno = errno_before;
    return ring;
}

// The record that found no room is counted already. A collector that has ended without a word takes nothing out any
// more.
void ring_full(struct event_ring *ring) {
    static __thread uint64_t since_ns, tail;
    uint64_t now = ring_now(), tail_now = __atomic_load_n(&ring->tail, __ATOMIC_RELAXED);
    if (since_ns == 0 || tail_now != tail) {
        since_ns = now;
        tail = tail_now;
    } else if (now - since_ns > GIVEN_UP_NS) {
        since_ns = 0;
        give_up(ring);
    }
}
