// SPDX-License-Identifier: MIT
// Which file descriptors are connections of Ceph's messenger, and the events of what passes through them. None of this
// changes errno.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

struct stream;

// A connection begins: the socket was connected or accepted. What the number meant before is forgotten.
void stream_open(int fd);
void stream_close(int fd);
void stream_close_range(unsigned first, unsigned last);
void stream_duplicate(int from, int to);

// NULL: the descriptor is none.
struct stream *stream_of(int fd);

// Around a call that sends: locks the stream in that direction; false if another thread is sending. A descriptor that
// nobody connected (it came with exec, from another process, …) is a stream from the call on that sends or receives the
// banner: after one that sent on no stream, stream_discover_sent().
bool stream_begin_send(struct stream *stream, int fd, const struct iovec *iov, size_t count);
void stream_sent(struct stream *stream, int fd, const struct iovec *iov, ssize_t result);
void stream_discover_sent(int fd, const struct iovec *iov, size_t count, ssize_t result);

// Around a call that receives. After NULL, the received bytes to stream_discover().
struct stream *stream_begin_receive(int fd);
void stream_received(struct stream *stream, int fd, const struct iovec *iov, ssize_t result);
void stream_discover(int fd, const struct iovec *iov, size_t count, ssize_t result);

// This thread has sent or received on a stream: a messenger's worker.
extern __thread bool stream_worker __attribute__((tls_model("initial-exec")));
