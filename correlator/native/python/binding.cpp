// SPDX-License-Identifier: MIT
// opline._core: this folder is all that knows both Python and the core. Buffers cross the boundary, not objects.
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "arrow.hpp"
#include "blktrace_type.hpp"
#include "base/cookie.hpp"
#include "base/lost_pages.hpp"
#include "core_type.hpp"
#include "csv.hpp"
#include "dropper_type.hpp"
#include "feed_type.hpp"
#include "follower_type.hpp"
#include "printer_type.hpp"
#include "reader_type.hpp"
#include "statistics.hpp"
#include "table_file.hpp"
#include "wire_type.hpp"

namespace {

bool add_type(PyObject *m, const char *name, PyType_Spec *spec) {
    PyObject *type = PyType_FromSpec(spec);
    const bool added = type && PyModule_AddObjectRef(m, name, type) == 0;
    Py_XDECREF(type);
    return added;
}

PyObject *outlive_lost_pages(PyObject *, PyObject *) {
    opline::outlive_lost_pages();
    Py_RETURN_NONE;
}

PyObject *take_file_with_lost_pages(PyObject *, PyObject *) {
    const std::string path = opline::take_file_with_lost_pages();
    if (path.empty()) Py_RETURN_NONE;
    return PyUnicode_DecodeFSDefaultAndSize(path.data(), static_cast<Py_ssize_t>(path.size()));
}

PyObject *keep_if_shorter(PyObject *, PyObject *args) {
    PyObject *path = nullptr;
    unsigned long long bytes = 0;
    if (!PyArg_ParseTuple(args, "O&K", PyUnicode_FSConverter, &path, &bytes)) return nullptr;
    opline::keep_if_shorter(PyBytes_AS_STRING(path), bytes);
    Py_DECREF(path);
    Py_RETURN_NONE;
}

PyMethodDef functions[] = {
    {"parse_block_line", opline_parse_block_line, METH_O,
     "parse_block_line(bytes) -> (event, ns, CPU, thread's name, thread, {field: value}), or None"},
    {"is_block_line", opline_is_block_line, METH_O,
     "is_block_line(bytes): whether a line ought to be an event that says something of a request."},
    {"outlive_lost_pages", outlive_lost_pages, METH_NOARGS,
     "outlive_lost_pages(): a page of a mapped file that is gone reads as zeros from here on."},
    {"keep_if_shorter", keep_if_shorter, METH_VARARGS,
     "keep_if_shorter(path, bytes): keeps the name of a file that had more bytes when it was mapped."},
    {"take_file_with_lost_pages", take_file_with_lost_pages, METH_NOARGS,
     "take_file_with_lost_pages() -> the path of a file that had such a page since this was last asked, or None"},
    {"arrow_capsule", opline_arrow_capsule, METH_VARARGS,
     "arrow_capsule([(column, type)], [(rows, [column as Core.take() gives it], (number of texts, offsets i32, UTF-8) "
     "of columns of the type dict)]) -> capsule of an Arrow C stream, a batch per piece"},
    {nullptr, nullptr, 0, nullptr}};

PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "opline._core", "The native core.", -1, functions, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__core() {
    PyObject *m = PyModule_Create(&module);
    if (!m) return nullptr;
    opline_unsupported = PyErr_NewException("opline._core.Unsupported", PyExc_ValueError, nullptr);
    if (!opline_unsupported || PyModule_AddObjectRef(m, "Unsupported", opline_unsupported) < 0 ||
        !add_type(m, "Core", &opline_core_spec) || !add_type(m, "NativeReader", &opline_reader_spec) ||
        !add_type(m, "Follower", &opline_follower_spec) || !add_type(m, "Printer", &opline_printer_spec) ||
        !add_type(m, "Dropper", &opline_dropper_spec) || !add_type(m, "StageStatistics", &opline_statistics_spec) ||
        !add_type(m, "OpCsv", &opline_op_csv_spec) || !add_type(m, "TableFile", &opline_table_file_spec) ||
        !add_type(m, "TextFeed", &opline_text_feed_spec) || !add_type(m, "RingFeed", &opline_ring_feed_spec) ||
        !add_type(m, "BlktraceFeed", &opline_blktrace_feed_spec) || !add_type(m, "Plugs", &opline_plugs_spec) ||
        !add_type(m, "WireSink", &opline_wire_sink_spec) || !add_type(m, "WireFeed", &opline_wire_feed_spec) ||
        !add_type(m, "ArrowStream", &opline_arrow_stream_spec) ||
        PyModule_AddStringConstant(m, "COOKIE", opline::build_cookie()) < 0) {
        Py_DECREF(m);
        return nullptr;
    }
    return m;
}
