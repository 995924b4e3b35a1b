// SPDX-License-Identifier: MIT
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <unistd.h>

#include "steps.h" /* of one of the folders: -Imacros */

struct job {
    long id;
    char data[4096];
};

static struct job job;
static sem_t queued, finished;
static int file;

__attribute__((noinline)) void job_queue(struct job *j) {
    STEP_QUEUED(j);
    sem_post(&queued);
}

__attribute__((noinline)) void job_write(struct job *j) {
    STEP_STARTED(j);
    if (pwrite(file, j->data, sizeof j->data, 0) < 0 || fdatasync(file) < 0) exit(1);
}

__attribute__((noinline)) void job_done(struct job *j) {
    STEP_DONE(j);
    sem_post(&finished);
}

static void *worker(void *unused) {
    for (;;) {
        sem_wait(&queued);
        job_write(&job);
        job_done(&job);
    }
    return unused;
}

int main(int argc, char **argv) {
    pthread_t thread;
    if (argc < 3 || (file = open(argv[2], O_RDWR | O_CREAT, 0600)) < 0) return 2;
    sem_init(&queued, 0, 0);
    sem_init(&finished, 0, 0);
    pthread_create(&thread, NULL, worker, NULL);
    for (job.id = 1; job.id <= atol(argv[1]); job.id++) {
        job_queue(&job);
        sem_wait(&finished);
    }
    return 0;
}
