// SPDX-License-Identifier: MIT
#include "core_feed.hpp"

#include <string_view>
#include <vector>

#include "core_state.hpp"
#include "guarded.hpp"

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

// None: the time is not known.
bool time_from(PyObject *value, std::int64_t &ns) {
    ns = value == Py_None ? kNoTime : PyLong_AsLongLong(value);
    return !PyErr_Occurred();
}

}  // namespace

PyObject *core_add_class(PyObject *self, PyObject *args) {
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
        ClassPlan plan = core_of(self).add_class(decl);
        state_of(self).wanted.resize(plan.id + 1);
        state_of(self).wanted[plan.id] = plan.wanted.size();
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

PyObject *core_add_stream(PyObject *self, PyObject *args) {
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
        ++state_of(self).streams;
        return PyLong_FromUnsignedLong(core_of(self).add_stream(decl));
    });
}

PyObject *core_event(PyObject *self, PyObject *args) {
    long long ts_ns;
    unsigned int cls, stream;
    PyObject *cpu, *values;
    if (!PyArg_ParseTuple(args, "LIIOO!", &ts_ns, &cls, &stream, &cpu, &PyTuple_Type, &values)) return nullptr;
    if (cls >= state_of(self).wanted.size() || stream >= state_of(self).streams ||
        static_cast<std::size_t>(PyTuple_GET_SIZE(values)) != state_of(self).wanted[cls]) {
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
        core_of(self).event(ev);
        Py_RETURN_NONE;
    });
}

PyObject *core_discarded(PyObject *self, PyObject *args) {
    unsigned int stream;
    long long begin_ns, end_ns;
    unsigned long long count;
    int packets;
    if (!PyArg_ParseTuple(args, "ILLKp", &stream, &begin_ns, &end_ns, &count, &packets)) return nullptr;
    if (stream >= state_of(self).streams) {
        PyErr_SetString(PyExc_ValueError, "no such stream");
        return nullptr;
    }
    return guarded([&]() -> PyObject * {
        core_of(self).gap({stream, packets ? Gap::Kind::kPackets : Gap::Kind::kEvents, begin_ns, end_ns, count, {}});
        Py_RETURN_NONE;
    });
}

PyObject *core_missing(PyObject *self, PyObject *args) {
    const char *stream;
    int kernel;
    PyObject *begin, *end;
    unsigned long long packets;
    std::int64_t begin_ns, end_ns;
    if (!PyArg_ParseTuple(args, "spOOK", &stream, &kernel, &begin, &end, &packets) || !time_from(begin, begin_ns) ||
        !time_from(end, end_ns))
        return nullptr;
    return guarded([&]() -> PyObject * {
        core_of(self).missing(stream, kernel ? Domain::kKernel : Domain::kUst, begin_ns, end_ns, packets);
        Py_RETURN_NONE;
    });
}

PyObject *core_expect_cpus(PyObject *self, PyObject *args) {
    const char *host;
    PyObject *list;
    if (!PyArg_ParseTuple(args, "sO!", &host, &PyList_Type, &list)) return nullptr;
    std::vector<std::uint32_t> cpus;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i)
        cpus.push_back(static_cast<std::uint32_t>(PyLong_AsUnsignedLong(PyList_GET_ITEM(list, i))));
    if (PyErr_Occurred()) return nullptr;
    return guarded([&]() -> PyObject * {
        core_of(self).expect_cpus(host, cpus);
        Py_RETURN_NONE;
    });
}

PyObject *core_finish(PyObject *self, PyObject *) {
    return guarded([&]() -> PyObject * {
        while (!core_of(self).finish()) {}
        Py_RETURN_NONE;
    });
}

}  // namespace opline::python
