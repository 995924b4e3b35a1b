// SPDX-License-Identifier: MIT
// Positions in TCP streams, of the recorded processes → the same ring buffer. Compiled behind uring.bpf.c.
//
// A byte of a stream has one number at both ends, the sequence number of TCP, so that two recordings know which call
// that sends belongs to which call that receives. Tracepoints of include/trace/events/tcp.h and sock.h:
// tcp_sendmsg_locked since Linux 6.16, sock_recv_length since 6.3.
//
// Record: args: the local address (16 bytes), the peer's, position | bytes << 32, the socket (struct sock *); `dev` has
// the ports, local | peer << 16; `call` is the step. An IPv4 address is written as ::ffff:A.B.C.D.

#ifdef O_TCP_WRITTEN

#define FAMILY_IPV4 2  // AF_INET, AF_INET6, IPPROTO_TCP: include/linux/socket.h, include/uapi/linux/in.h
#define FAMILY_IPV6 10
#define PROTOCOL_TCP 6
#define NOT_OF_THE_STREAM 0x2003  // MSG_OOB, MSG_PEEK, MSG_ERRQUEUE

static inline void fill_ipv4(u64 *to, u32 address) {
    u32 *word = (u32 *)to;
    word[0] = word[1] = 0;
    word[2] = bpf_htonl(0xffff);
    word[3] = address;
}

// `end`: where in struct tcp_sock the position is, the next byte's.
static inline int tell_stream(u64 sock, u8 step, u64 end, u32 bytes) {
    struct bridge_control *c = wanted(KIND_TCP);
    if (!c || !in_tree(c)) return 0;
    if ((u16)pointer_at(sock + O_SOCK_PROTOCOL) != PROTOCOL_TCP) return 0;
    char s[SOCK_SPAN] __attribute__((aligned(8)));
    if (bpf_probe_read_kernel(s, sizeof(s), (void *)(sock + SOCK_LOW))) return 0;
    u16 family = GET(u16, s, SOCK_LOW, O_SOCK_FAMILY);
    if (family != FAMILY_IPV4 && family != FAMILY_IPV6) return 0;
    struct block_event *e = reserve(KIND_TCP);
    if (!e) return 0;
    e->call = step;
    if (family == FAMILY_IPV4) {
        fill_ipv4(e->args, GET(u32, s, SOCK_LOW, O_SOCK_LOCAL));
        fill_ipv4(e->args + 2, GET(u32, s, SOCK_LOW, O_SOCK_PEER));
    } else {
        bpf_probe_read_kernel(e->args, 16, (void *)(sock + O_SOCK_LOCAL6));
        bpf_probe_read_kernel(e->args + 2, 16, (void *)(sock + O_SOCK_PEER6));
    }
    e->args[4] = (u64)bytes << 32 | (u32)((u32)pointer_at(sock + end) - bytes);
    e->args[5] = sock;
    e->dev = GET(u16, s, SOCK_LOW, O_SOCK_PORT) | (u32)bpf_ntohs(GET(u16, s, SOCK_LOW, O_SOCK_PEER_PORT)) << 16;
    events.ringbuf_submit(e, RB_NO_WAKEUP);
    return 0;
}

// With the socket's lock, before a byte is written; how many will be is not known. Once for each segment of a call
// (tcp_sendmsg_locked() of net/ipv4/tcp.c, Linux 6.16).
int on_tcp_sendmsg_locked(struct bpf_raw_tracepoint_args *ctx) {
    return tell_stream(ctx->args[0], TCP_SEND, O_TCP_WRITTEN, 0);
}

// Behind the call: the bytes are the program's.
int on_sock_recv_length(struct bpf_raw_tracepoint_args *ctx) {
    s32 bytes = ctx->args[1];
    if (bytes <= 0 || (ctx->args[2] & NOT_OF_THE_STREAM)) return 0;
    return tell_stream(ctx->args[0], TCP_RECEIVE, O_TCP_COPIED, bytes);
}

#endif
