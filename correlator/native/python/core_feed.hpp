// SPDX-License-Identifier: MIT
// Methods of opline._core.Core that tell it what is missing, and that there is no more.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace opline::python {

PyObject *core_missing(PyObject *self, PyObject *args);
PyObject *core_unreadable(PyObject *self, PyObject *args);
PyObject *core_expect_cpus(PyObject *self, PyObject *args);
PyObject *core_finish(PyObject *self, PyObject *);

}  // namespace opline::python
