// SPDX-License-Identifier: MIT
// The collector's socket, to which the shim's threads send the descriptors of their rings.
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

// What one message offers.
struct offer {
    int fd;            // the caller closes it; -1: none came
    uint32_t version;  // of the ring's layout (RING_VERSION)
    struct ucred who;  // as the kernel says; uid -1: it did not
};

// A socket at this path, for everybody to send to; -1: errno says why.
int listen_at(const char *path);
// Takes the next message, without waiting. False: there is none.
bool next_offer(int listener, struct offer *offer);
