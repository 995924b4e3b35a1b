// SPDX-License-Identifier: MIT
// What every type of the module has.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <array>

namespace opline::python {

using TypeSlots = std::array<PyType_Slot, 5>;

inline TypeSlots type_slots(const char *doc, PyMethodDef *methods, newfunc make, destructor end) {
    return {{{Py_tp_dealloc, reinterpret_cast<void *>(end)},
             {Py_tp_doc, const_cast<char *>(doc)},
             {Py_tp_methods, methods},
             {Py_tp_new, reinterpret_cast<void *>(make)},
             {0, nullptr}}};
}

}  // namespace opline::python
