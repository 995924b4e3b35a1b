// SPDX-License-Identifier: MIT
// libaio and liburing for files.c, in a library that brings them along: nobody else in the process sees them.
#define _GNU_SOURCE
#include <fcntl.h>
#include <libaio.h>
#include <liburing.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { REQUESTS = 24 };

static void libaio(int fd) {
    io_context_t context = NULL;
    struct iocb cbs[REQUESTS], *list[REQUESTS];
    struct io_event events[REQUESTS];
    struct timespec soon = {1, 0};
    struct iovec iov[2];
    char *data;
    long results[REQUESTS] = {0};
    if (posix_memalign((void **)&data, 4096, 4096 * REQUESTS)) exit(1);
    memset(data, 'a', 4096 * REQUESTS);
    iov[0] = (struct iovec){data, 4096}, iov[1] = (struct iovec){data + 4096, 4096};
    printf("io_setup %d\n", io_setup(64, &context));
    for (int i = 0; i < REQUESTS; i++) {
        list[i] = &cbs[i];
        if (i % 3 == 0) io_prep_pwrite(&cbs[i], fd, data + 4096 * i, 4096, 4096L * i);
        if (i % 3 == 1) io_prep_pread(&cbs[i], fd, data + 4096 * i, 128 * i, 0);
        if (i % 3 == 2) io_prep_pwritev(&cbs[i], fd, iov, 2, 4096L * 100);
        cbs[i].data = (void *)(long)i;
    }
    cbs[7].aio_fildes = 1234;  // the eighth is refused: the call takes seven
    int taken = io_submit(context, REQUESTS, list);
    printf("io_submit %d\n", taken);
    printf("io_submit again %d\n", io_submit(context, REQUESTS - taken, list + taken));
    printf("io_submit the rest %d\n", io_submit(context, REQUESTS - taken - 1, list + taken + 1));
    for (int done = 0; done < REQUESTS - 1;) {
        int n =
            done < 10 ? io_getevents(context, 1, 4, events, &soon) : io_pgetevents(context, 1, 20, events, NULL, NULL);
        if (n <= 0) printf("io_getevents %d\n", n), exit(1);
        for (int i = 0; i < n; i++) results[(long)events[i].data] = (long)events[i].res + 1;
        done += n;
    }
    for (int i = 0; i < REQUESTS; i++) printf("%d: %ld\n", i, results[i] - 1);
    printf("nothing %d\n", io_getevents(context, 0, 4, events, &(struct timespec){0, 0}));
    printf("io_destroy %d\n", io_destroy(context));
    printf("io_submit without a context %d\n", io_submit(context, 1, list));
    free(data);
}

static void uring(int fd) {
    struct io_uring ring;
    struct io_uring_cqe *cqe, *cqes[8];
    static char data[8][512];
    struct iovec iov[2] = {{data[0], 100}, {data[1], 200}};
    int made = io_uring_queue_init(16, &ring, 0);
    printf("io_uring_queue_init %d\n", made);
    if (made < 0) return;
    for (unsigned round = 0; round < 5; round++) {  // past the end of the ring
        for (unsigned i = 0; i < 6; i++) {
            struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);
            if (i < 5) {
                io_uring_prep_write(sqe, fd, data[i], 100 + i, 512 * i);
            } else {
                io_uring_prep_writev(sqe, fd, iov, 2, 8192);
            }
            io_uring_sqe_set_data64(sqe, 1000 + 10 * round + i);
        }
        printf("submit %d\n", round % 2 ? io_uring_submit_and_wait(&ring, 6) : io_uring_submit(&ring));
        long sum = 0;
        if (round == 0) {
            for (int i = 0; i < 6; i++) {
                if (io_uring_wait_cqes(&ring, &cqe, 1, NULL, NULL) < 0) exit(1);
                sum += cqe->res + (long)cqe->user_data;
                io_uring_cqe_seen(&ring, cqe);
            }
        } else {
            for (unsigned got = 0; got < 6;) {
                unsigned n = io_uring_peek_batch_cqe(&ring, cqes, 8);
                for (unsigned i = 0; i < n; i++) sum += cqes[i]->res + (long)cqes[i]->user_data;
                io_uring_cq_advance(&ring, n);
                got += n;
            }
        }
        printf("round %u: %ld\n", round, sum);
    }
    io_uring_queue_exit(&ring);
}

void asynchronous(const char *path);
void asynchronous(const char *path) {
    int fd = open(path, O_RDWR);
    libaio(fd);
    uring(fd);
    close(fd);
}
