// SPDX-License-Identifier: MIT
// opline._core: this folder is all that knows both Python and the core. Buffers cross the boundary, not objects.
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "base/cookie.hpp"
#include "core_type.hpp"
#include "csv.hpp"
#include "dropper_type.hpp"
#include "printer_type.hpp"
#include "reader_type.hpp"
#include "statistics.hpp"
#include "table_file.hpp"

namespace {

bool add_type(PyObject *m, const char *name, PyType_Spec *spec) {
    PyObject *type = PyType_FromSpec(spec);
    const bool added = type && PyModule_AddObjectRef(m, name, type) == 0;
    Py_XDECREF(type);
    return added;
}

PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "opline._core", "The native core.", -1, nullptr, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__core() {
    PyObject *m = PyModule_Create(&module);
    if (!m) return nullptr;
    opline_unsupported = PyErr_NewException("opline._core.Unsupported", PyExc_ValueError, nullptr);
    if (!opline_unsupported || PyModule_AddObjectRef(m, "Unsupported", opline_unsupported) < 0 ||
        !add_type(m, "Core", &opline_core_spec) || !add_type(m, "NativeReader", &opline_reader_spec) ||
        !add_type(m, "Printer", &opline_printer_spec) || !add_type(m, "Dropper", &opline_dropper_spec) ||
        !add_type(m, "StageStatistics", &opline_statistics_spec) || !add_type(m, "OpCsv", &opline_op_csv_spec) ||
        !add_type(m, "TableFile", &opline_table_file_spec) ||
        PyModule_AddStringConstant(m, "COOKIE", opline::build_cookie()) < 0) {
        Py_DECREF(m);
        return nullptr;
    }
    return m;
}
