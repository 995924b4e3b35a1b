// SPDX-License-Identifier: MIT
// The type opline._core.OpCsv, for the module and for Core.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace opline {
class OpCsv;
}

extern PyType_Spec opline_op_csv_spec;
// nullptr, and a Python error, where the object is none.
opline::OpCsv *opline_op_csv_of(PyObject *);
