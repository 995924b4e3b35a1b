// SPDX-License-Identifier: MIT
#include "core_feed.hpp"

#include <vector>

#include "core_state.hpp"
#include "guarded.hpp"

namespace opline::python {
namespace {

// None: the time is not known.
bool time_from(PyObject *value, std::int64_t &ns) {
    ns = value == Py_None ? kNoTime : PyLong_AsLongLong(value);
    return !PyErr_Occurred();
}

}  // namespace

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

PyObject *core_unreadable(PyObject *self, PyObject *args) {
    const char *host, *channel;
    int kernel;
    PyObject *begin, *end;
    std::int64_t begin_ns, end_ns;
    if (!PyArg_ParseTuple(args, "spsOO", &host, &kernel, &channel, &begin, &end) || !time_from(begin, begin_ns) ||
        !time_from(end, end_ns))
        return nullptr;
    return guarded([&]() -> PyObject * {
        const Domain domain = kernel ? Domain::kKernel : Domain::kUst;
        core_of(self).know({host, {}, {{domain, channel, begin_ns, end_ns}}});
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
        core_of(self).know({host, std::move(cpus), {}});
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
