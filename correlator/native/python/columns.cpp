// SPDX-License-Identifier: MIT
#include "columns.hpp"

#include <cstring>

namespace {

PyObject *bytes_of(const void *data, std::size_t size) {
    return PyBytes_FromStringAndSize(static_cast<const char *>(data), static_cast<Py_ssize_t>(size));
}

}  // namespace

PyObject *opline_column_tuple(const opline::Column &c, std::size_t rows) {
    const auto validity = c.validity_bits(rows);
    PyObject *offsets = Py_NewRef(Py_None), *data = nullptr;
    if (c.type == opline::ColumnType::kText) {
        Py_DECREF(offsets);
        offsets = PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>((rows + 1) * 4));
        if (!offsets) return nullptr;
        std::memset(PyBytes_AS_STRING(offsets), 0, 4);
        std::memcpy(PyBytes_AS_STRING(offsets) + 4, c.values(), rows * 4);
        data = bytes_of(c.text.data(), c.text.size());
    } else if (c.type == opline::ColumnType::kBool) {
        const auto bits = c.value_bits(rows);
        data = bytes_of(bits.data(), bits.size());
    } else {
        data = bytes_of(c.values(), rows * c.width());
    }
    return Py_BuildValue("(ssnNNN)", c.name.c_str(), opline::type_name(c.type), static_cast<Py_ssize_t>(c.nulls),
                         bytes_of(validity.data(), validity.size()), data, offsets);
}
