// SPDX-License-Identifier: MIT
// A connection of which the shim misses something in each direction: bytes that pass through system calls of their own.
// Prints the messages that it must see, in order. `disturbed IN OUT`: a connection that is never disturbed; for each
// byte read from IN a message goes each way, and then a byte to OUT.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "wire.h"

static int ends[2];
static struct bytes out;
static uint64_t tid;

static void must(int ok, const char *what) {
    if (!ok) perror(what), exit(1);
}

static void receive(int to, size_t n, int seen) {
    static uint8_t room[1 << 16];
    while (n > 0) {
        ssize_t got = seen ? read(to, room, n) : syscall(SYS_read, to, room, n);
        must(got > 0, "read");
        n -= (size_t)got;
    }
}

// Everything in `out`, in one call each.
static void pass(int from, int sent_seen, int received_seen) {
    ssize_t taken = sent_seen ? write(ends[from], out.p, out.n) : syscall(SYS_write, ends[from], out.p, out.n);
    must(taken == (ssize_t)out.n, "write");
    receive(ends[!from], out.n, received_seen);
    out.n = 0;
}

static void message(void) {
    struct bytes front = {0};
    add_zero(&front, 100);
    add_message(&out, 1, &(struct wire_message){.type = 43, .version = 8, .tid = ++tid, .seq = tid, .front = &front});
    free(front.p);
}

static void seen(int from) {
    message();
    pass(from, 1, 1);
    printf("tx %llu\nrx %llu\n", (unsigned long long)tid, (unsigned long long)tid);
}

int main(int argc, char **argv) {
    must(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
    for (int side = 0; side < 2; side++) add_banner(&out, 1), pass(side, 1, 1);
    add_auth_done(&out, 1, 4001, 1), pass(1, 1, 1);
    if (argc == 3) {
        int in = open(argv[1], O_RDWR), to = open(argv[2], O_RDWR);
        for (char byte; read(in, &byte, 1) == 1;) {
            seen(0), seen(1);
            must(write(to, &byte, 1) == 1, argv[2]);
        }
        return 1;
    }
    seen(0), seen(1);

    // a whole message that neither end is seen to pass: nothing is wrong with the next one
    message(), pass(0, 0, 0);
    seen(0);

    // half a message is seen to go and to come, the other half is not
    message();
    struct bytes rest = {0};
    add(&rest, out.p + out.n / 2, out.n - out.n / 2);
    out.n /= 2;
    pass(0, 1, 1);
    printf("tx %llu\nrx %llu\n", (unsigned long long)tid, (unsigned long long)tid);
    add(&out, rest.p, rest.n), pass(0, 0, 0);
    free(rest.p);
    uint64_t half = tid;
    message(), pass(0, 1, 1);  // its first half is taken for what was missing, so it is lost
    printf("tx %llu\nrx %llu\n", (unsigned long long)half, (unsigned long long)half);
    seen(0), seen(1), seen(0);
    fflush(stdout);
    return 0;
}
