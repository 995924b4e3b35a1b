// SPDX-License-Identifier: MIT
// The UST provider `tcp`: calls of the recorded processes that send and receive in TCP streams (tcp.bpf.c).
//
//   tcp:send      a call is about to write the byte `position` of its stream
//   tcp:receive   a call has read `bytes` bytes from `position` on
//
//   ktime                       CLOCK_MONOTONIC ns in the kernel: the event's time
//   tid, pid, comm              the calling thread (as the root PID namespace numbers it), its process and name
//   local_high, local_low       the socket's own address, 128 bits; an IPv4 address is ::ffff:A.B.C.D
//   peer_high, peer_low         the other end's
//   local_port, peer_port
//   position                    TCP's sequence number of the byte: the same at both ends, modulo 2^32
//   socket                      the kernel's socket: which connection of these addresses and ports it is
//   cpu, seq                    as in block_tp.h, of which this is a part: one stream, one order

#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER tcp

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./tcp_tp.h"

#if !defined(OPLINE_TCP_TP_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define OPLINE_TCP_TP_H

#include <lttng/tracepoint.h>
#include <endian.h>
#include <stdint.h>

#include <linux/types.h>

#include "block_event.h"

#ifndef OPLINE_TCP_FIELDS
#define OPLINE_TCP_FIELDS
#define TCP_ARGS LTTNG_UST_TP_ARGS(const struct block_event *, e, uint64_t, seq_number)
#define TCP_CONNECTION                                                                                                 \
    lttng_ust_field_integer(uint64_t, ktime, e->ktime)                                                                 \
    lttng_ust_field_integer(int32_t, tid, (int32_t)e->tid)                                                             \
    lttng_ust_field_integer(int32_t, pid, (int32_t)e->pid)                                                             \
    lttng_ust_field_array_text(char, comm, e->comm, 16)                                                                \
    lttng_ust_field_integer_hex(uint64_t, local_high, be64toh(e->args[0]))                                             \
    lttng_ust_field_integer_hex(uint64_t, local_low, be64toh(e->args[1]))                                              \
    lttng_ust_field_integer_hex(uint64_t, peer_high, be64toh(e->args[2]))                                              \
    lttng_ust_field_integer_hex(uint64_t, peer_low, be64toh(e->args[3]))                                               \
    lttng_ust_field_integer(uint16_t, local_port, (uint16_t)e->dev)                                                    \
    lttng_ust_field_integer(uint16_t, peer_port, (uint16_t)(e->dev >> 16))                                             \
    lttng_ust_field_integer_hex(uint64_t, socket, e->args[5])                                                          \
    lttng_ust_field_integer(uint32_t, position, (uint32_t)e->args[4])                                                  \
    lttng_ust_field_integer(uint16_t, cpu, e->cpu)                                                                     \
    lttng_ust_field_integer(uint64_t, seq, seq_number)
#endif

LTTNG_UST_TRACEPOINT_EVENT_CLASS(tcp, sent, TCP_ARGS, LTTNG_UST_TP_FIELDS(TCP_CONNECTION))
LTTNG_UST_TRACEPOINT_EVENT_CLASS(tcp, received, TCP_ARGS,
    LTTNG_UST_TP_FIELDS(TCP_CONNECTION lttng_ust_field_integer(uint32_t, bytes, (uint32_t)(e->args[4] >> 32))))
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(tcp, sent, tcp, send, TCP_ARGS)
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(tcp, received, tcp, receive, TCP_ARGS)

#endif

#include <lttng/tracepoint-event.h>
