// SPDX-License-Identifier: MIT
// opline._core: the only file that knows both Python and the core. Buffers cross the boundary, not objects.
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <new>
#include <stdexcept>
#include <string>

#include "cookie.hpp"
#include "core.hpp"

namespace {

using opline::Column;
using opline::ColumnType;

struct CoreObject {
    PyObject_HEAD
    opline::Core *core;
};

// C++ exceptions end here: a std::runtime_error becomes ValueError with its one line.
template <class F>
PyObject *guarded(F &&f) {
    try {
        return f();
    } catch (const std::bad_alloc &) {
        return PyErr_NoMemory();
    } catch (const std::exception &e) {
        PyErr_SetString(PyExc_ValueError, e.what());
        return nullptr;
    }
}

const char *type_name(ColumnType t) {
    switch (t) {
    case ColumnType::kInt64: return "i64";
    case ColumnType::kUint64: return "u64";
    case ColumnType::kInt32: return "i32";
    case ColumnType::kUint32: return "u32";
    case ColumnType::kBool: return "bool";
    case ColumnType::kDict: return "dict";
    case ColumnType::kText: return "text";
    }
    return "?";
}

PyObject *bytes_of(const void *data, std::size_t size) {
    return PyBytes_FromStringAndSize(static_cast<const char *>(data), static_cast<Py_ssize_t>(size));
}

// (name, type, null_count, validity, data, offsets or None), Arrow's layout, little-endian.
PyObject *column_tuple(const Column &c) {
    PyObject *offsets = c.type == ColumnType::kText
                            ? bytes_of(c.offsets.data(), c.offsets.size() * sizeof(std::int32_t))
                            : Py_NewRef(Py_None);
    if (!offsets) return nullptr;
    return Py_BuildValue("(ssnNNN)", c.name.c_str(), type_name(c.type), static_cast<Py_ssize_t>(c.nulls),
                         bytes_of(c.validity.data(), c.validity.size()), bytes_of(c.data.data(), c.data.size()),
                         offsets);
}

PyObject *core_new(PyTypeObject *type, PyObject *args, PyObject *) {
    const char *plan;
    Py_ssize_t size;
    if (!PyArg_ParseTuple(args, "s#", &plan, &size)) return nullptr;
    return guarded([&]() -> PyObject * {
        auto core = std::make_unique<opline::Core>(std::string(plan, static_cast<std::size_t>(size)));
        auto self = reinterpret_cast<CoreObject *>(type->tp_alloc(type, 0));
        if (!self) return nullptr;
        self->core = core.release();
        return reinterpret_cast<PyObject *>(self);
    });
}

void core_dealloc(PyObject *self) {
    delete reinterpret_cast<CoreObject *>(self)->core;
    Py_TYPE(self)->tp_free(self);
}

opline::Core &core_of(PyObject *self) { return *reinterpret_cast<CoreObject *>(self)->core; }

PyObject *core_address(PyObject *self, PyObject *) {
    opline::Consumer *consumer = &core_of(self);
    return PyLong_FromVoidPtr(consumer);
}

PyObject *core_take_ready(PyObject *self, PyObject *) { return PyBool_FromLong(core_of(self).take_ready()); }

PyObject *core_take(PyObject *self, PyObject *) {
    return guarded([&]() -> PyObject * {
        PyObject *out = PyList_New(0);
        if (!out) return nullptr;
        for (auto &table : core_of(self).tables()) {
            if (table.rows() == 0) continue;
            PyObject *columns = PyList_New(0);
            bool fine = columns != nullptr;
            for (const auto &c : table.columns) {
                PyObject *item = fine ? column_tuple(c) : nullptr;
                fine = item && PyList_Append(columns, item) == 0;
                Py_XDECREF(item);
                if (!fine) break;
            }
            PyObject *row = fine ? Py_BuildValue("(snO)", table.name.c_str(), static_cast<Py_ssize_t>(table.rows()), columns) : nullptr;
            Py_XDECREF(columns);
            fine = row && PyList_Append(out, row) == 0;
            Py_XDECREF(row);
            if (!fine) {
                Py_DECREF(out);
                return nullptr;
            }
            table.clear();
        }
        return out;
    });
}

PyObject *core_take_new_strings(PyObject *self, PyObject *) {
    return guarded([&]() -> PyObject * {
        auto strings = core_of(self).take_new_strings();
        PyObject *out = PyList_New(static_cast<Py_ssize_t>(strings.size()));
        if (!out) return nullptr;
        for (std::size_t i = 0; i < strings.size(); ++i) {
            // Strings of a trace are bytes; what is not UTF-8 is replaced, visibly.
            PyObject *s = PyUnicode_DecodeUTF8(strings[i].data(), static_cast<Py_ssize_t>(strings[i].size()), "replace");
            if (!s) {
                Py_DECREF(out);
                return nullptr;
            }
            PyList_SET_ITEM(out, static_cast<Py_ssize_t>(i), s);
        }
        return out;
    });
}

PyObject *core_events_seen(PyObject *self, PyObject *) { return PyLong_FromUnsignedLongLong(core_of(self).events_seen()); }

PyObject *core_summary(PyObject *self, PyObject *) {
    return guarded([&]() -> PyObject * {
        std::string s = core_of(self).summary_json();
        return PyUnicode_DecodeUTF8(s.data(), static_cast<Py_ssize_t>(s.size()), "replace");
    });
}

PyObject *core_table_columns(PyObject *self, PyObject *) {
    PyObject *out = PyDict_New();
    if (!out) return nullptr;
    for (const auto &table : core_of(self).tables()) {
        PyObject *columns = PyList_New(0);
        for (const auto &c : table.columns) {
            PyObject *pair = Py_BuildValue("(ss)", c.name.c_str(), type_name(c.type));
            PyList_Append(columns, pair);
            Py_XDECREF(pair);
        }
        PyDict_SetItemString(out, table.name.c_str(), columns);
        Py_DECREF(columns);
    }
    return out;
}

PyMethodDef core_methods[] = {
    {"address", core_address, METH_NOARGS, "Address of the core as a consumer of events, for a front end of the same build."},
    {"take_ready", core_take_ready, METH_NOARGS, "True if a table has a full chunk of rows, or the trace has ended."},
    {"take", core_take, METH_NOARGS, "The rows so far, [(table, rows, [(column, type, nulls, validity, data, offsets)])]; the tables are empty afterwards."},
    {"take_new_strings", core_take_new_strings, METH_NOARGS, "Strings that dictionary columns refer to, new since the last call; ids are consecutive from 0."},
    {"events_seen", core_events_seen, METH_NOARGS, "Events so far."},
    {"summary", core_summary, METH_NOARGS, "Counts of the correlation, a JSON document."},
    {"table_columns", core_table_columns, METH_NOARGS, "{table: [(column, type)]}, as the core emits them."},
    {nullptr, nullptr, 0, nullptr}};

PyTypeObject core_type = [] {
    PyTypeObject t = {PyVarObject_HEAD_INIT(nullptr, 0)};
    t.tp_name = "opline._core.Core";
    t.tp_basicsize = sizeof(CoreObject);
    t.tp_dealloc = core_dealloc;
    t.tp_flags = Py_TPFLAGS_DEFAULT;
    t.tp_doc = "Core(plan_json): stitcher, block model and attribution. Raises ValueError for a plan that it can't use.";
    t.tp_methods = core_methods;
    t.tp_new = core_new;
    return t;
}();

PyModuleDef module = {PyModuleDef_HEAD_INIT, "opline._core", "The native core.", -1, nullptr, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__core() {
    if (PyType_Ready(&core_type) < 0) return nullptr;
    PyObject *m = PyModule_Create(&module);
    if (!m) return nullptr;
    if (PyModule_AddObjectRef(m, "Core", reinterpret_cast<PyObject *>(&core_type)) < 0 ||
        PyModule_AddStringConstant(m, "COOKIE", opline::build_cookie()) < 0) {
        Py_DECREF(m);
        return nullptr;
    }
    return m;
}
