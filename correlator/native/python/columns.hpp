// SPDX-License-Identifier: MIT
// A column of a table as Python gets it.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <cstddef>

#include "base/table.hpp"

// (name, type, null_count, validity, data, offsets or None), Arrow's layout, little-endian. nullptr with an error set.
PyObject *opline_column_tuple(const opline::Column &c, std::size_t rows);
