// SPDX-License-Identifier: MIT
// The type opline._core.TableFile, for the module and for Core.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace opline::parquet {
class File;
}

extern PyType_Spec opline_table_file_spec;
// nullptr, and a Python error, where the object is none or is closed.
opline::parquet::File *opline_table_file_of(PyObject *);
// False, and OSError, where the file failed.
bool opline_table_file_is_fine(const opline::parquet::File &);
