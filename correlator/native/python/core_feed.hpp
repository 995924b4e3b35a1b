// SPDX-License-Identifier: MIT
// Methods of opline._core.Core that feed it: the slow way in, for text formats and tests. One call per event, fields as
// Python values. core_type.cpp lists them with what they take.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace opline::python {

PyObject *core_add_class(PyObject *self, PyObject *args);
PyObject *core_add_stream(PyObject *self, PyObject *args);
PyObject *core_event(PyObject *self, PyObject *args);
PyObject *core_discarded(PyObject *self, PyObject *args);
PyObject *core_missing(PyObject *self, PyObject *args);
PyObject *core_expect_cpus(PyObject *self, PyObject *args);
PyObject *core_finish(PyObject *self, PyObject *);

}  // namespace opline::python
