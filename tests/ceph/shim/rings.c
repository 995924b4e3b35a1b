// SPDX-License-Identifier: MIT
// What threads' rings must survive: `rings threads N CALLS` (many threads that end at once), `rings forks CALLS` (a
// fork in between, an exec at the end), `rings killed FILE` (SIGKILL in the midst of calls; FILE has per thread its
// number and how many calls had returned), `rings locked CALLS` (a fork while another thread holds LTTng's locks; the
// child exits), `rings flood CALLS IN OUT` (says "r" on the fifo OUT when it is ready, waits
// for a byte from IN, makes its calls as fast as it can, says "f", waits for another one). A call is a pwrite() to
// /dev/null; its offset is its number.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int null;
static long calls;

static void must(int ok, const char *what) {
    if (!ok) perror(what), exit(1);
}

static void write_at(long offset) { must(pwrite(null, "x", 1, offset) == 1, "pwrite"); }

static void *some(void *first) {
    for (long i = 0; i < calls; i++) write_at((long)(intptr_t)first + i);
    return NULL;
}

enum { KILLED_THREADS = 4 };
struct progress {
    volatile int64_t tid, returned;
};

static void *endless(void *argument) {
    struct progress *p = argument;
    p->tid = syscall(SYS_gettid);
    for (long i = 0;; i++) {
        write_at(i);
        p->returned = i + 1;
        if (i % 100 == 99) usleep(1000);
    }
    return NULL;
}

static void killed(const char *path) {
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    must(fd >= 0 && ftruncate(fd, 4096) == 0, path);
    struct progress *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    pthread_t t;
    for (int i = 0; i < KILLED_THREADS; i++) must(pthread_create(&t, NULL, endless, &p[i]) == 0, "pthread_create");
    for (int i = 0; i < KILLED_THREADS; i++)
        while (p[i].returned < 1000) usleep(1000);
    kill(getpid(), SIGKILL);
}

static void *forking(void *nothing) {
    some(nothing);
    pid_t child = fork();
    if (child == 0) {
        some((void *)(intptr_t)(10 * calls));  // a child that executes nothing is not traced
        pthread_exit(NULL);
    }
    int status;
    must(waitpid(child, &status, 0) == child && status == 0, "child");
    some((void *)(intptr_t)calls);
    return nothing;
}

static void forks(char **argv) {
    pthread_t t;
    must(pthread_create(&t, NULL, forking, NULL) == 0 && pthread_join(t, NULL) == 0, "pthread_create");
    if (argv[3]) execl(argv[0], argv[0], "forks", argv[2], (char *)NULL);
}

static atomic_int holds;

static void *holding(void *lttng) {
    sigset_t signals;
    void (*before)(sigset_t *) = dlsym(lttng, "lttng_ust_before_fork");
    void (*after)(sigset_t *) = dlsym(lttng, "lttng_ust_after_fork_parent");
    before(&signals);
    holds = 1;
    usleep(200000);
    after(&signals);
    return NULL;
}

static void locked(void) {
    void *lttng = dlopen("liblttng-ust.so.1", RTLD_NOW | RTLD_NOLOAD);
    must(lttng != NULL, "liblttng-ust.so.1");
    some((void *)0);
    pthread_t t;
    must(pthread_create(&t, NULL, holding, lttng) == 0, "pthread_create");
    while (!holds) usleep(1000);
    pid_t child = fork();
    if (child == 0) exit(0);
    int status;
    must(waitpid(child, &status, 0) == child && status == 0 && pthread_join(t, NULL) == 0, "child");
    some((void *)(intptr_t)calls);
}

static void flood(const char *in, const char *out) {
    int from = open(in, O_RDONLY), to = open(out, O_WRONLY);
    char c;
    write_at(0);
    must(write(to, "r", 1) == 1 && read(from, &c, 1) == 1, "fifo");
    calls--;
    some((void *)(intptr_t)1);
    must(write(to, "f", 1) == 1 && read(from, &c, 1) == 1, "fifo");
}

int main(int argc, char **argv) {
    null = open("/dev/null", O_WRONLY);
    must(null >= 0 && argc > 2, "rings");
    calls = atol(argv[argc > 3 && strcmp(argv[1], "threads") == 0 ? 3 : 2]);
    if (strcmp(argv[1], "killed") == 0) killed(argv[2]);
    if (strcmp(argv[1], "forks") == 0) forks(argv);
    if (strcmp(argv[1], "locked") == 0) locked();
    if (strcmp(argv[1], "flood") == 0) flood(argv[3], argv[4]);
    if (strcmp(argv[1], "threads") == 0) {
        enum { MOST = 256 };
        pthread_t t[MOST];
        int n = atoi(argv[2]);
        for (int i = 0; i < n && i < MOST; i++) must(pthread_create(&t[i], NULL, some, NULL) == 0, "pthread_create");
        for (int i = 0; i < n && i < MOST; i++) pthread_join(t[i], NULL);
    }
    return 0;
}
