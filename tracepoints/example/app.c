/* SPDX-License-Identifier: MIT */
/*
 * A small application with opline's tracepoints: the main thread hands jobs to a worker, which writes a file.
 *
 *   cc -I.. -o app app.c ../opline_tp.c -llttng-ust -ldl -lpthread
 *   opline record -o run --model generic -- ./app FILE [JOBS]
 *
 * One job structure is used again and again: its address is the op's key each time.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "opline_tp.h"

struct job {
    int fd;
    off_t offset;
    char data[4096];
    ssize_t result;
};

static struct job job;
static sem_t queued, done;
static int stop;

static void write_job(struct job *j) {
    OPLINE_STEP("write");
    j->result = pwrite(j->fd, j->data, sizeof j->data, j->offset);
    OPLINE_STEP("written");
}

static void *worker(void *unused) {
    for (;;) {
        sem_wait(&queued);
        if (stop) return unused;
        OPLINE_ENTER(&job, "dequeue");
        write_job(&job);
        OPLINE_LEAVE(&job, "done");
        sem_post(&done);
    }
}

int main(int argc, char **argv) {
    int jobs = argc > 2 ? atoi(argv[2]) : 23;
    int fd = argc > 1 ? open(argv[1], O_RDWR | O_CREAT, 0600) : -1;
    pthread_t thread;

    if (fd < 0) {
        fprintf(stderr, "usage: app FILE [JOBS]\n");
        return 2;
    }
    sem_init(&queued, 0, 0);
    sem_init(&done, 0, 0);
    pthread_create(&thread, NULL, worker, NULL);
    for (int i = 0; i < jobs; i++) {
        job.fd = fd;
        job.offset = (off_t)i * (off_t)sizeof job.data;
        OPLINE_BEGIN(&job, argv[1], "write", (uint64_t)job.offset, sizeof job.data);
        OPLINE_LEAVE_HERE("enqueue");
        sem_post(&queued);
        sem_wait(&done);
        OPLINE_END(&job, job.result);
    }
    stop = 1;
    sem_post(&queued);
    pthread_join(thread, NULL);
    close(fd);
    return 0;
}
