// SPDX-License-Identifier: MIT
// Waits of which the cause is planted, each in an op of its own (opline_tp.h; class: the name of the fault).
//   faults OUTER INNER DEVICE N FAULT...
// OUTER, INNER: mount points of ext4 file systems. DEVICE: a loop device that is written to. INNER's file system and
// DEVICE are on files of OUTER.
//
// The thread "victim" does the op. A helper thread plants the fault, looks until the victim sleeps, lets 6 ms pass, and
// lifts the fault. On a busy machine all this takes longer, but 6 ms at least are the fault's.
#define _GNU_SOURCE
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "opline_tp.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 64 };
static const long PLANTED_NS = 6000000;

static const char *outer, *inner, *device;
static int count, frozen = -1, pair[2];
static char *pages;  // page-aligned
static pid_t victim;
static sem_t begins, ended;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile int over;

static void check(int ok, const char *what) {
    if (ok) return;
    perror(what);
    exit(1);
}

static void nap(long ns) { nanosleep(&(struct timespec){ns / 1000000000, ns % 1000000000}, NULL); }

static int op_is_over(void) {
    int posted = 0;
    sem_getvalue(&ended, &posted);
    return posted;
}

// Until the thread sleeps or is stopped ('S', 'D', 'T'), and so long besides.
static void await_sleep(pid_t tid, long ns) {
    char path[64], text[256];
    snprintf(path, sizeof(path), "/proc/%d/stat", tid);
    for (char is = 'R'; is == 'R' && !op_is_over();) {
        nap(300000);
        FILE *f = fopen(path, "r");
        if (f && fgets(text, sizeof(text), f)) is = strrchr(text, ')')[2];
        if (f) fclose(f);
    }
    nap(ns);
}

static int read_name(const char *path, char name[64]) {
    FILE *f = fopen(path, "r");
    const int found = f && fgets(name, 64, f);
    if (f) fclose(f);
    return found;
}

static int open_in(const char *folder, const char *name, int flags) {
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    const int fd = open(path, O_RDWR | O_CREAT | flags, 0600);
    check(fd >= 0, path);
    return fd;
}

static int open_device(void) {
    const int fd = open(device, O_RDWR | O_DIRECT);
    check(fd >= 0, device);
    return fd;
}

static void write_page(int fd, long at) { check(pwrite(fd, pages, PAGE, at * PAGE) == PAGE, "pwrite"); }

// The file system of the loop device's file does not write: the loop's worker waits.
static void freeze(void) { check(ioctl(frozen, FIFREEZE, 0) == 0, "FIFREEZE"); }
// Until a worker of the kernel waits for that, or the op, which had nothing to write, is over.
static void await_worker(void) {
    char path[300], name[64];
    for (int found = 0; !found && !op_is_over(); nap(300000)) {
        DIR *proc = opendir("/proc");
        check(proc != NULL, "/proc");
        for (const struct dirent *of; !found && (of = readdir(proc));) {
            if (of->d_name[0] < '1' || of->d_name[0] > '9') continue;
            snprintf(path, sizeof(path), "/proc/%s/wchan", of->d_name);
            if (!read_name(path, name) || strncmp(name, "percpu", 6) != 0) continue;
            snprintf(path, sizeof(path), "/proc/%s/comm", of->d_name);
            found = read_name(path, name) && (!strncmp(name, "kworker", 7) || !strncmp(name, "loop", 4));
        }
        closedir(proc);
    }
}
static void thaw_if_frozen(void) { (void)ioctl(frozen, FITHAW, 0); }
static void thaw(void) { check(ioctl(frozen, FITHAW, 0) == 0, "FITHAW"); }

// ---- faults: prepare and act are the victim's, plant and lift the helper's ------------------------------------------

static int fd = -1;

static void act_timer(void) { nap(PLANTED_NS); }

static void plant_futex(void) { pthread_mutex_lock(&mutex); }
static void lift_futex(void) { pthread_mutex_unlock(&mutex); }
static void act_futex(void) {
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
}

static void prepare_pipe(void) { check(pipe(pair) == 0, "pipe"); }
static void lift_pipe(void) { check(write(pair[1], "x", 1) == 1, "write"); }
static void act_pipe(void) {
    char byte;
    check(read(pair[0], &byte, 1) == 1, "read");
}

static void prepare_direct(void) { fd = open_device(); }
static void act_direct(void) {
    static long at = 4096;
    write_page(fd, at++);
}

static void prepare_rwsem(void) { fd = open_in(outer, "rwsem", 0); }
static void act_rwsem(void) { write_page(fd, 0); }

// fsync of a file that is new and empty: its inode is in the journal's transaction, no page is to be written.
static void prepare_journal(void) {
    static int n;
    char name[32];
    if (fd >= 0) close(fd);
    snprintf(name, sizeof(name), "journal%d", n++);
    fd = open_in(inner, name, 0);
}
static void act_journal(void) { check(fsync(fd) == 0, "fsync"); }

static void prepare_page(void) {
    if (fd >= 0) close(fd);
    fd = open_in(inner, "page", 0);
    for (long i = 0; i < PAGES; ++i) write_page(fd, i);
    check(fsync(fd) == 0, "fsync");
    for (long i = 0; i < PAGES; ++i) write_page(fd, i);
}
static void act_page(void) {
    check(sync_file_range(fd, 0, PAGES * PAGE, SYNC_FILE_RANGE_WRITE) == 0, "sync_file_range");
    check(fdatasync(fd) == 0, "fdatasync");
}

static pid_t background;
static sem_t background_begins, background_ended;

// A write to the loop device in a thread of its own, so that a request is in flight.
static void *writes(void *unused) {
    const int to = open_device();
    prctl(PR_SET_NAME, "inflight");
    background = gettid();
    while (sem_wait(&background_begins) == 0 && !over) {
        write_page(to, 8000);
        sem_post(&background_ended);
    }
    return unused;
}

// The queue freezes, and stays frozen until the request in flight is done.
static void *switches(void *unused) {
    char path[64];
    static int n;
    snprintf(path, sizeof(path), "/sys/block/%s/queue/scheduler", strrchr(device, '/') + 1);
    prctl(PR_SET_NAME, "switcher");
    const int to = open(path, O_WRONLY);
    check(to >= 0, path);
    const char *name = n++ % 2 ? "none" : "mq-deadline";
    check(write(to, name, strlen(name)) > 0, "scheduler");
    close(to);
    return unused;
}

static pthread_t switcher;
static volatile pid_t switching;
static void *switch_told(void *unused) {
    switching = gettid();
    return switches(unused);
}

static void plant_frozen(void) {
    freeze();
    sem_post(&background_begins);
    while (!background) nap(100000);
    await_worker();
    switching = 0;
    pthread_create(&switcher, NULL, switch_told, NULL);
    while (!switching) nap(100000);
    await_sleep(switching, 1000000);
}
static void lift_frozen(void) {
    thaw();
    sem_wait(&background_ended);
    pthread_join(switcher, NULL);
}

// Another process, "stopper", stops this one, or freezes the file system.
enum { STOP = 1, FREEZE };
struct shared {
    volatile int wanted, over, tid, frozen;
};
static struct shared *shared;
static void freeze_for_worker(void) {
    freeze();
    shared->frozen = 1;
    await_worker();
    nap(PLANTED_NS);
    thaw();
    shared->wanted = shared->frozen = 0;
}
static void start_stopper(void) {
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    check(shared != MAP_FAILED, "mmap");
    const pid_t parent = getpid(), child = fork();
    check(child >= 0, "fork");
    if (child > 0) return;
    prctl(PR_SET_NAME, "stopper");
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (!shared->over) {
        nap(100000);
        if (!shared->wanted) continue;
        if (shared->wanted == FREEZE) {
            freeze_for_worker();
            continue;
        }
        kill(parent, SIGSTOP);
        await_sleep(shared->tid, PLANTED_NS);
        shared->wanted = 0;
        kill(parent, SIGCONT);
    }
    _exit(0);
}
static void act_stop(void) {
    shared->tid = gettid();
    shared->wanted = STOP;
    while (shared->wanted) {}
}

// The loop device's worker waits, and the victim for the worker.
static void thaw_worker(void) {
    await_worker();
    nap(PLANTED_NS);
    thaw();
}

// A real-time thread on the victim's CPU takes that away. The victim is one, too, so that nobody comes between them.
static sem_t hog_begins;
static void be_real_time(int priority) {
    const struct sched_param param = {.sched_priority = priority};
    check(pthread_setschedparam(pthread_self(), SCHED_FIFO, &param) == 0, "SCHED_FIFO");
}
static void *hogs(void *unused) {
    struct timespec now, began;
    prctl(PR_SET_NAME, "cpuhog");
    be_real_time(2);
    // It ends with the fault: a signal to the process would wake it, and it would take the CPU in the midst of another.
    for (int left = count; left > 0; --left) {
        check(sem_wait(&hog_begins) == 0, "sem_wait");
        clock_gettime(CLOCK_MONOTONIC, &began);
        do clock_gettime(CLOCK_MONOTONIC, &now);
        while ((now.tv_sec - began.tv_sec) * 1000000000 + now.tv_nsec - began.tv_nsec < PLANTED_NS);
    }
    return unused;
}
static void prepare_cpu(void) {
    pthread_t hog;
    cpu_set_t here;
    CPU_ZERO(&here);
    CPU_SET(sched_getcpu(), &here);
    check(sched_setaffinity(0, sizeof(here), &here) == 0, "sched_setaffinity");
    check(pthread_create(&hog, NULL, hogs, NULL) == 0 && pthread_detach(hog) == 0, "thread");
    be_real_time(1);
    nap(PLANTED_NS);  // the thread waits for its first turn
}
static void act_cpu(void) { sem_post(&hog_begins); }

#include "keeper.h"
#include "limits.h"

struct fault {
    const char *name;
    void (*prepare)(void);  // once
    void (*again)(void);    // before each op
    void (*plant)(void);
    void (*act)(void);
    void (*lift)(void);
    const char *helper;
    void (*end)(void);  // once, of the victim
};

static const struct fault faults[] = {
    {"timer", NULL, NULL, NULL, act_timer, NULL, NULL, NULL},
    {"futex", NULL, NULL, plant_futex, act_futex, lift_futex, "holder", NULL},
    {"pipe", prepare_pipe, NULL, NULL, act_pipe, lift_pipe, "sender", NULL},
    {"direct", prepare_direct, NULL, NULL, act_direct, NULL, NULL, NULL},
    {"rwsem", prepare_rwsem, NULL, freeze, act_rwsem, thaw, "freezer", NULL},
    {"journal", NULL, prepare_journal, freeze, act_journal, thaw_worker, "freezer", NULL},
    {"page", NULL, prepare_page, freeze, act_page, thaw_worker, "freezer", NULL},
    {"frozen", prepare_direct, NULL, plant_frozen, act_direct, lift_frozen, "freezer", NULL},
    {"cpu", prepare_cpu, NULL, NULL, act_cpu, NULL, NULL, NULL},
    {"inode", prepare_inode, NULL, plant_kept, act_inode, lift_kept, "freezer", NULL},
    {"mutex", prepare_mutex, NULL, plant_kept, act_mutex, lift_kept, "freezer", NULL},
    {"synced", prepare_synced, NULL, plant_kept, act_futex, lift_kept, "freezer", NULL},
    {"worker", prepare_direct, NULL, freeze, act_direct, thaw_worker, "freezer", NULL},
    {"odsync", prepare_odsync, NULL, freeze, act_odsync, thaw_worker, "freezer", end_odsync},
    {"reclaim", prepare_reclaim, again_reclaim, plant_reclaim, act_reclaim, lift_reclaim, NULL, end_reclaim},
    {"throttle", prepare_throttle, NULL, NULL, act_direct, NULL, NULL, NULL},
    {"punt", prepare_punt, NULL, freeze, act_punt, thaw, "freezer", end_punt},
    {"stop", NULL, NULL, NULL, act_stop, NULL, NULL, NULL},
};

static const struct fault *fault;

static void *does(void *unused) {
    static uint64_t key;
    prctl(PR_SET_NAME, "victim");
    victim = gettid();
    if (fault->prepare) fault->prepare();
    for (int i = 0; i < count; ++i) {
        if (fault->again) fault->again();
        sem_post(&ended);
        sem_wait(&begins);
        ++key;
        OPLINE_BEGIN(key, "planted", fault->name, 0, 0);
        fault->act();
        OPLINE_END(key, 0);
        sem_post(&ended);
    }
    if (fault->end) fault->end();
    return unused;
}

static void run(void) {
    pthread_t thread;
    if (fault->helper) prctl(PR_SET_NAME, fault->helper);
    pthread_create(&thread, NULL, does, NULL);
    for (int i = 0; i < count; ++i) {
        sem_wait(&ended);
        if (fault->plant) fault->plant();
        sem_post(&begins);
        if (fault->lift) {
            await_sleep(victim, PLANTED_NS);
            fault->lift();
        }
        sem_wait(&ended);
    }
    pthread_join(thread, NULL);
    leave_group();
    if (fd >= 0) close(fd);
    fd = -1;
    prctl(PR_SET_NAME, "faults");
}

int main(int argc, char **argv) {
    pthread_t thread;
    if (argc < 6) return 2;
    outer = argv[1], inner = argv[2], device = argv[3], count = atoi(argv[4]);
    pages = aligned_alloc(PAGE, PAGE);
    check(pages && (frozen = open(outer, O_RDONLY)) >= 0, outer);
    memset(pages, 1, PAGE);
    start_stopper();
    atexit(thaw_if_frozen);
    atexit(leave_group);
    pthread_create(&thread, NULL, writes, NULL);
    pthread_create(&thread, NULL, keeps, NULL);
    for (int i = 5; i < argc; ++i)
        for (size_t n = 0; n < sizeof(faults) / sizeof(*faults); ++n)
            if (!strcmp(faults[n].name, argv[i])) fault = &faults[n], run();
    shared->over = 1;
    return 0;
}
