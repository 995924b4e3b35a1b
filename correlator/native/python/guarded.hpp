// SPDX-License-Identifier: MIT
// Where C++ exceptions end.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <cstring>
#include <exception>
#include <new>

namespace opline::python {

// Raises `type` with a text that may quote bytes of an input: those outside of UTF-8 become \\xff.
inline void raise(PyObject *type, const char *what) {
    PyObject *text = PyUnicode_DecodeUTF8(what, static_cast<Py_ssize_t>(std::strlen(what)), "backslashreplace");
    if (!text) return;
    PyErr_SetObject(type, text);
    Py_DECREF(text);
}

// What f() returns; a std::runtime_error becomes ValueError with its one line.
template <class F>
PyObject *guarded(F &&f) {
    try {
        return f();
    } catch (const std::bad_alloc &) {
        return PyErr_NoMemory();
    } catch (const std::exception &e) {
        raise(PyExc_ValueError, e.what());
        return nullptr;
    }
}

}  // namespace opline::python
