// SPDX-License-Identifier: MIT
// The type opline._core.TableFile, for the module and for Core.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <memory>

namespace opline::parquet {
class PendingFile;
}

extern PyType_Spec opline_table_file_spec;
// nullptr, and a Python error, where the object is none or is closed.
std::shared_ptr<opline::parquet::PendingFile> opline_table_file_of(PyObject *);
// False, and OSError, where the file failed: `error` as File::error() has it.
bool opline_table_file_is_fine(int error);
