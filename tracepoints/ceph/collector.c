// SPDX-License-Identifier: MIT
// The shim's collector: takes records out of all threads' rings, puts them in the order of their times, and passes them
// on as events of the provider `cephring`. opline-ceph-collector SOCKET [UID...]; `opline record` starts it
// (opline/applications/ceph/ringsource.py) and the contract is there.
//
// Order. A thread says that it is writing before it reads the clock. So when the collector reads the clock, looks for
// new rings, and then finds nobody writing, no record with an earlier time can still come; of a ring whose thread is
// writing that holds up to its last record. Each ring is in order by itself; the collector merges them up to the
// earliest of these times. It holds back 1 ms more: a store becomes visible to others later than the clock was read,
// and clocks differ between processors.
//
// Whose. Anybody can send to the socket; senders.h says whose rings are taken, of one process and in all only so many.
// A ring that is not taken is closed: its thread goes on by itself. What a ring says to have lost is believed as far as
// there was time for it.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "listener.h"
#include "pass.h"
#include "senders.h"

enum {
    PERIOD_MS = 10,
    IDLE_MS = 50,  // no rings
    HOLD_BACK_NS = 1000000,
    SETTLE_NS = 20000000,        // LTTng enables the events one after the other
    ALIVE_EVERY_NS = 100000000,  // how often it is asked whether a process is
    STUCK_NS = 500000000,        // a thread that is writing for so long is not waited for
    FINISH_WITHIN_NS = 500000000,
    MOST_OF_A_PROCESS = 4096,  // rings: one per thread
    MOST_RINGS = 16384,
    MOST_AT_ONCE = 1024,   // new rings in one round: who sends more does not hold up the others
    LEAST_RECORD_NS = 10,  // a record can't be lost faster
};
#define BEFORE_TAKEN_NS 10000000000u  // a ring may have been written for so long when it is taken

struct source {
    struct event_ring *ring;
    int process;  // pidfd, -1: not known
    pid_t pid;
    uint64_t since_ns;  // it was taken
    bool gone;          // the process has ended
    struct ring_origin origin;
    uint64_t tail, head;            // what is in our hands: [tail, head)
    uint64_t base;                  // where it lies
    uint64_t next_ns;               // time of the record at tail
    struct ring_record next;        // its header as it was checked: the writer could change it afterwards
    uint64_t last_ns;               // of the last one that was taken out
    uint64_t bound_ns;              // everything up to here is in our hands
    uint64_t stuck_head, stuck_ns;  // it is writing at this place, since then
    uint32_t lost_seen;
};

static struct {
    uint64_t sent, not_enabled, lost_ring, lost_killed, broken, late, rings, most_bytes, most_rings, rounds, refused;
} counts;

static struct source *sources;
static size_t source_count, source_room;
static size_t *heap;  // of sources with something in hand, the earliest first
static size_t heap_count;
static uint64_t sent_ns;

static uint64_t clock_ns(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

// -- rings ------------------------------------------------------------------------------------------------------------

static struct event_ring *map_sealed(int fd) {
    struct stat s;
    if (fstat(fd, &s) || s.st_size != RING_HEADER_BYTES + RING_BYTES) return NULL;
    // sealed: a process that made it shorter would end us
    int seals = fcntl(fd, F_GET_SEALS);  // -1: a file, which can't be sealed
    if (seals < 0 || !(seals & F_SEAL_SHRINK)) return NULL;
    return ring_map(fd);
}

static bool has_room(pid_t pid) {
    if (source_count >= MOST_RINGS) return false;
    size_t of_process = 0;
    for (size_t i = 0; i < source_count; i++) of_process += sources[i].pid == pid;
    if (of_process >= MOST_OF_A_PROCESS) return false;
    if (source_count < source_room) return true;
    size_t room = source_room ? source_room * 2 : 64;
    struct source *more = realloc(sources, room * sizeof *more);
    if (more) sources = more;
    size_t *places = more ? realloc(heap, room * sizeof *places) : NULL;
    if (!places) return false;
    heap = places;
    source_room = room;
    return true;
}

static void adopt(int fd, const struct ucred *who) {
    struct event_ring *ring = map_sealed(fd);
    if (!ring || !is_welcome(who) || !has_room(who->pid)) {
        counts.refused++;
        if (!ring) return;
        __atomic_store_n(&ring->closed, RING_REFUSED, __ATOMIC_RELEASE);
        munmap(ring, RING_MAPPED_BYTES);
        return;
    }
    struct source *s = &sources[source_count++];
    *s = (struct source){
        .ring = ring, .process = who->pid > 0 ? (int)syscall(SYS_pidfd_open, who->pid, 0) : -1, .pid = who->pid};
    s->since_ns = clock_ns(CLOCK_MONOTONIC);
    s->origin = (struct ring_origin){.pid = ring->pid, .tid = ring->tid};
    memcpy(s->origin.name, ring->name, sizeof s->origin.name);
    s->origin.name[sizeof s->origin.name - 1] = 0;
    counts.rings++;
    if (source_count > counts.most_rings) counts.most_rings = source_count;
}

static void receive(int listener) {
    for (int i = 0; i < MOST_AT_ONCE; i++) {
        struct offer offer;
        if (!next_offer(listener, &offer)) return;
        if (offer.fd < 0) continue;
        if (offer.version == RING_VERSION) adopt(offer.fd, &offer.who);
        close(offer.fd);
    }
}

static void tell_lost(struct source *s, uint64_t time_ns, uint64_t count, const char *why) {
    s->origin.time_ns = time_ns;
    pass_lost(&s->origin, count, why);
}

// The ring says that it has lost up to `lost`.
static void note_lost(struct source *s, uint32_t lost, uint64_t time_ns) {
    uint32_t more = lost - s->lost_seen;
    if (more == 0 || more >= 1u << 31) return;
    s->lost_seen = lost;
    if (more > (clock_ns(CLOCK_MONOTONIC) - s->since_ns + BEFORE_TAKEN_NS) / LEAST_RECORD_NS) {
        counts.broken++;
        tell_lost(s, time_ns, 1, "broken");
        return;
    }
    counts.lost_ring += more;
    tell_lost(s, time_ns, more, "ring");
}

static void release(size_t i) {
    struct source *s = &sources[i];
    if (s->process >= 0) close(s->process);
    munmap(s->ring, RING_MAPPED_BYTES);
    sources[i] = sources[--source_count];
}

static void look_who_lives(void) {
    for (size_t i = 0; i < source_count; i++) {
        struct pollfd p = {.fd = sources[i].process, .events = POLLIN};
        if (p.fd >= 0 && poll(&p, 1, 0) > 0) sources[i].gone = true;
    }
}

// -- records ----------------------------------------------------------------------------------------------------------

static const char *record_at(const struct source *s) {
    return (const char *)s->ring + RING_HEADER_BYTES + (s->tail - s->base) % RING_BYTES;
}

// The time of the next record; false if there is none, or none that makes sense: then all that is there is given up.
static bool look_at_next(struct source *s) {
    if (s->tail == s->head) return false;
    struct ring_record r;
    memcpy(&r, record_at(s), sizeof r);
    uint64_t bytes = (uint64_t)r.words * 8;
    if (bytes < sizeof r || bytes > RING_RECORD_BYTES || bytes > s->head - s->tail || r.time_ns < s->last_ns) {
        counts.broken++;
        tell_lost(s, s->last_ns > sent_ns ? s->last_ns : sent_ns, 1, "broken");
        s->tail = s->head;
        __atomic_store_n(&s->ring->tail, s->tail, __ATOMIC_RELEASE);
        return false;
    }
    s->next_ns = r.time_ns;
    s->next = r;
    return true;
}

static void pass_next(struct source *s) {
    static _Alignas(8) char copy[RING_RECORD_BYTES];  // nobody changes it while it is looked at
    size_t bytes = (size_t)s->next.words * 8;
    memcpy(copy, record_at(s), bytes);
    if (s->next_ns < sent_ns) counts.late++;
    else sent_ns = s->next_ns;
    note_lost(s, s->next.lost, s->next_ns);
    s->origin.time_ns = s->next_ns;
    s->origin.cpu = s->next.cpu;
    switch (pass_record(&s->origin, copy, bytes)) {
    case PASSED: counts.sent++; break;
    case NOT_ENABLED: counts.not_enabled++; break;
    case BROKEN:
        counts.broken++;
        tell_lost(s, s->next_ns, 1, "broken");
        break;
    }
    s->last_ns = s->next_ns;
    s->tail += bytes;
    __atomic_store_n(&s->ring->tail, s->tail, __ATOMIC_RELEASE);
}

// What is in the ring now is in our hands; up to when it is all.
static void take(struct source *s, uint64_t now) {
    bool writing = __atomic_load_n(&s->ring->writing, __ATOMIC_ACQUIRE) != 0;
    uint64_t head = __atomic_load_n(&s->ring->head, __ATOMIC_ACQUIRE);
    if (head - s->tail > RING_BYTES || head % 8) head = s->tail;  // no such place
    // it changes before the first record that lies there, and when nothing is left to be taken out
    if (s->tail == s->head) s->base = __atomic_load_n(&s->ring->base, __ATOMIC_RELAXED);
    s->head = head;
    if (head - s->tail > counts.most_bytes) counts.most_bytes = head - s->tail;
    if (writing && s->gone) {
        writing = false;
        __atomic_store_n(&s->ring->writing, 0, __ATOMIC_RELAXED);
        counts.lost_killed++;
        tell_lost(s, now, 1, "killed");
    }
    if (!writing) {
        s->bound_ns = now;
        s->stuck_ns = 0;
        return;
    }
    if (s->stuck_ns == 0 || s->stuck_head != head) {
        s->stuck_ns = now;
        s->stuck_head = head;
    } else if (now - s->stuck_ns > STUCK_NS) {
        s->bound_ns = now;
    }
}

static void sink_down(size_t i) {
    for (;;) {
        size_t least = i, left = 2 * i + 1;
        for (size_t k = left; k < left + 2 && k < heap_count; k++) {
            if (sources[heap[k]].next_ns < sources[heap[least]].next_ns) least = k;
        }
        if (least == i) return;
        size_t other = heap[i];
        heap[i] = heap[least];
        heap[least] = other;
        i = least;
    }
}

static void send_until(uint64_t limit_ns) {
    heap_count = 0;
    for (size_t i = 0; i < source_count; i++) {
        if (look_at_next(&sources[i])) heap[heap_count++] = i;
    }
    for (size_t i = heap_count; i-- > 0;) sink_down(i);
    while (heap_count > 0 && sources[heap[0]].next_ns <= limit_ns) {
        struct source *s = &sources[heap[0]];
        pass_next(s);
        if (!look_at_next(s)) heap[0] = heap[--heap_count];
        sink_down(0);
    }
}

// One look at everything. False: a thread was writing.
static bool round_of(int listener, uint64_t hold_back_ns) {
    uint64_t now = clock_ns(CLOCK_MONOTONIC), bound = now;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    counts.rounds++;
    receive(listener);
    for (size_t i = 0; i < source_count; i++) {
        take(&sources[i], now);
        if (sources[i].bound_ns < bound) bound = sources[i].bound_ns;
    }
    if (bound > hold_back_ns) send_until(bound - hold_back_ns);
    for (size_t i = source_count; i-- > 0;) {
        struct source *s = &sources[i];
        if (s->tail != s->head) continue;
        uint64_t head = __atomic_load_n(&s->ring->head, __ATOMIC_ACQUIRE);
        if (head == s->head) note_lost(s, (uint32_t)__atomic_load_n(&s->ring->lost, __ATOMIC_RELAXED), sent_ns);
        bool ended = s->gone || __atomic_load_n(&s->ring->done, __ATOMIC_ACQUIRE);
        // what was written before it ended is in `head` now
        if (ended && __atomic_load_n(&s->ring->head, __ATOMIC_ACQUIRE) == s->head && s->bound_ns == now) release(i);
    }
    return bound == now;
}

// From here on every thread does without its ring; what it has written until then is passed on, and the memory given
// back.
static void finish(int listener, const char *path) {
    unlink(path);
    uint64_t until = clock_ns(CLOCK_MONOTONIC) + FINISH_WITHIN_NS;
    receive(listener);
    for (size_t i = 0; i < source_count; i++) __atomic_store_n(&sources[i].ring->closed, RING_CLOSED, __ATOMIC_RELEASE);
    do {
        usleep(1000);
        look_who_lives();
    } while (!round_of(listener, 0) && clock_ns(CLOCK_MONOTONIC) < until);
    send_until(UINT64_MAX);
    for (size_t i = 0; i < source_count; i++) {
        struct event_ring *ring = sources[i].ring;
        note_lost(&sources[i], (uint32_t)__atomic_load_n(&ring->lost, __ATOMIC_RELAXED), sent_ns);
        __atomic_store_n(&ring->closed, RING_CLOSED, __ATOMIC_RELEASE);
        if (__atomic_load_n(&ring->head, __ATOMIC_ACQUIRE) == sources[i].head)
            madvise((char *)ring + RING_HEADER_BYTES, RING_BYTES, MADV_REMOVE);
    }
}

// -- life -------------------------------------------------------------------------------------------------------------

static int fail(const char *what) {
    printf("{\"error\": \"%s: %s\"}\n", what,
           errno == EADDRINUSE ? "another recording has one, and with it the shim's events" : strerror(errno));
    return 1;
}

int main(int argc, char **argv) {
    pid_t recorder = getppid();
    if (argc < 2 || !senders_begin(recorder, argv + 2)) return 2;
    prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0);
    if (getppid() != recorder) return 1;
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {  // one for each thread's process
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    sigset_t ending;
    sigemptyset(&ending);
    sigaddset(&ending, SIGTERM);
    signal(SIGINT, SIG_IGN);
    sigprocmask(SIG_BLOCK, &ending, NULL);
    struct pollfd wait[2] = {{.fd = listen_at(argv[1]), .events = POLLIN},
                             {.fd = signalfd(-1, &ending, SFD_CLOEXEC), .events = POLLIN}};
    if (wait[0].fd < 0) return fail("no socket for threads' rings");
    printf("{\"ready\": true}\n");
    fflush(stdout);
    uint64_t enabled_ns = 0, alive_ns = 0;
    while (!(wait[1].revents & POLLIN)) {
        uint64_t now = clock_ns(CLOCK_MONOTONIC);
        if (enabled_ns == 0 && pass_enabled()) enabled_ns = now;
        if (now - alive_ns > ALIVE_EVERY_NS) {
            look_who_lives();
            alive_ns = now;
        }
        if (enabled_ns && now - enabled_ns > SETTLE_NS) round_of(wait[0].fd, HOLD_BACK_NS);
        else receive(wait[0].fd);
        if (poll(wait, 2, source_count || !enabled_ns ? PERIOD_MS : IDLE_MS) < 0 && errno != EINTR) break;
    }
    const uint64_t end_ns = clock_ns(CLOCK_MONOTONIC);
    finish(wait[0].fd, argv[1]);
    printf(
        "{\"sent\": %lu, \"not_enabled\": %lu, \"lost_ring\": %lu, \"lost_killed\": %lu, \"broken\": %lu, \"late\": "
        "%lu, \"rings\": %lu, "
        "\"most_rings\": %lu, \"most_bytes\": %lu, \"rounds\": %lu, \"refused\": %lu, \"cpu_ns\": %lu, "
        "\"end_ns\": %lu}\n",
        counts.sent, counts.not_enabled, counts.lost_ring, counts.lost_killed, counts.broken, counts.late, counts.rings,
        counts.most_rings, counts.most_bytes, counts.rounds, counts.refused, clock_ns(CLOCK_PROCESS_CPUTIME_ID),
        end_ns);
    return 0;
}
