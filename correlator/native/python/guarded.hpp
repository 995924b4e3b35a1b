// SPDX-License-Identifier: MIT
// Where C++ exceptions end.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <exception>
#include <new>

namespace opline::python {

// What f() returns; a std::runtime_error becomes ValueError with its one line.
template <class F>
PyObject *guarded(F &&f) {
    try {
        return f();
    } catch (const std::bad_alloc &) {
        return PyErr_NoMemory();
    } catch (const std::exception &e) {
        PyErr_SetString(PyExc_ValueError, e.what());
        return nullptr;
    }
}

}  // namespace opline::python
