/* SPDX-License-Identifier: MIT */
/* The message between client and server: a header in the byte order of both hosts, then the data of a write
   request or of a read's reply. */
#ifndef DEMO_WIRE_H
#define DEMO_WIRE_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#define WIRE_MAGIC 0x64656d6fu /* "demo" */
#define WIRE_OID_MAX 32
#define WIRE_LENGTH_MAX (4u << 20)

enum wire_type { WIRE_HELLO = 1, WIRE_WRITE, WIRE_READ, WIRE_REPLY };

struct wire_header {
    uint32_t magic;
    uint16_t type;
    uint16_t seq;      /* of the client; wraps */
    uint32_t client;   /* given by the server in its HELLO */
    int32_t result;    /* of a reply: bytes, or -errno */
    uint64_t offset;   /* in the object */
    uint32_t length;   /* of the op's data */
    uint32_t payload;  /* bytes that follow this header */
    uint64_t truth_id; /* the bench's number of the op: for the log beside the trace, never traced */
    char oid[WIRE_OID_MAX];
};

struct wire_address {
    union {
        struct sockaddr any;
        struct sockaddr_un un;
        struct sockaddr_in in;
    };
    socklen_t size;
};

/* A path; "@name": a socket without a file, which nobody has to remove; "tcp:ADDRESS:PORT" (IPv4). False: it is too
   long, or no address. */
bool wire_address(struct wire_address *addr, const char *text);
/* A socket for such an address, or -1 with errno. */
int wire_socket(const struct wire_address *addr);
/* Both return 0, or -errno; -ECONNRESET at the end of the stream. Whole messages or nothing. */
int wire_send(int fd, const struct wire_header *h, const void *payload);
int wire_recv(int fd, void *buf, size_t size);

#endif
