// SPDX-License-Identifier: MIT
#include "wire_type.hpp"

#include <memory>

#include "event/wire.hpp"
#include "reader_parts.hpp"
#include "type_slots.hpp"

namespace {

using opline::python::guarded;

struct WireSinkObject {
    PyObject_HEAD
    opline::WireSink *sink;
};

PyObject *wire_sink_new(PyTypeObject *type, PyObject *args, PyObject *) {
    int socket;
    if (!PyArg_ParseTuple(args, "i", &socket)) return nullptr;
    return guarded([&]() -> PyObject * {
        auto sink = std::make_unique<opline::WireSink>(socket);
        auto self = reinterpret_cast<WireSinkObject *>(type->tp_alloc(type, 0));
        if (!self) return nullptr;
        self->sink = sink.release();
        return reinterpret_cast<PyObject *>(self);
    });
}

void wire_sink_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    delete reinterpret_cast<WireSinkObject *>(self)->sink;
    type->tp_free(self);
    Py_DECREF(type);
}

PyObject *wire_sink_address(PyObject *self, PyObject *) {
    opline::EventSink *consumer = reinterpret_cast<WireSinkObject *>(self)->sink;
    return PyLong_FromVoidPtr(consumer);
}

struct WireFeedObject {
    PyObject_HEAD
    opline::WireFeed *feed;
    PyObject *consumer;  // kept alive while events are handed to it
};

PyObject *wire_feed_new(PyTypeObject *type, PyObject *args, PyObject *) {
    int socket;
    PyObject *consumer;
    if (!PyArg_ParseTuple(args, "iO", &socket, &consumer)) return nullptr;
    opline::EventSink *sink = opline::python::sink_from(consumer);
    if (!sink) return nullptr;
    return guarded([&]() -> PyObject * {
        auto feed = std::make_unique<opline::WireFeed>(socket, *sink);
        auto self = reinterpret_cast<WireFeedObject *>(type->tp_alloc(type, 0));
        if (!self) return nullptr;
        self->feed = feed.release();
        self->consumer = Py_NewRef(consumer);
        return reinterpret_cast<PyObject *>(self);
    });
}

void wire_feed_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    auto *object = reinterpret_cast<WireFeedObject *>(self);
    delete object->feed;
    Py_XDECREF(object->consumer);
    type->tp_free(self);
    Py_DECREF(type);
}

PyObject *wire_feed_run(PyObject *self, PyObject *) {
    opline::WireFeed &feed = *reinterpret_cast<WireFeedObject *>(self)->feed;
    return guarded([&]() -> PyObject * {
        auto state = opline::WireFeed::State::kMore;
        opline::python::unlocked([&] {
            state = feed.run();
            return true;
        });
        if (state == opline::WireFeed::State::kCut) {
            PyErr_SetString(PyExc_EOFError, "the sender ended before it had finished");
            return nullptr;
        }
        return PyBool_FromLong(state == opline::WireFeed::State::kMore);
    });
}

PyMethodDef wire_sink_methods[] = {
    {"address", wire_sink_address, METH_NOARGS, "Address of the sender as a consumer of events."},
    {nullptr, nullptr, 0, nullptr}};

PyMethodDef wire_feed_methods[] = {{"run", wire_feed_run, METH_NOARGS,
                                    "run() -> bool: hand on what has come; False: that was all, and the consumer is "
                                    "finished. Raises EOFError where the "
                                    "sender ended before it had finished."},
                                   {nullptr, nullptr, 0, nullptr}};

opline::python::TypeSlots wire_sink_slots =
    opline::python::type_slots("WireSink(socket): sends the events that it gets to another process.", wire_sink_methods,
                               wire_sink_new, wire_sink_dealloc);
opline::python::TypeSlots wire_feed_slots = opline::python::type_slots(
    "WireFeed(socket, consumer): hands the events of another process's WireSink to a Core or Printer.",
    wire_feed_methods, wire_feed_new, wire_feed_dealloc);

}  // namespace

PyType_Spec opline_wire_sink_spec = {"opline._core.WireSink", sizeof(WireSinkObject), 0, Py_TPFLAGS_DEFAULT,
                                     wire_sink_slots.data()};
PyType_Spec opline_wire_feed_spec = {"opline._core.WireFeed", sizeof(WireFeedObject), 0, Py_TPFLAGS_DEFAULT,
                                     wire_feed_slots.data()};
