// SPDX-License-Identifier: MIT
#include "core_type.hpp"

#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "columns.hpp"
#include "core_feed.hpp"
#include "core_state.hpp"
#include "csv.hpp"
#include "guarded.hpp"
#include "output/parquet/writers.hpp"
#include "reader_parts.hpp"
#include "table_file.hpp"
#include "type_slots.hpp"

namespace {

using namespace opline::python;

PyObject *core_new(PyTypeObject *type, PyObject *args, PyObject *) {
    const char *plan;
    Py_ssize_t size;
    if (!PyArg_ParseTuple(args, "s#", &plan, &size)) return nullptr;
    return guarded([&]() -> PyObject * {
        auto state = std::make_unique<CoreState>(std::string(plan, static_cast<std::size_t>(size)));
        auto self = reinterpret_cast<CoreObject *>(type->tp_alloc(type, 0));
        if (!self) return nullptr;
        self->state = state.release();
        return reinterpret_cast<PyObject *>(self);
    });
}

void core_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    CoreState *state = reinterpret_cast<CoreObject *>(self)->state;
    PyObject *csv = state ? state->csv : nullptr;
    delete state;
    Py_XDECREF(csv);
    type->tp_free(self);
    Py_DECREF(type);
}

PyObject *core_address(PyObject *self, PyObject *) {
    opline::EventSink *consumer = &core_of(self);
    return PyLong_FromVoidPtr(consumer);
}

// The strings of a sequence; false with Python's error set.
bool texts_of(PyObject *sequence, std::vector<std::string> &out) {
    PyObject *list = PySequence_Fast(sequence, "a list of names is wanted");
    if (!list) return false;
    const char *text = "";
    for (Py_ssize_t i = 0; text && i < PySequence_Fast_GET_SIZE(list); ++i) {
        text = PyUnicode_AsUTF8(PySequence_Fast_GET_ITEM(list, i));
        if (text) out.emplace_back(text);
    }
    Py_DECREF(list);
    return text != nullptr;
}

PyObject *core_keep_tables(PyObject *self, PyObject *names) {
    return guarded([&]() -> PyObject * {
        std::vector<std::string> wanted;
        if (!texts_of(names, wanted)) return nullptr;
        core_of(self).keep_tables(wanted);
        Py_RETURN_NONE;
    });
}

PyObject *core_keep_statistics(PyObject *self, PyObject *args) {
    return guarded([&]() -> PyObject * {
        int tainted;
        PyObject *names, *globs;
        std::vector<std::string> classes, without;
        if (!PyArg_ParseTuple(args, "pOO", &tainted, &names, &globs) || !texts_of(names, classes) ||
            !texts_of(globs, without))
            return nullptr;
        core_of(self).keep_statistics(tainted != 0, std::move(classes), std::move(without));
        Py_RETURN_NONE;
    });
}

PyObject *core_write_csv(PyObject *self, PyObject *args) {
    PyObject *object;
    int all;
    if (!PyArg_ParseTuple(args, "Op", &object, &all)) return nullptr;
    opline::OpCsv *csv = opline_op_csv_of(object);
    if (!csv) return nullptr;
    return guarded([&]() -> PyObject * {
        core_of(self).write_csv(*csv, all != 0);
        Py_XSETREF(state_of(self).csv, Py_NewRef(object));
        Py_RETURN_NONE;
    });
}

PyObject *core_count_all_programs(PyObject *self, PyObject *) {
    core_of(self).count_all_programs();
    Py_RETURN_NONE;
}

PyObject *core_attribute_each(PyObject *self, PyObject *) {
    core_of(self).attribute_each();
    Py_RETURN_NONE;
}

PyObject *core_shapes(PyObject *self, PyObject *) { return PyLong_FromSize_t(core_of(self).shapes()); }

PyObject *core_statistics(PyObject *self, PyObject *) {
    return guarded([&]() -> PyObject * { return text_of(core_of(self).statistics_json()); });
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
                PyObject *item = fine ? opline_column_tuple(c, table.rows()) : nullptr;
                fine = item && PyList_Append(columns, item) == 0;
                Py_XDECREF(item);
                if (!fine) break;
            }
            PyObject *row =
                fine ? Py_BuildValue("(snO)", table.name.c_str(), static_cast<Py_ssize_t>(table.rows()), columns)
                     : nullptr;
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

PyObject *core_show_open(PyObject *self, PyObject *) {
    return guarded([&]() -> PyObject * {
        core_of(self).show_open();
        Py_RETURN_NONE;
    });
}

PyObject *core_passed(PyObject *self, PyObject *now) {
    const long long now_ns = PyLong_AsLongLong(now);
    if (now_ns == -1 && PyErr_Occurred()) return nullptr;
    return guarded([&]() -> PyObject * { return PyBool_FromLong(core_of(self).passed(now_ns)); });
}

PyObject *core_write(PyObject *self, PyObject *files) {
    if (!PyDict_Check(files)) {
        PyErr_SetString(PyExc_TypeError, "a dict of files by table is wanted");
        return nullptr;
    }
    return guarded([&]() -> PyObject * {
        for (auto &table : core_of(self).tables()) {
            if (table.rows() == 0) continue;
            PyObject *object = PyDict_GetItemString(files, table.name.c_str());
            if (!object) throw std::runtime_error("No file for the table " + table.name);
            const auto file = opline_table_file_of(object);
            if (!file) return nullptr;
            const opline::StringPool &strings = core_of(self).strings();
            unlocked([&] {
                if (state_of(self).writers) return state_of(self).writers->add(file, table, strings), true;
                file->add(table, strings);
                return table.clear(), true;
            });
            if (!opline_table_file_is_fine(file->error())) return nullptr;
        }
        Py_RETURN_NONE;
    });
}

PyObject *core_write_beside(PyObject *self, PyObject *threads) {
    const long n = PyLong_AsLong(threads);
    if (n == -1 && PyErr_Occurred()) return nullptr;
    return guarded([&]() -> PyObject * {
        state_of(self).writers = std::make_unique<opline::parquet::Writers>(static_cast<unsigned>(n));
        Py_RETURN_NONE;
    });
}

PyObject *core_loss(PyObject *self, PyObject *args) {
    const char *name, *severity, *origin;
    unsigned long long count;
    if (!PyArg_ParseTuple(args, "sssK", &name, &severity, &origin, &count)) return nullptr;
    return guarded([&]() -> PyObject * {
        core_of(self).loss(name, severity, origin, count);
        Py_RETURN_NONE;
    });
}

PyObject *core_take_new_strings(PyObject *self, PyObject *) {
    return guarded([&]() -> PyObject * { return opline::python::list_of(core_of(self).take_new_strings(), text_of); });
}

PyObject *core_events_seen(PyObject *self, PyObject *) {
    return PyLong_FromUnsignedLongLong(core_of(self).events_seen());
}

PyObject *core_summary(PyObject *self, PyObject *) {
    return guarded([&]() -> PyObject * { return text_of(core_of(self).summary_json()); });
}

PyObject *core_table_columns(PyObject *self, PyObject *) {
    PyObject *out = PyDict_New();
    if (!out) return nullptr;
    for (const auto &table : core_of(self).tables()) {
        PyObject *columns = PyList_New(0);
        for (const auto &c : table.columns) {
            PyObject *pair = Py_BuildValue("(ss)", c.name.c_str(), opline::type_name(c.type));
            PyList_Append(columns, pair);
            Py_XDECREF(pair);
        }
        PyDict_SetItemString(out, table.name.c_str(), columns);
        Py_DECREF(columns);
    }
    return out;
}

PyMethodDef core_methods[] = {
    {"add_class", fed<core_sink, feed_class>, METH_VARARGS,
     "add_class(name, kernel, [(field, is_context)]) -> (class, wanted field indices, time slot)"},
    {"add_stream", fed<core_sink, feed_stream>, METH_VARARGS, "add_stream(host, kernel, channel, instance) -> stream"},
    {"event", fed<core_sink, feed_event>, METH_VARARGS,
     "event(ts_ns, class, stream, cpu or None, values of the wanted fields)"},
    {"discarded", fed<core_sink, feed_discarded>, METH_VARARGS, "discarded(stream, begin_ns, end_ns, count, packets)"},
    {"missing", core_missing, METH_VARARGS,
     "missing(stream, kernel, begin_ns or None, end_ns or None, packets): what a stream had then is not there. Before "
     "the first event."},
    {"unreadable", core_unreadable, METH_VARARGS,
     "unreadable(host, kernel, channel, begin_ns or None, end_ns or None): the channel has bytes of that time that "
     "cannot be decoded. Before the first event."},
    {"expect_cpus", core_expect_cpus, METH_VARARGS,
     "expect_cpus(host, [CPU]): its kernel has a stream for each of them. Before the first event."},
    {"finish", core_finish, METH_NOARGS, "The trace has ended: settle everything."},
    {"address", core_address, METH_NOARGS,
     "Address of the core as a consumer of events, for a front end of the same build."},
    {"keep_tables", core_keep_tables, METH_O,
     "keep_tables(names): leave all other tables empty. Before the first event."},
    {"keep_statistics", core_keep_statistics, METH_VARARGS,
     "keep_statistics(tainted, classes, without): statistics per stage, with or without tainted ops, of ops of these "
     "classes; of all if there are none, but those whose class begins like one of without. Before the first event."},
    {"write_csv", core_write_csv, METH_VARARGS,
     "write_csv(OpCsv, all): feed it instead of any table; with incomplete ops if all. Before the first event."},
    {"count_all_programs", core_count_all_programs, METH_NOARGS,
     "Statistics and CSV have every program's ops, not the population's alone. Before the first event."},
    {"attribute_each", core_attribute_each, METH_NOARGS,
     "Attribute every op by itself, for tests. Before the first event."},
    {"shapes", core_shapes, METH_NOARGS, "How many shapes are known."},
    {"statistics", core_statistics, METH_NOARGS, "Statistics per stage, a JSON document; after the end."},
    {"write", core_write, METH_O,
     "write({table: TableFile}): adds the rows so far to the files; the tables are empty afterwards. Raises OSError."},
    {"write_beside", core_write_beside, METH_O,
     "write_beside(threads): write() hands the rows to so many threads, at least 1, which write them. A file has all "
     "once it is closed, and a failure may be raised later."},
    {"loss", core_loss, METH_VARARGS, "loss(name, severity, origin, count): a row of the table losses."},
    {"take_ready", core_take_ready, METH_NOARGS, "True if a table has a full chunk of rows, or the trace has ended."},
    {"take", core_take, METH_NOARGS,
     "The rows so far, [(table, rows, [(column, type, nulls, validity, data, offsets)])]; the tables are empty "
     "afterwards."},
    {"show_open", core_show_open, METH_NOARGS,
     "Adds a row of the table requests for each that is open now, and stays it: take() before and after."},
    {"passed", core_passed, METH_O, "passed(now_ns): nothing from before comes any more; are there rows?"},
    {"take_new_strings", core_take_new_strings, METH_NOARGS,
     "Strings that dictionary columns refer to, new since the last call; ids are consecutive from 0."},
    {"events_seen", core_events_seen, METH_NOARGS, "Events so far."},
    {"summary", core_summary, METH_NOARGS, "Counts of the correlation, a JSON document."},
    {"table_columns", core_table_columns, METH_NOARGS, "{table: [(column, type)]}, as the core emits them."},
    {nullptr, nullptr, 0, nullptr}};

TypeSlots core_slots = type_slots(
    "Core(plan_json): stitcher, block model and attribution. Raises ValueError for a plan that it can't use.",
    core_methods, core_new, core_dealloc);

}  // namespace

PyType_Spec opline_core_spec = {"opline._core.Core", sizeof(CoreObject), 0, Py_TPFLAGS_DEFAULT, core_slots.data()};
