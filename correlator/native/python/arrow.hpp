// SPDX-License-Identifier: MIT
// Columns from DuckDB, and columns for DuckDB, as streams of Arrow's C interface.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

extern PyType_Spec opline_arrow_stream_spec;  // opline._core.ArrowStream: columns in
// arrow_capsule(columns, pieces): columns out.
PyObject *opline_arrow_capsule(PyObject *, PyObject *args);
