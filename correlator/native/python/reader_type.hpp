// SPDX-License-Identifier: MIT
// The type opline._core.NativeReader, for the module.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

extern PyType_Spec opline_reader_spec;
extern PyObject *opline_unsupported;  // the exception opline._core.Unsupported, made by the module
