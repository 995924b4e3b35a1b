// SPDX-License-Identifier: MIT
// The part of librados' C and C++ interface that the shim for Ceph stands before: names and signatures, for a library
// and a client of the tests.
#pragma once
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <map>
#include <string>
#include <vector>

struct blkin_trace_info;
namespace ceph::buffer {
inline namespace v15_2_0 {
class list {};
}  // namespace v15_2_0
}  // namespace ceph::buffer

namespace librados {
inline namespace v14_2_0 {
using list = ceph::buffer::list;
using callback = void (*)(void *, void *);

struct AioCompletion {
    int set_complete_callback(void *, callback);
    int wait_for_complete();
    int wait_for_complete_and_cb();
    int wait_for_safe();
    int wait_for_safe_and_cb();
    int get_return_value();
    void release();
    void *pc;
};
struct ObjectWriteOperation {};
struct ObjectReadOperation {};
struct Rados {
    static AioCompletion *aio_create_completion(void *, callback);
    static AioCompletion *aio_create_completion(void *, callback, callback);
};
struct IoCtx {
    int aio_operate(const std::string &, AioCompletion *, ObjectWriteOperation *);
    int aio_operate(const std::string &, AioCompletion *, ObjectWriteOperation *, int);
    int aio_operate(const std::string &, AioCompletion *, ObjectWriteOperation *, uint64_t, std::vector<uint64_t> &);
    int aio_operate(const std::string &, AioCompletion *, ObjectWriteOperation *, uint64_t, std::vector<uint64_t> &,
                    const blkin_trace_info *);
    int aio_operate(const std::string &, AioCompletion *, ObjectWriteOperation *, uint64_t, std::vector<uint64_t> &,
                    int, const blkin_trace_info *);
    int aio_operate(const std::string &, AioCompletion *, ObjectReadOperation *, list *);
    int aio_operate(const std::string &, AioCompletion *, ObjectReadOperation *, int, list *);
    int aio_operate(const std::string &, AioCompletion *, ObjectReadOperation *, int, list *, const blkin_trace_info *);
    int aio_operate(const std::string &, AioCompletion *, ObjectReadOperation *, uint64_t, int, list *);
    int aio_read(const std::string &, AioCompletion *, list *, size_t, uint64_t);
    int aio_read(const std::string &, AioCompletion *, list *, size_t, uint64_t, uint64_t);
    int aio_sparse_read(const std::string &, AioCompletion *, std::map<uint64_t, uint64_t> *, list *, size_t, uint64_t);
    int aio_write(const std::string &, AioCompletion *, const list &, size_t, uint64_t);
    int aio_append(const std::string &, AioCompletion *, const list &, size_t);
    int aio_write_full(const std::string &, AioCompletion *, const list &);
    int aio_writesame(const std::string &, AioCompletion *, const list &, size_t, uint64_t);
    int aio_remove(const std::string &, AioCompletion *);
    int aio_remove(const std::string &, AioCompletion *, int);
    int aio_stat(const std::string &, AioCompletion *, uint64_t *, time_t *);
    int read(const std::string &, list &, size_t, uint64_t);
    int write(const std::string &, list &, size_t, uint64_t);
    int write_full(const std::string &, list &);
    int append(const std::string &, list &, size_t);
    int remove(const std::string &);
    int stat(const std::string &, uint64_t *, time_t *);
    int operate(const std::string &, ObjectWriteOperation *);
    int operate(const std::string &, ObjectWriteOperation *, int);
    int operate(const std::string &, ObjectReadOperation *, list *);
    int operate(const std::string &, ObjectReadOperation *, list *, int);
};
}  // namespace v14_2_0
}  // namespace librados

extern "C" {
using rados_callback = void (*)(void *, void *);
int rados_aio_create_completion(void *, rados_callback, rados_callback, void **);
int rados_aio_create_completion2(void *, rados_callback, void **);
int rados_aio_wait_for_complete(void *);
int rados_aio_wait_for_complete_and_cb(void *);
int rados_aio_wait_for_safe(void *);
int rados_aio_wait_for_safe_and_cb(void *);
int rados_aio_get_return_value(void *);
void rados_aio_release(void *);
int rados_aio_write(void *, const char *, void *, const char *, size_t, uint64_t);
int rados_aio_append(void *, const char *, void *, const char *, size_t);
int rados_aio_write_full(void *, const char *, void *, const char *, size_t);
int rados_aio_writesame(void *, const char *, void *, const char *, size_t, size_t, uint64_t);
int rados_aio_remove(void *, const char *, void *);
int rados_aio_read(void *, const char *, void *, char *, size_t, uint64_t);
int rados_aio_stat(void *, const char *, void *, uint64_t *, time_t *);
int rados_aio_write_op_operate(void *, void *, void *, const char *, time_t *, int);
int rados_aio_write_op_operate2(void *, void *, void *, const char *, struct timespec *, int);
int rados_aio_read_op_operate(void *, void *, void *, const char *, int);
int rados_write(void *, const char *, const char *, size_t, uint64_t);
int rados_write_full(void *, const char *, const char *, size_t);
int rados_append(void *, const char *, const char *, size_t);
int rados_read(void *, const char *, char *, size_t, uint64_t);
int rados_remove(void *, const char *);
int rados_stat(void *, const char *, uint64_t *, time_t *);
int rados_write_op_operate(void *, void *, const char *, time_t *, int);
int rados_write_op_operate2(void *, void *, const char *, struct timespec *, int);
int rados_read_op_operate(void *, void *, const char *, int);
}
