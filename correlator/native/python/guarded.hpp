// SPDX-License-Identifier: MIT
// Where C++ exceptions end.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <exception>
#include <new>
#include <string_view>

namespace opline::python {

// A text that may have bytes of an input: those outside of UTF-8 become \\xff.
inline PyObject *text_of(std::string_view bytes) {
    return PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "backslashreplace");
}

// A list of what `item` makes of each; nullptr on a Python error.
template <class All, class Item>
PyObject *list_of(const All &all, Item &&item) {
    PyObject *list = PyList_New(0);
    if (!list) return nullptr;
    for (const auto &one : all) {
        PyObject *made = item(one);
        if (!made || PyList_Append(list, made) < 0) {
            Py_XDECREF(made);
            Py_DECREF(list);
            return nullptr;
        }
        Py_DECREF(made);
    }
    return list;
}

inline void raise(PyObject *type, const char *what) {
    PyObject *text = text_of(what);
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
