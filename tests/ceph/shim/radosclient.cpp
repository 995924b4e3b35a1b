// SPDX-License-Identifier: MIT
// Calls everything of librados that the shim for Ceph stands before, and prints what comes back and which callbacks are
// called.
#include <cstdio>

#include "librados.hpp"

extern "C" void test_finish(void *impl);

namespace {
using namespace librados;
int places[8];
void *at(int i) { return &places[i]; }
void show(const char *what, int result) { std::printf("%s: %d\n", what, result); }
void completed(void *, void *argument) { std::printf("completed %d\n", *static_cast<int *>(argument)); }
void safe(void *, void *argument) { std::printf("safe %d\n", *static_cast<int *>(argument)); }

void cxx() {
    IoCtx io;
    ObjectWriteOperation write;
    ObjectReadOperation read;
    list bytes;
    std::vector<uint64_t> snaps;
    std::map<uint64_t, uint64_t> extents;
    const blkin_trace_info *trace = nullptr;
    std::string name = "object.of.some.length.beyond.the.short.ones";
    uint64_t size = 0;
    time_t when = 0;
    int number = 1;
    AioCompletion *c = Rados::aio_create_completion(&number, completed);
    show("IoCtx::aio_operate", io.aio_operate(name, c, &write));
    show("IoCtx::aio_operate", io.aio_operate(name, c, &write, 103));
    show("IoCtx::aio_operate", io.aio_operate(name, c, &write, 1099511627779u, snaps));
    show("IoCtx::aio_operate", io.aio_operate(name, c, &write, 1099511627779u, snaps, trace));
    show("IoCtx::aio_operate", io.aio_operate(name, c, &write, 1099511627779u, snaps, 105, trace));
    show("IoCtx::aio_operate", io.aio_operate(name, c, &read, &bytes));
    show("IoCtx::aio_operate", io.aio_operate(name, c, &read, 103, &bytes));
    show("IoCtx::aio_operate", io.aio_operate(name, c, &read, 103, &bytes, trace));
    show("IoCtx::aio_operate", io.aio_operate(name, c, &read, 1099511627779u, 104, &bytes));
    show("IoCtx::aio_read", io.aio_read(name, c, &bytes, 4003u, 1099511627780u));
    show("IoCtx::aio_read", io.aio_read(name, c, &bytes, 4003u, 1099511627780u, 1099511627781u));
    show("IoCtx::aio_sparse_read", io.aio_sparse_read(name, c, &extents, &bytes, 4004u, 1099511627781u));
    show("IoCtx::aio_write", io.aio_write(name, c, bytes, 4003u, 1099511627780u));
    show("IoCtx::aio_append", io.aio_append(name, c, bytes, 4003u));
    show("IoCtx::aio_write_full", io.aio_write_full(name, c, bytes));
    show("IoCtx::aio_writesame", io.aio_writesame(name, c, bytes, 4003u, 1099511627780u));
    show("IoCtx::aio_remove", io.aio_remove(name, c));
    show("IoCtx::aio_remove", io.aio_remove(name, c, 102));
    show("IoCtx::aio_stat", io.aio_stat(name, c, &size, &when));
    show("IoCtx::read", io.read(name, bytes, 4002u, 1099511627779u));
    show("IoCtx::write", io.write(name, bytes, 4002u, 1099511627779u));
    show("IoCtx::write_full", io.write_full(name, bytes));
    show("IoCtx::append", io.append(name, bytes, 4002u));
    show("IoCtx::remove", io.remove(name));
    show("IoCtx::stat", io.stat(name, &size, &when));
    show("IoCtx::operate", io.operate(name, &write));
    show("IoCtx::operate", io.operate(name, &write, 102));
    show("IoCtx::operate", io.operate(name, &read, &bytes));
    show("IoCtx::operate", io.operate(name, &read, &bytes, 103));
    test_finish(c->pc);
    show("wait_for_complete", c->wait_for_complete());
    show("wait_for_complete_and_cb", c->wait_for_complete_and_cb());
    show("wait_for_safe", c->wait_for_safe());
    show("wait_for_safe_and_cb", c->wait_for_safe_and_cb());
    show("get_return_value", c->get_return_value());
    c->release();
    number = 2;
    test_finish(Rados::aio_create_completion(&number, completed, safe)->pc);
    test_finish(Rados::aio_create_completion(&number, nullptr, safe)->pc);
    test_finish(Rados::aio_create_completion(&number, nullptr)->pc);
    number = 3;
    c = Rados::aio_create_completion(nullptr, nullptr);
    c->set_complete_callback(&number, completed);
    test_finish(c->pc);
    delete Rados::aio_create_completion(&number, completed);  // never used
}

void c() {
    char room[16];
    uint64_t size = 0;
    time_t when = 0;
    timespec then = {0, 0};
    show("rados_aio_wait_for_complete", rados_aio_wait_for_complete(at(0)));
    show("rados_aio_wait_for_complete_and_cb", rados_aio_wait_for_complete_and_cb(at(0)));
    show("rados_aio_wait_for_safe", rados_aio_wait_for_safe(at(0)));
    show("rados_aio_wait_for_safe_and_cb", rados_aio_wait_for_safe_and_cb(at(0)));
    show("rados_aio_get_return_value", rados_aio_get_return_value(at(0)));
    rados_aio_release(at(0));
    show("rados_aio_write", rados_aio_write(at(0), "text1", at(2), "text3", 4004u, 1099511627781u));
    show("rados_aio_append", rados_aio_append(at(0), "text1", at(2), "text3", 4004u));
    show("rados_aio_write_full", rados_aio_write_full(at(0), "text1", at(2), "text3", 4004u));
    show("rados_aio_writesame", rados_aio_writesame(at(0), "text1", at(2), "text3", 4004u, 4005u, 1099511627782u));
    show("rados_aio_remove", rados_aio_remove(at(0), "text1", at(2)));
    show("rados_aio_read", rados_aio_read(at(0), "text1", at(2), room, 4004u, 1099511627781u));
    show("rados_aio_stat", rados_aio_stat(at(0), "text1", at(2), &size, &when));
    show("rados_aio_write_op_operate", rados_aio_write_op_operate(at(0), at(1), at(2), "text3", &when, 105));
    show("rados_aio_write_op_operate2", rados_aio_write_op_operate2(at(0), at(1), at(2), "text3", &then, 105));
    show("rados_aio_read_op_operate", rados_aio_read_op_operate(at(0), at(1), at(2), "text3", 104));
    show("rados_write", rados_write(at(0), "text1", "text2", 4003u, 1099511627780u));
    show("rados_write_full", rados_write_full(at(0), "text1", "text2", 4003u));
    show("rados_append", rados_append(at(0), "text1", "text2", 4003u));
    show("rados_read", rados_read(at(0), "text1", room, 4003u, 1099511627780u));
    show("rados_remove", rados_remove(at(0), "text1"));
    show("rados_stat", rados_stat(at(0), "text1", &size, &when));
    show("rados_write_op_operate", rados_write_op_operate(at(0), at(1), "text2", &when, 104));
    show("rados_write_op_operate2", rados_write_op_operate2(at(0), at(1), "text2", &then, 104));
    show("rados_read_op_operate", rados_read_op_operate(at(0), at(1), "text2", 103));
    const std::string longest(700, 'n');  // longer than an event's other fields together
    show("rados_stat", rados_stat(at(0), longest.c_str(), &size, &when));
    int number = 4;
    void *made;
    show("rados_aio_create_completion2", rados_aio_create_completion2(&number, completed, &made));
    test_finish(made);
    show("rados_aio_create_completion", rados_aio_create_completion(&number, completed, safe, &made));
    test_finish(made);
    show("rados_aio_create_completion", rados_aio_create_completion(&number, nullptr, nullptr, &made));
    test_finish(made);
}
}  // namespace

int main() {
    cxx();
    c();
    std::fflush(stdout);
}
