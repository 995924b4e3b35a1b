// SPDX-License-Identifier: MIT
// What the types that read traces have in common.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <exception>
#include <string>
#include <vector>

#include "ctf/metadata/types.hpp"
#include "event/event.hpp"
#include "guarded.hpp"
#include "reader_type.hpp"

namespace opline::python {

template <class F>
PyObject *guarded_reader(F &&f) {
    return guarded([&]() -> PyObject * {
        try {
            return f();
        } catch (const ctf::Unsupported &e) {
            raise(opline_unsupported, e.what());
            return nullptr;
        }
    });
}

// What f() gives, without Python's lock.
template <class F>
bool unlocked(F &&f) {
    bool out = false;
    std::exception_ptr error;
    Py_BEGIN_ALLOW_THREADS
    try {
        out = f();
    } catch (...) {
        error = std::current_exception();
    }
    Py_END_ALLOW_THREADS
    if (error) std::rethrow_exception(error);
    return out;
}

inline PyObject *time_or_none(std::int64_t ns) {
    if (ns == kNoTime) Py_RETURN_NONE;
    return PyLong_FromLongLong(ns);
}

// False on a Python error.
inline bool paths_from(PyObject *list, std::vector<std::string> &out) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
        PyObject *bytes = PyUnicode_EncodeFSDefault(PyList_GET_ITEM(list, i));  // a path need not be UTF-8
        if (!bytes) return false;
        out.emplace_back(PyBytes_AS_STRING(bytes), static_cast<std::size_t>(PyBytes_GET_SIZE(bytes)));
        Py_DECREF(bytes);
    }
    return true;
}

// Anything with address(): a Core, a Printer. nullptr on a Python error.
inline EventSink *sink_from(PyObject *consumer) {
    PyObject *address = PyObject_CallMethod(consumer, "address", nullptr);
    if (!address) return nullptr;
    void *p = PyLong_AsVoidPtr(address);
    Py_DECREF(address);
    return static_cast<EventSink *>(p);
}

}  // namespace opline::python
