// SPDX-License-Identifier: MIT
#include "sink_feed.hpp"

#include <string_view>

#include "guarded.hpp"
#include "reader_parts.hpp"

namespace opline::python {
namespace {

// None: absent. False on a Python error.
bool slot_from(PyObject *value, Slot &slot) {
    if (value == Py_None) {
        slot = Slot();
    } else if (PyUnicode_Check(value)) {
        Py_ssize_t size;
        const char *s = PyUnicode_AsUTF8AndSize(value, &size);
        if (!s) return false;
        slot = Slot::of(std::string_view(s, static_cast<std::size_t>(size)));
    } else if (PyFloat_Check(value)) {
        slot = Slot::of(PyFloat_AS_DOUBLE(value));
    } else if (PyLong_Check(value)) {
        int overflow = 0;
        long long v = PyLong_AsLongLongAndOverflow(value, &overflow);
        if (overflow > 0) {
            unsigned long long u = PyLong_AsUnsignedLongLong(value);
            if (PyErr_Occurred()) return false;
            slot = Slot::of(static_cast<std::uint64_t>(u));
        } else {
            slot = v < 0 ? Slot::of(static_cast<std::int64_t>(v)) : Slot::of(static_cast<std::uint64_t>(v));
        }
    } else {
        PyErr_SetString(PyExc_TypeError, "a field's value is None, int, float or str");
    }
    return !PyErr_Occurred();
}

}  // namespace

PyObject *feed_class(SinkFeed &feed, PyObject *args) {
    const char *name;
    int kernel;
    PyObject *fields;
    if (!PyArg_ParseTuple(args, "spO!", &name, &kernel, &PyList_Type, &fields)) return nullptr;
    return guarded([&]() -> PyObject * {
        ClassDecl decl;
        decl.name = name;
        decl.domain = kernel ? Domain::kKernel : Domain::kUst;
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(fields); ++i) {
            const char *field;
            int context;
            if (!PyArg_ParseTuple(PyList_GET_ITEM(fields, i), "sp", &field, &context)) return nullptr;
            decl.fields.push_back({field, FieldType::kOther, context ? FieldScope::kContext : FieldScope::kPayload});
        }
        ClassPlan plan = feed.to.add_class(decl);
        feed.wanted.resize(plan.id + 1);
        feed.wanted[plan.id] = plan.wanted.size();
        PyObject *wanted = PyList_New(0);
        if (!wanted) return nullptr;
        for (auto w : plan.wanted) {
            PyObject *n = PyLong_FromUnsignedLong(w);
            PyList_Append(wanted, n);
            Py_XDECREF(n);
        }
        return Py_BuildValue("(INi)", plan.id, wanted, plan.time_slot);
    });
}

PyObject *feed_stream(SinkFeed &feed, PyObject *args) {
    const char *host, *channel;
    int kernel;
    unsigned long long instance;
    if (!PyArg_ParseTuple(args, "spsK", &host, &kernel, &channel, &instance)) return nullptr;
    return guarded([&]() -> PyObject * {
        StreamDecl decl;
        decl.host = host;
        decl.domain = kernel ? Domain::kKernel : Domain::kUst;
        decl.channel = channel;
        decl.instance = instance;
        ++feed.streams;
        return PyLong_FromUnsignedLong(feed.to.add_stream(decl));
    });
}

PyObject *feed_event(SinkFeed &feed, PyObject *args) {
    long long ts_ns;
    unsigned int cls, stream;
    PyObject *cpu, *values;
    if (!PyArg_ParseTuple(args, "LIIOO!", &ts_ns, &cls, &stream, &cpu, &PyTuple_Type, &values)) return nullptr;
    if (cls >= feed.wanted.size() || stream >= feed.streams ||
        static_cast<std::size_t>(PyTuple_GET_SIZE(values)) != feed.wanted[cls]) {
        PyErr_SetString(PyExc_ValueError, "no such class or stream, or not as many values as the class wants");
        return nullptr;
    }
    return guarded([&]() -> PyObject * {
        std::vector<Slot> slots(static_cast<std::size_t>(PyTuple_GET_SIZE(values)) + 1);
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(values); ++i)
            if (!slot_from(PyTuple_GET_ITEM(values, i), slots[static_cast<std::size_t>(i)])) return nullptr;
        Event ev{cls, 0, stream, kNoCpu, ts_ns, slots.data()};
        if (cpu != Py_None) ev.cpu = static_cast<std::uint32_t>(PyLong_AsUnsignedLong(cpu));
        if (PyErr_Occurred()) return nullptr;
        unlocked([&] {  // a printer writes, into a pipe that may be full for long
            feed.to.events(&ev, &ev + 1);
            return true;
        });
        Py_RETURN_NONE;
    });
}

PyObject *feed_discarded(SinkFeed &feed, PyObject *args) {
    unsigned int stream;
    long long begin_ns, end_ns;
    unsigned long long count;
    int packets;
    if (!PyArg_ParseTuple(args, "ILLKp", &stream, &begin_ns, &end_ns, &count, &packets)) return nullptr;
    if (stream >= feed.streams) {
        PyErr_SetString(PyExc_ValueError, "no such stream");
        return nullptr;
    }
    return guarded([&]() -> PyObject * {
        feed.to.gap({stream, packets ? Gap::Kind::kPackets : Gap::Kind::kEvents, begin_ns, end_ns, count, {}});
        Py_RETURN_NONE;
    });
}

}  // namespace opline::python
