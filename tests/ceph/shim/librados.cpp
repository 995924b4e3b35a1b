// SPDX-License-Identifier: MIT
// A library in librados' place: each function prints its arguments and returns a number made of them. Completions call
// back from a thread of their own.
#include "librados.hpp"

#include <cstdio>
#include <thread>

namespace {
uint64_t mix(uint64_t sum, uint64_t v) { return (sum ^ v) * 0x100000001b3u; }
// Pointers differ from run to run, what they point at does not: texts are printed, others say only whether they are
// there.
uint64_t show(const std::string &v) { return std::printf(" '%s'", v.c_str()), v.size(); }
uint64_t show(const char *v) { return show(std::string(v)); }
uint64_t show(uint64_t v) { return std::printf(" %llu", static_cast<unsigned long long>(v)), v; }
uint64_t show(int v) { return show(static_cast<uint64_t>(v)); }
uint64_t show(const void *v) { return show(static_cast<uint64_t>(v ? 1 : 0)); }
uint64_t show(char *v) { return show(static_cast<const void *>(v)); }
template <typename T>
uint64_t show(T &v) {
    return show(static_cast<uint64_t>(sizeof v));
}

template <typename... A>
int say(const char *name, A &&...arguments) {
    uint64_t sum = 1;
    std::printf("  %s", name);
    ((sum = mix(sum, show(arguments))), ...);
    std::printf("\n");
    return static_cast<int>(sum % 100000) - 50000;
}

struct Impl {
    rados_callback complete, safe;
    void *argument;
    void finish() {
        std::thread([this] {
            if (complete) complete(this, argument);
            if (safe) safe(this, argument);
        }).join();
    }
};
}  // namespace

extern "C" {
int rados_aio_create_completion(void *argument, rados_callback complete, rados_callback safe, void **made) {
    *made = new Impl{complete, safe, argument};
    return 0;
}
int rados_aio_create_completion2(void *argument, rados_callback complete, void **made) {
    return rados_aio_create_completion(argument, complete, nullptr, made);
}
void test_finish(void *impl) { static_cast<Impl *>(impl)->finish(); }  // what a reply does
int rados_aio_wait_for_complete(void *a) { return say("rados_aio_wait_for_complete", a); }
int rados_aio_wait_for_complete_and_cb(void *a) { return say("rados_aio_wait_for_complete_and_cb", a); }
int rados_aio_wait_for_safe(void *a) { return say("rados_aio_wait_for_safe", a); }
int rados_aio_wait_for_safe_and_cb(void *a) { return say("rados_aio_wait_for_safe_and_cb", a); }
int rados_aio_get_return_value(void *a) { return say("rados_aio_get_return_value", a); }
void rados_aio_release(void *a) { say("rados_aio_release", a); }
int rados_aio_write(void *a, const char *b, void *c, const char *d, size_t e, uint64_t f) {
    return say("rados_aio_write", a, b, c, d, e, f);
}
int rados_aio_append(void *a, const char *b, void *c, const char *d, size_t e) {
    return say("rados_aio_append", a, b, c, d, e);
}
int rados_aio_write_full(void *a, const char *b, void *c, const char *d, size_t e) {
    return say("rados_aio_write_full", a, b, c, d, e);
}
int rados_aio_writesame(void *a, const char *b, void *c, const char *d, size_t e, size_t f, uint64_t g) {
    return say("rados_aio_writesame", a, b, c, d, e, f, g);
}
int rados_aio_remove(void *a, const char *b, void *c) { return say("rados_aio_remove", a, b, c); }
int rados_aio_read(void *a, const char *b, void *c, char *d, size_t e, uint64_t f) {
    return say("rados_aio_read", a, b, c, d, e, f);
}
int rados_aio_stat(void *a, const char *b, void *c, uint64_t *d, time_t *e) {
    return say("rados_aio_stat", a, b, c, d, e);
}
int rados_aio_write_op_operate(void *a, void *b, void *c, const char *d, time_t *e, int f) {
    return say("rados_aio_write_op_operate", a, b, c, d, e, f);
}
int rados_aio_write_op_operate2(void *a, void *b, void *c, const char *d, struct timespec *e, int f) {
    return say("rados_aio_write_op_operate2", a, b, c, d, e, f);
}
int rados_aio_read_op_operate(void *a, void *b, void *c, const char *d, int e) {
    return say("rados_aio_read_op_operate", a, b, c, d, e);
}
int rados_write(void *a, const char *b, const char *c, size_t d, uint64_t e) {
    return say("rados_write", a, b, c, d, e);
}
int rados_write_full(void *a, const char *b, const char *c, size_t d) { return say("rados_write_full", a, b, c, d); }
int rados_append(void *a, const char *b, const char *c, size_t d) { return say("rados_append", a, b, c, d); }
int rados_read(void *a, const char *b, char *c, size_t d, uint64_t e) { return say("rados_read", a, b, c, d, e); }
int rados_remove(void *a, const char *b) { return say("rados_remove", a, b); }
int rados_stat(void *a, const char *b, uint64_t *c, time_t *d) { return say("rados_stat", a, b, c, d); }
int rados_write_op_operate(void *a, void *b, const char *c, time_t *d, int e) {
    return say("rados_write_op_operate", a, b, c, d, e);
}
int rados_write_op_operate2(void *a, void *b, const char *c, struct timespec *d, int e) {
    return say("rados_write_op_operate2", a, b, c, d, e);
}
int rados_read_op_operate(void *a, void *b, const char *c, int d) { return say("rados_read_op_operate", a, b, c, d); }
}

namespace librados {
inline namespace v14_2_0 {
// as in librados: C++ by way of C
AioCompletion *Rados::aio_create_completion(void *argument, callback complete) {
    AioCompletion *made = new AioCompletion;
    rados_aio_create_completion2(argument, complete, &made->pc);
    return made;
}
AioCompletion *Rados::aio_create_completion(void *argument, callback complete, callback safe) {
    AioCompletion *made = new AioCompletion;
    rados_aio_create_completion(argument, complete, safe, &made->pc);
    return made;
}
int AioCompletion::set_complete_callback(void *argument, callback complete) {
    static_cast<Impl *>(pc)->complete = complete;
    static_cast<Impl *>(pc)->argument = argument;
    return 0;
}
int AioCompletion::wait_for_complete() { return say("wait_for_complete", this); }
int AioCompletion::wait_for_complete_and_cb() { return say("wait_for_complete_and_cb", this); }
int AioCompletion::wait_for_safe() { return say("wait_for_safe", this); }
int AioCompletion::wait_for_safe_and_cb() { return say("wait_for_safe_and_cb", this); }
int AioCompletion::get_return_value() { return say("get_return_value", this); }
void AioCompletion::release() { say("release", this); }
int IoCtx::aio_operate(const std::string &a, AioCompletion *b, ObjectWriteOperation *c) {
    return say("IoCtx::aio_operate", this, a, b, c);
}
int IoCtx::aio_operate(const std::string &a, AioCompletion *b, ObjectWriteOperation *c, int d) {
    return say("IoCtx::aio_operate", this, a, b, c, d);
}
int IoCtx::aio_operate(const std::string &a, AioCompletion *b, ObjectWriteOperation *c, uint64_t d,
                       std::vector<uint64_t> &e) {
    return say("IoCtx::aio_operate", this, a, b, c, d, e);
}
int IoCtx::aio_operate(const std::string &a, AioCompletion *b, ObjectWriteOperation *c, uint64_t d,
                       std::vector<uint64_t> &e, const blkin_trace_info *f) {
    return say("IoCtx::aio_operate", this, a, b, c, d, e, f);
}
int IoCtx::aio_operate(const std::string &a, AioCompletion *b, ObjectWriteOperation *c, uint64_t d,
                       std::vector<uint64_t> &e, int f, const blkin_trace_info *g) {
    return say("IoCtx::aio_operate", this, a, b, c, d, e, f, g);
}
int IoCtx::aio_operate(const std::string &a, AioCompletion *b, ObjectReadOperation *c, list *d) {
    return say("IoCtx::aio_operate", this, a, b, c, d);
}
int IoCtx::aio_operate(const std::string &a, AioCompletion *b, ObjectReadOperation *c, int d, list *e) {
    return say("IoCtx::aio_operate", this, a, b, c, d, e);
}
int IoCtx::aio_operate(const std::string &a, AioCompletion *b, ObjectReadOperation *c, int d, list *e,
                       const blkin_trace_info *f) {
    return say("IoCtx::aio_operate", this, a, b, c, d, e, f);
}
int IoCtx::aio_operate(const std::string &a, AioCompletion *b, ObjectReadOperation *c, uint64_t d, int e, list *f) {
    return say("IoCtx::aio_operate", this, a, b, c, d, e, f);
}
int IoCtx::aio_read(const std::string &a, AioCompletion *b, list *c, size_t d, uint64_t e) {
    return say("IoCtx::aio_read", this, a, b, c, d, e);
}
int IoCtx::aio_read(const std::string &a, AioCompletion *b, list *c, size_t d, uint64_t e, uint64_t f) {
    return say("IoCtx::aio_read", this, a, b, c, d, e, f);
}
int IoCtx::aio_sparse_read(const std::string &a, AioCompletion *b, std::map<uint64_t, uint64_t> *c, list *d, size_t e,
                           uint64_t f) {
    return say("IoCtx::aio_sparse_read", this, a, b, c, d, e, f);
}
int IoCtx::aio_write(const std::string &a, AioCompletion *b, const list &c, size_t d, uint64_t e) {
    return say("IoCtx::aio_write", this, a, b, c, d, e);
}
int IoCtx::aio_append(const std::string &a, AioCompletion *b, const list &c, size_t d) {
    return say("IoCtx::aio_append", this, a, b, c, d);
}
int IoCtx::aio_write_full(const std::string &a, AioCompletion *b, const list &c) {
    return say("IoCtx::aio_write_full", this, a, b, c);
}
int IoCtx::aio_writesame(const std::string &a, AioCompletion *b, const list &c, size_t d, uint64_t e) {
    return say("IoCtx::aio_writesame", this, a, b, c, d, e);
}
int IoCtx::aio_remove(const std::string &a, AioCompletion *b) { return say("IoCtx::aio_remove", this, a, b); }
int IoCtx::aio_remove(const std::string &a, AioCompletion *b, int c) { return say("IoCtx::aio_remove", this, a, b, c); }
int IoCtx::aio_stat(const std::string &a, AioCompletion *b, uint64_t *c, time_t *d) {
    return say("IoCtx::aio_stat", this, a, b, c, d);
}
int IoCtx::read(const std::string &a, list &b, size_t c, uint64_t d) { return say("IoCtx::read", this, a, b, c, d); }
int IoCtx::write(const std::string &a, list &b, size_t c, uint64_t d) { return say("IoCtx::write", this, a, b, c, d); }
int IoCtx::write_full(const std::string &a, list &b) { return say("IoCtx::write_full", this, a, b); }
int IoCtx::append(const std::string &a, list &b, size_t c) { return say("IoCtx::append", this, a, b, c); }
int IoCtx::remove(const std::string &a) { return say("IoCtx::remove", this, a); }
int IoCtx::stat(const std::string &a, uint64_t *b, time_t *c) { return say("IoCtx::stat", this, a, b, c); }
int IoCtx::operate(const std::string &a, ObjectWriteOperation *b) { return say("IoCtx::operate", this, a, b); }
int IoCtx::operate(const std::string &a, ObjectWriteOperation *b, int c) {
    return say("IoCtx::operate", this, a, b, c);
}
int IoCtx::operate(const std::string &a, ObjectReadOperation *b, list *c) {
    return say("IoCtx::operate", this, a, b, c);
}
int IoCtx::operate(const std::string &a, ObjectReadOperation *b, list *c, int d) {
    return say("IoCtx::operate", this, a, b, c, d);
}
}  // namespace v14_2_0
}  // namespace librados
