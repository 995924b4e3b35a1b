// SPDX-License-Identifier: MIT
#include "blktrace_type.hpp"

#include <memory>
#include <string_view>
#include <vector>

#include "buffer.hpp"
#include "feed/blktrace.hpp"
#include "reader_parts.hpp"
#include "type_slots.hpp"

namespace {

using opline::feed::BlktraceFeed;
using opline::feed::Plugs;
using opline::python::Buffer;
using opline::python::guarded;
using opline::python::list_of;
using opline::python::time_or_none;

struct BlktraceObject {
    PyObject_HEAD
    std::vector<std::unique_ptr<Buffer>> *buffers;
    BlktraceFeed *feed;
    PyObject *consumer;  // kept alive while events are handed to it
};

BlktraceFeed &blktrace_of(PyObject *self) { return *reinterpret_cast<BlktraceObject *>(self)->feed; }

PyObject *blktrace_new(PyTypeObject *type, PyObject *args, PyObject *) {
    PyObject *consumer, *files;
    int unordered;
    if (!PyArg_ParseTuple(args, "OO!p", &consumer, &PyList_Type, &files, &unordered)) return nullptr;
    opline::EventSink *sink = opline::python::sink_from(consumer);
    if (!sink) return nullptr;
    return guarded([&]() -> PyObject * {
        auto buffers = std::make_unique<std::vector<std::unique_ptr<Buffer>>>();
        std::vector<std::string_view> bytes;
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(files); ++i) {
            auto buffer = std::make_unique<Buffer>();
            if (PyObject_GetBuffer(PyList_GET_ITEM(files, i), &buffer->view, PyBUF_SIMPLE) < 0) return nullptr;
            bytes.emplace_back(static_cast<const char *>(buffer->view.buf), buffer->size());
            buffers->push_back(std::move(buffer));
        }
        auto feed = std::make_unique<BlktraceFeed>(*sink, bytes, unordered != 0);
        auto self = reinterpret_cast<BlktraceObject *>(type->tp_alloc(type, 0));
        if (!self) return nullptr;
        self->buffers = buffers.release();
        self->feed = feed.release();
        self->consumer = Py_NewRef(consumer);
        return reinterpret_cast<PyObject *>(self);
    });
}

void blktrace_dealloc(PyObject *object) {
    auto self = reinterpret_cast<BlktraceObject *>(object);
    PyTypeObject *type = Py_TYPE(object);
    delete self->feed;
    delete self->buffers;
    Py_XDECREF(self->consumer);
    type->tp_free(object);
    Py_DECREF(type);
}

PyObject *blktrace_run(PyObject *self, PyObject *most) {
    const unsigned long long events = PyLong_AsUnsignedLongLong(most);
    if (PyErr_Occurred()) return nullptr;
    return guarded([&]() -> PyObject * {
        bool more = false;
        opline::python::unlocked([&] {
            more = blktrace_of(self).run(events);
            return true;
        });
        return PyBool_FromLong(more);
    });
}

PyObject *blktrace_counts(PyObject *self, PyObject *) {
    const BlktraceFeed &feed = blktrace_of(self);
    return Py_BuildValue("(KKN)", static_cast<unsigned long long>(feed.events()),
                         static_cast<unsigned long long>(feed.bytes()), time_or_none(feed.origin_ns()));
}

PyObject *blktrace_files(PyObject *self, PyObject *) {
    return list_of(blktrace_of(self).files(), [](const opline::feed::BlktraceFile &file) {
        PyObject *version = file.other_version() ? PyLong_FromLong(*file.other_version()) : Py_NewRef(Py_None);
        return Py_BuildValue("(KN)", static_cast<unsigned long long>(file.unread()), version);
    });
}

PyObject *told(const Plugs &plugs) {
    return guarded([&] {
        return list_of(plugs.told(), [](const auto &one) {
            const auto &[dev, of] = one;
            const auto number = [](std::uint64_t value) { return static_cast<unsigned long long>(value); };
            return Py_BuildValue("{sI sK sK sK sK sK sL}", "dev", dev, "plugs", number(of.plugs), "timers",
                                 number(of.timers), "ios", number(of.ios), "timer_ios", number(of.timer_ios),
                                 "plugged_ns", number(of.plugged_ns), "observed_ns",
                                 static_cast<long long>(of.last_ns - of.first_ns));
        });
    });
}

PyObject *blktrace_plugs(PyObject *self, PyObject *) { return told(blktrace_of(self).plugs()); }

struct PlugsObject {
    PyObject_HEAD
    Plugs *plugs;
};

Plugs &plugs_of(PyObject *self) { return *reinterpret_cast<PlugsObject *>(self)->plugs; }

PyObject *plugs_new(PyTypeObject *type, PyObject *, PyObject *) {
    return guarded([&]() -> PyObject * {
        auto plugs = std::make_unique<Plugs>();
        auto self = reinterpret_cast<PlugsObject *>(type->tp_alloc(type, 0));
        if (!self) return nullptr;
        self->plugs = plugs.release();
        return reinterpret_cast<PyObject *>(self);
    });
}

void plugs_dealloc(PyObject *object) {
    PyTypeObject *type = Py_TYPE(object);
    delete reinterpret_cast<PlugsObject *>(object)->plugs;
    type->tp_free(object);
    Py_DECREF(type);
}

PyObject *plugs_saw(PyObject *self, PyObject *args) {
    unsigned int dev;
    long long ts_ns;
    if (!PyArg_ParseTuple(args, "IL", &dev, &ts_ns)) return nullptr;
    plugs_of(self).saw(dev, ts_ns);
    Py_RETURN_NONE;
}

PyObject *plugs_plug(PyObject *self, PyObject *args) {
    unsigned int dev;
    long long ts_ns;
    if (!PyArg_ParseTuple(args, "IL", &dev, &ts_ns)) return nullptr;
    plugs_of(self).plug(dev, ts_ns);
    Py_RETURN_NONE;
}

PyObject *plugs_unplug(PyObject *self, PyObject *args) {
    unsigned int dev;
    long long ts_ns;
    unsigned long long ios;
    int timer;
    if (!PyArg_ParseTuple(args, "ILKp", &dev, &ts_ns, &ios, &timer)) return nullptr;
    plugs_of(self).unplug(dev, ts_ns, ios, timer != 0);
    Py_RETURN_NONE;
}

PyObject *plugs_told(PyObject *self, PyObject *) { return told(plugs_of(self)); }

PyMethodDef plugs_methods[] = {{"saw", plugs_saw, METH_VARARGS, "saw(device, ns): an event of an I/O"},
                               {"plug", plugs_plug, METH_VARARGS, "plug(device, ns): P"},
                               {"unplug", plugs_unplug, METH_VARARGS, "unplug(device, ns, I/Os, by a timer): U, UT"},
                               {"told", plugs_told, METH_NOARGS, "[{name: number}] of the devices that were plugged"},
                               {nullptr, nullptr, 0, nullptr}};

opline::python::TypeSlots plugs_slots = opline::python::type_slots(
    "Plugs(): how often and how long each device was plugged.", plugs_methods, plugs_new, plugs_dealloc);

PyMethodDef blktrace_methods[] = {
    {"run", blktrace_run, METH_O,
     "run(most) -> bool: push about so many events; False: that was all, or a file can't be read."},
    {"counts", blktrace_counts, METH_NOARGS, "(events, bytes read, offset to the time of day in ns or None)"},
    {"files", blktrace_files, METH_NOARGS,
     "[(bytes that are not read, another version than the one that is read, or None)]; version -1: no record at all"},
    {"plugs", blktrace_plugs, METH_NOARGS, "[{name: number}] of the devices that were plugged, as Plugs.told()"},
    {nullptr, nullptr, 0, nullptr}};

opline::python::TypeSlots blktrace_slots = opline::python::type_slots(
    "BlktraceFeed(consumer, [bytes of a file], unordered): blktrace's files to a Core or a Printer.", blktrace_methods,
    blktrace_new, blktrace_dealloc);

}  // namespace

PyType_Spec opline_blktrace_feed_spec = {"opline._core.BlktraceFeed", sizeof(BlktraceObject), 0, Py_TPFLAGS_DEFAULT,
                                         blktrace_slots.data()};
PyType_Spec opline_plugs_spec = {"opline._core.Plugs", sizeof(PlugsObject), 0, Py_TPFLAGS_DEFAULT, plugs_slots.data()};
