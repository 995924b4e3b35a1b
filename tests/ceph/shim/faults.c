// SPDX-License-Identifier: MIT
// Calls that the system refuses, for each what it said and errno: memory that is not there, descriptors that are not
// open, nothing at all.
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define SAY(call)                                                                                                      \
    do {                                                                                                               \
        errno = 0;                                                                                                     \
        long result = (long)(call);                                                                                    \
        printf("%s: %ld, %d\n", #call, result, errno);                                                                 \
    } while (0)

int main(void) {
    int ends[2], pipes[2];
    void *volatile hidden = (void *)(uintptr_t)16;  // gcc is not to see it
    void *nowhere = hidden;
    struct iovec bad = {nowhere, 64}, some[2] = {{"ceph v2\n", 8}, {nowhere, 64}};
    struct msghdr badly = {.msg_iov = &bad, .msg_iovlen = 1}, nothing = {.msg_iov = nowhere, .msg_iovlen = 2};
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) || pipe(pipes)) return 1;
    SAY(write(pipes[1], nowhere, 64));
    SAY(write(ends[0], nowhere, 64));
    SAY(send(ends[0], nowhere, 64, 0));
    SAY(sendto(ends[0], nowhere, 64, 0, NULL, 0));
    SAY(sendmsg(ends[0], &badly, 0));
    SAY(sendmsg(ends[0], &nothing, 0));
    SAY(sendmsg(ends[0], nowhere, 0));
    SAY(writev(ends[0], &bad, 1));
    SAY(writev(ends[0], nowhere, 2));
    SAY(writev(pipes[1], some, 2));
    SAY(write(99, "ceph v2\n", 8));
    SAY(write(pipes[0], "ceph v2\n", 8));
    SAY(recv(ends[1], nowhere, 64, MSG_DONTWAIT));
    SAY(write(ends[0], "1234567890", 10));
    SAY(recv(ends[1], nowhere, 64, 0));
    SAY(recvmsg(ends[1], nowhere, 0));
    SAY(readv(ends[1], nowhere, 2));
    SAY(read(ends[1], nowhere, 64));
    SAY(pwrite(pipes[1], nowhere, 64, 0));
    SAY(fdatasync(pipes[1]));
    return 0;
}
