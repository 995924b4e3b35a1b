// SPDX-License-Identifier: MIT
#include "feed_type.hpp"

#include <exception>
#include <memory>
#include <string_view>

#include "buffer.hpp"
#include "feed/line.hpp"
#include "feed/ring.hpp"
#include "feed/text.hpp"
#include "reader_parts.hpp"
#include "type_slots.hpp"

namespace {

using namespace opline::feed;
using opline::python::Buffer;
using opline::python::guarded;
using opline::python::text_of;
using opline::python::time_or_none;

template <class Feed>
struct FeedObject {
    PyObject_HEAD
    Feed *feed;
    PyObject *consumer;  // kept alive while the feed pushes into it
};

template <class Feed>
Feed &feed_of(PyObject *self) {
    return *reinterpret_cast<FeedObject<Feed> *>(self)->feed;
}

// Of anything with address(): a Core, a Dropper.
template <class Feed, class... Options>
PyObject *feed_of_consumer(PyTypeObject *type, PyObject *consumer, Options... options) {
    opline::EventSink *sink = opline::python::sink_from(consumer);
    if (!sink) return nullptr;
    return guarded([&]() -> PyObject * {
        auto feed = std::make_unique<Feed>(*sink, options...);
        auto self = reinterpret_cast<FeedObject<Feed> *>(type->tp_alloc(type, 0));
        if (!self) return nullptr;
        self->feed = feed.release();
        self->consumer = Py_NewRef(consumer);
        return reinterpret_cast<PyObject *>(self);
    });
}

PyObject *text_new(PyTypeObject *type, PyObject *args, PyObject *) {
    PyObject *consumer;
    int start = 0, done = 0;
    if (!PyArg_ParseTuple(args, "O|pp", &consumer, &start, &done)) return nullptr;
    return feed_of_consumer<TextFeed>(type, consumer, StandsFor{start != 0, done != 0});
}

PyObject *ring_new(PyTypeObject *type, PyObject *args, PyObject *) {
    PyObject *consumer;
    if (!PyArg_ParseTuple(args, "O", &consumer)) return nullptr;
    return feed_of_consumer<RingFeed>(type, consumer);
}

template <class Feed>
void feed_dealloc(PyObject *object) {
    auto self = reinterpret_cast<FeedObject<Feed> *>(object);
    PyTypeObject *type = Py_TYPE(object);
    delete self->feed;
    Py_XDECREF(self->consumer);
    type->tp_free(object);
    Py_DECREF(type);
}

// Without Python's lock.
template <class F>
PyObject *apart(F &&f) {
    return guarded([&]() -> PyObject * {
        std::exception_ptr error;
        Py_BEGIN_ALLOW_THREADS
        try {
            f();
        } catch (...) {
            error = std::current_exception();
        }
        Py_END_ALLOW_THREADS
        if (error) std::rethrow_exception(error);
        Py_RETURN_NONE;
    });
}

template <class Feed>
PyObject *feed_feed(PyObject *self, PyObject *bytes) {
    Buffer buffer;
    if (PyObject_GetBuffer(bytes, &buffer.view, PyBUF_SIMPLE) < 0) return nullptr;
    return apart([&] { feed_of<Feed>(self).feed({static_cast<const char *>(buffer.view.buf), buffer.size()}); });
}

PyObject *text_end(PyObject *self, PyObject *) {
    return apart([&] { feed_of<TextFeed>(self).end(); });
}

PyObject *text_counts(PyObject *self, PyObject *) {
    const TextFeed &feed = feed_of<TextFeed>(self);
    return Py_BuildValue("(KKK)", static_cast<unsigned long long>(feed.lines()),
                         static_cast<unsigned long long>(feed.events()),
                         static_cast<unsigned long long>(feed.unreadable()));
}

PyObject *text_unread(PyObject *self, PyObject *) {
    return opline::python::list_of(feed_of<TextFeed>(self).first_unread(), [](const auto &one) {
        return Py_BuildValue("(KN)", static_cast<unsigned long long>(one.number), text_of(one.text));
    });
}

PyObject *ring_counts(PyObject *self, PyObject *) {
    const RingFeed &feed = feed_of<RingFeed>(self);
    return Py_BuildValue("(NNKK)", time_or_none(feed.first_ns()), time_or_none(feed.until_ns()),
                         static_cast<unsigned long long>(feed.events()), static_cast<unsigned long long>(feed.lost()));
}

PyObject *ring_processes(PyObject *self, PyObject *) {
    return guarded([&]() -> PyObject * {
        PyObject *found = PyDict_New();
        if (!found) return nullptr;
        for (const auto &[tid, pid] : feed_of<RingFeed>(self).processes()) {
            PyObject *key = PyLong_FromLong(static_cast<std::int32_t>(tid));
            PyObject *value = PyLong_FromLong(static_cast<std::int32_t>(pid));
            const bool fine = key && value && PyDict_SetItem(found, key, value) == 0;
            Py_XDECREF(key);
            Py_XDECREF(value);
            if (!fine) {
                Py_DECREF(found);
                return nullptr;
            }
        }
        return found;
    });
}

PyMethodDef text_methods[] = {
    {"feed", feed_feed<TextFeed>, METH_O,
     "feed(bytes): in whatever pieces; a line that is cut off waits for its rest."},
    {"end", text_end, METH_NOARGS, "There are no more bytes; the consumer is not finished by this."},
    {"counts", text_counts, METH_NOARGS, "(lines, events, lines that ought to be events and can't be read)"},
    {"unread", text_unread, METH_NOARGS, "[(number, text)] of the first lines that could not be read."},
    {nullptr, nullptr, 0, nullptr}};

PyMethodDef ring_methods[] = {
    {"feed", feed_feed<RingFeed>, METH_O, "feed(bytes): in whatever pieces; a record that is cut off waits."},
    {"counts", ring_counts, METH_NOARGS,
     "(first ns or None, ns up to which all has come or None, events, lost events)"},
    {"processes", ring_processes, METH_NOARGS, "{thread: process} of the threads that were seen lately."},
    {nullptr, nullptr, 0, nullptr}};

opline::python::TypeSlots text_slots = opline::python::type_slots(
    "TextFeed(consumer, start, done): lines of perf script, ftrace and trace-cmd to a Core. "
    "block_io_start stands for the issue, block_io_done for the completion.",
    text_methods, text_new, feed_dealloc<TextFeed>);
opline::python::TypeSlots ring_slots = opline::python::type_slots(
    "RingFeed(consumer): records of the BPF ring to a Core.", ring_methods, ring_new, feed_dealloc<RingFeed>);

// name, value; a value that can't be made has set Python's error
bool set_item(PyObject *dict, const char *name, PyObject *value) {
    const bool fine = value && PyDict_SetItemString(dict, name, value) == 0;
    Py_XDECREF(value);
    return fine;
}

PyObject *payload_of(const Line &line) {
    PyObject *found = PyDict_New();
    if (!found) return nullptr;
    const Extra extra = kLineEvents[line.event].extra;
    bool fine =
        set_item(found, "dev", PyLong_FromUnsignedLong(line.dev)) &&
        set_item(found, "sector", PyLong_FromUnsignedLongLong(line.sector)) &&
        set_item(found, "rwbs", text_of(line.rwbs)) &&
        set_item(found, extra == Extra::kSplit ? "new_sector" : "nr_sector", PyLong_FromUnsignedLongLong(line.number));
    if (fine && extra == Extra::kError) fine = set_item(found, "error", PyLong_FromLongLong(line.error));
    if (fine && extra == Extra::kOld)
        fine = set_item(found, "old_dev", PyLong_FromUnsignedLong(line.old_dev)) &&
               set_item(found, "old_sector", PyLong_FromUnsignedLongLong(line.old_sector));
    if (fine) return found;
    Py_DECREF(found);
    return nullptr;
}

}  // namespace

PyType_Spec opline_text_feed_spec = {"opline._core.TextFeed", sizeof(FeedObject<TextFeed>), 0, Py_TPFLAGS_DEFAULT,
                                     text_slots.data()};
PyType_Spec opline_ring_feed_spec = {"opline._core.RingFeed", sizeof(FeedObject<RingFeed>), 0, Py_TPFLAGS_DEFAULT,
                                     ring_slots.data()};

PyObject *opline_parse_block_line(PyObject *, PyObject *text) {
    Buffer buffer;
    if (PyObject_GetBuffer(text, &buffer.view, PyBUF_SIMPLE) < 0) return nullptr;
    Line line;
    if (!parse_line({static_cast<const char *>(buffer.view.buf), buffer.size()}, line)) Py_RETURN_NONE;
    PyObject *payload = payload_of(line);
    if (!payload) return nullptr;
    return Py_BuildValue(
        "(s#LINLN)", kLineEvents[line.event].name.data(), static_cast<Py_ssize_t>(kLineEvents[line.event].name.size()),
        static_cast<long long>(line.ts_ns), line.cpu, text_of(line.comm), static_cast<long long>(line.tid), payload);
}

PyObject *opline_is_block_line(PyObject *, PyObject *text) {
    Buffer buffer;
    if (PyObject_GetBuffer(text, &buffer.view, PyBUF_SIMPLE) < 0) return nullptr;
    return PyBool_FromLong(is_block_line({static_cast<const char *>(buffer.view.buf), buffer.size()}));
}
