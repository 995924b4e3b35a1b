/* SPDX-License-Identifier: MIT
 * Each of its steps passes an LTTng tracepoint (provider `twin`) and, right behind it, a USDT probe (provider `probed`)
 * with the same arguments. A process and its child each do COUNT operations: one thread submits, another one serves.
 *   usage: probed COUNT [--wait]      with --wait: says its number, and goes on when it can read a line
 */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "twin_tp.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sdt.h"

USDT_SEMAPHORE(probed, submit);
USDT_SEMAPHORE(probed, start);
USDT_SEMAPHORE(probed, finish);

struct inner {
    long unused;
    int delta;
    char *name;
};
struct request {
    long id;
    struct inner *inner;
};

static char name[] = "a request";
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct request *next;
static long served;          /* requests, of this process */
static unsigned long passed; /* places whose semaphore was up */

__attribute__((noinline)) int serve_request(struct request *request, int factor) {
    __asm__ volatile("" : "+m"(served));
    served++;
    return (int)(-request->id) * factor;
}

static void *worker(void *argument) {
    for (long i = 0; i < (long)argument; i++) {
        pthread_mutex_lock(&mutex);
        while (!next) pthread_cond_wait(&changed, &mutex);
        struct request *request = next;
        lttng_ust_tracepoint(twin, start, request->id);
        if (probed_start_semaphore) passed++, ({ USDT(probed, start, "-8@%0", "m"(request->id)); });
        serve_request(request, 3);
        lttng_ust_tracepoint(twin, finish, request->id);
        if (probed_finish_semaphore) passed++, ({ USDT(probed, finish, "-8@%0", "r"(request->id)); });
        next = NULL;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

static void run(long first, long count) {
    pthread_t thread;
    struct inner inner = {0, 0, name};
    struct request request = {0, &inner};
    pthread_create(&thread, NULL, worker, (void *)count);
    for (long i = first; i < first + count; i++) {
        pthread_mutex_lock(&mutex);
        request.id = i;
        inner.delta = -(int)i;
        lttng_ust_tracepoint(twin, submit, i, name, inner.delta);
        if (probed_submit_semaphore)
            passed++,
                ({ USDT(probed, submit, "-8@%0 8@%1 -4@%2 -4@%3", "r"(i), "r"(name), "m"(inner.delta), "n"(-5)); });
        next = &request;
        pthread_cond_broadcast(&changed);
        while (next) pthread_cond_wait(&changed, &mutex);
        pthread_mutex_unlock(&mutex);
    }
    pthread_join(thread, NULL);
}

int main(int argc, char **argv) {
    long count = argc > 1 ? atol(argv[1]) : 1;
    if (argc > 2 && strcmp(argv[2], "--wait") == 0) {
        printf("%d\n", getpid());
        fflush(stdout);
        if (getchar() == EOF) return 1;
    }
    pid_t child = fork();
    run(child == 0 ? 1000000 : 0, count);
    if (child == 0) _exit(passed ? 0 : 3);
    int status = 0;
    waitpid(child, &status, 0);
    printf("%lu %d\n", passed, WEXITSTATUS(status));
    return 0;
}
