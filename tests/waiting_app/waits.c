// SPDX-License-Identifier: MIT
// Waits of which the cause is known. waits WHAT FILE N: a line "WHAT TID BEGIN END" (CLOCK_MONOTONIC ns) for each of N
// waits. `serve` answers on the abstract socket FILE until its input ends, and says its thread first. Who ends a wait
// first looks whether the other thread sleeps, so a busy machine makes no other waits. They take 6 ms: all of such long
// ones have stacks.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 1000 };

static long times[MOST][2];
static int count, tid;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile int held, waits, stop;
static int pair[2];

static long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000L + t.tv_nsec;
}

static void sleep_ms(long ms) { nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL); }

static void check(int ok, const char *what) {
    if (ok) return;
    perror(what);
    exit(1);
}

static void add(long begin) {
    times[count][0] = begin;
    times[count++][1] = now();
}

// Until the first thread of a process is in that state, and a while longer.
static void await_state(pid_t pid, char state) {
    char path[64], text[256] = "";
    snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, pid);
    for (char is = 0; is != state;) {
        sleep_ms(1);
        FILE *f = fopen(path, "r");
        check(f && fgets(text, sizeof(text), f), path);
        fclose(f);
        is = strrchr(text, ')')[2];
    }
    sleep_ms(6);
}

static void *holder(void *unused) {
    prctl(PR_SET_NAME, "holder");
    while (!stop) {
        pthread_mutex_lock(&mutex);
        held = 1;
        while (!waits && !stop) sleep_ms(1);
        if (!stop) await_state(getpid(), 'S');
        held = waits = 0;
        pthread_mutex_unlock(&mutex);
        while (!waits && !stop) sleep_ms(1);  // the other has it, and asks for the next
        waits = 0;
    }
    return unused;
}

static void *answers(void *name) {
    struct ucred peer;
    socklen_t bytes = sizeof(peer);
    prctl(PR_SET_NAME, name);
    check(getsockopt(pair[1], SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0, "SO_PEERCRED");
    for (char byte; read(pair[1], &byte, 1) == 1;) {
        await_state(peer.pid, 'S');
        check(write(pair[1], &byte, 1) == 1, "write");
    }
    return NULL;
}

static void ask(int fd, int n) {
    for (int i = 0; i < n; ++i) {
        char byte = 1;
        const long begin = now();
        check(write(fd, &byte, 1) == 1 && read(fd, &byte, 1) == 1, "ask");
        add(begin);
    }
}

static socklen_t named(struct sockaddr_un *to, const char *name) {
    memset(to, 0, sizeof(*to));
    to->sun_family = AF_UNIX;
    snprintf(to->sun_path + 1, sizeof(to->sun_path) - 1, "%s", name);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
}

static void serve(const char *name) {
    struct sockaddr_un at;
    const socklen_t bytes = named(&at, name);
    const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    check(bind(listener, (struct sockaddr *)&at, bytes) == 0 && listen(listener, 1) == 0, "listen");
    printf("%d\n", gettid());
    fflush(stdout);
    pair[1] = accept(listener, NULL, NULL);
    answers("outside");
}

static void ask_outside(const char *name, int n) {
    struct sockaddr_un to;
    const socklen_t bytes = named(&to, name);
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    check(connect(fd, (struct sockaddr *)&to, bytes) == 0, "connect");
    ask(fd, n);
}

static void wait_for_mutex(int n) {
    pthread_t thread;
    pthread_create(&thread, NULL, holder, NULL);
    while (count < n) {
        while (!held) sleep_ms(1);
        const long begin = now();
        waits = 1;
        pthread_mutex_lock(&mutex);
        add(begin);
        pthread_mutex_unlock(&mutex);
        waits = 1;
        while (waits) sleep_ms(1);
    }
    stop = 1;
    pthread_join(thread, NULL);
}

static void stop_other(int n) {
    prctl(PR_SET_NAME, "stopper");
    tid = fork();
    while (tid == 0) {}
    for (int i = 0; i < n; ++i) {
        check(kill(tid, SIGSTOP) == 0 && waitpid(tid, NULL, WUNTRACED) == tid, "stop");
        const long begin = now();
        sleep_ms(6);
        add(begin);
        kill(tid, SIGCONT);
        sleep_ms(1);
    }
    kill(tid, SIGKILL);
}

static void write_directly(const char *path, int n) {
    void *page = aligned_alloc(4096, 4096);
    const int fd = open(path, O_RDWR | O_DIRECT);
    check(fd >= 0 && page, path);
    memset(page, 1, 4096);
    for (int i = 0; i < n; ++i) {
        const long begin = now();
        check(pwrite(fd, page, 4096, i * 4096L) == 4096, "pwrite");
        add(begin);
    }
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    const char *what = argv[1], *file = argv[2];
    const int n = atoi(argv[3]) < MOST ? atoi(argv[3]) : MOST;
    pthread_t thread;
    tid = gettid();
    if (!strcmp(what, "serve")) serve(file);
    else if (!strcmp(what, "outside")) ask_outside(file, n);
    else if (!strcmp(what, "futex")) wait_for_mutex(n);
    else if (!strcmp(what, "stop")) stop_other(n);
    else if (!strcmp(what, "direct")) write_directly(file, n);
    else if (!strcmp(what, "timer"))
        for (int i = 0; i < n; ++i) {
            const long begin = now();
            sleep_ms(6);
            add(begin);
        }
    else if (!strcmp(what, "socket")) {
        check(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0, "socketpair");
        pthread_create(&thread, NULL, answers, "server");
        ask(pair[0], n);
    } else return 2;
    for (int i = 0; i < count; ++i) printf("%s %d %ld %ld\n", what, tid, times[i][0], times[i][1]);
    return 0;
}
