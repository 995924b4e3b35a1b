// SPDX-License-Identifier: MIT
// Columns that Python hands over as contiguous buffers.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <utility>

namespace opline::python {

// The contiguous bytes of an argument for as long as the guard lives.
class Buffer {
  public:
    Buffer() = default;
    Buffer(const Buffer &) = delete;
    Buffer &operator=(const Buffer &) = delete;
    ~Buffer() { PyBuffer_Release(&view); }
    Py_buffer view{};
    std::size_t size() const { return static_cast<std::size_t>(view.len); }
    template <class T>
    T at(std::size_t i) const {
        T v;
        std::memcpy(&v, static_cast<const char *>(view.buf) + i * sizeof(T), sizeof(T));
        return v;
    }
};

// Whether the columns, each with its width in bytes, have so many rows; else a Python error is set.
inline bool rows_match(std::initializer_list<std::pair<const Buffer *, std::size_t>> columns, std::size_t rows) {
    for (const auto &[buffer, width] : columns)
        if (buffer->size() != rows * width) {
            PyErr_SetString(PyExc_ValueError, "columns of different length");
            return false;
        }
    return true;
}

}  // namespace opline::python
