// SPDX-License-Identifier: MIT
// File I/O for the test of the shim for Ceph: `files FILE LIBRARY local|deep`. Prints what every call gave, and its
// errno. The asynchronous part is late.c's, a library that is loaded for itself alone.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

// errno is 77 before each call: a success leaves it alone
#define SHOW(call)                                                                                                     \
    do {                                                                                                               \
        errno = 77;                                                                                                    \
        long result = (long)(call);                                                                                    \
        int after = errno;                                                                                             \
        printf("%s = %ld, errno %d\n", #call, result, after);                                                          \
    } while (0)

static int early = -1;

// before the shim's own constructors, and after its destructors
__attribute__((constructor(101))) static void first(void) {
    early = open("/dev/null", O_RDWR);
    SHOW(pwrite(early, "early", 5, 0));
    SHOW(fdatasync(early));
    SHOW(write(early, "ceph v2\n", 8));
}

__attribute__((destructor(101))) static void last(void) {
    SHOW(pwrite(early, "late", 4, 0));
    SHOW(write(early, "ceph v2\n", 8));
    SHOW(close(early));
    fflush(stdout);
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    char data[8192], back[8192];
    for (size_t i = 0; i < sizeof data; i++) data[i] = (char)(i * 7);
    struct iovec two[2] = {{data, 100}, {data + 100, 4000}}, into[2] = {{back, 50}, {back + 50, 8000}};
    int fd = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0600), none = 1234;
    volatile int minus = -1;
    SHOW(pwrite(fd, data, 4096, 0));
    SHOW(pwrite64(fd, data, 4096, 4096));
    SHOW(pwritev(fd, two, 2, 10));
    SHOW(pwritev64(fd, two, 2, 8000));
    SHOW(pwritev2(fd, two, 2, 12000, 0));
    SHOW(pwritev64v2(fd, two, 1, 13000, 0));
    SHOW(pread(fd, back, 8192, 8));
    SHOW(memcmp(back + 2, data, 4100));
    SHOW(pread64(fd, back, 8192, 12050));
    SHOW(preadv(fd, into, 2, 0));
    SHOW(preadv64(fd, into, 2, 100000));
    SHOW(preadv2(fd, into, 2, 0, 0));
    SHOW(fdatasync(fd));
    SHOW(fsync(fd));
    SHOW(sync_file_range(fd, 4096, 4096, SYNC_FILE_RANGE_WRITE));
    SHOW(pwrite(none, data, 1, 0));
    SHOW(pread(none, data, 1, 0));
    SHOW(pwritev(fd, two, minus, 0));
    SHOW(fdatasync(none));
    SHOW(fsync(none));
    SHOW(sync_file_range(none, 0, 1, 0));
    SHOW(write(none, data, 1));
    SHOW(read(none, data, 1));
    SHOW(close(none));
    SHOW(close(-1));
    SHOW(dup2(none, 5));
    SHOW(fcntl(none, F_DUPFD, 9));
    SHOW(fcntl(fd, F_GETFL) & O_ACCMODE);
    int pipe_ends[2];
    SHOW(pipe2(pipe_ends, O_NONBLOCK));
    SHOW(read(pipe_ends[0], back, 10));
    SHOW(write(pipe_ends[1], "ceph v2\nin a pipe", 17));
    SHOW(read(pipe_ends[0], back, 17));

    int deep = strcmp(argv[3], "deep") == 0;
    void *late = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL | (deep ? RTLD_DEEPBIND : 0));
    if (!late) return fprintf(stderr, "%s\n", dlerror()), 1;
    void (*asynchronous)(const char *) = (void (*)(const char *))(unsigned long)dlsym(late, "asynchronous");
    asynchronous(argv[1]);
    return 0;
}
