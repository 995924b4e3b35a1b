// SPDX-License-Identifier: MIT
#include "reader_type.hpp"

#include <memory>

#include "ctf/reader.hpp"
#include "reader_parts.hpp"
#include "type_slots.hpp"

namespace {

using namespace opline::python;

struct ReaderState {
    ReaderState(const std::vector<std::string> &paths, std::uint32_t cpus,
                const std::vector<opline::ctf::HostClock> &hosts, const std::vector<std::string> &going_on)
        : reader(paths, cpus, hosts, going_on) {}
    opline::ctf::Reader reader;
    PyObject *core = nullptr;  // kept alive while the reader pushes into it
};

struct ReaderObject {
    PyObject_HEAD
    ReaderState *state;
};

ReaderState &reader_of(PyObject *self) { return *reinterpret_cast<ReaderObject *>(self)->state; }

// [(host, [(own ns, cluster's ns)])], as many as there are paths. False: an exception is set.
bool hosts_from(PyObject *list, std::size_t wanted, std::vector<opline::ctf::HostClock> &out) {
    if (static_cast<std::size_t>(PyList_GET_SIZE(list)) != wanted) {
        PyErr_SetString(PyExc_ValueError, "a host is wanted for each trace");
        return false;
    }
    for (std::size_t i = 0; i < wanted; ++i) {
        const char *host = nullptr;
        PyObject *knots = nullptr;
        PyObject *item = PyList_GET_ITEM(list, static_cast<Py_ssize_t>(i));
        if (!PyTuple_Check(item)) {
            PyErr_SetString(PyExc_TypeError, "a host is (name, knots)");
            return false;
        }
        if (!PyArg_ParseTuple(item, "sO!", &host, &PyList_Type, &knots)) return false;
        opline::ctf::HostClock &made = out.emplace_back();
        made.host = host;
        for (Py_ssize_t k = 0; k < PyList_GET_SIZE(knots); ++k) {
            long long from = 0, to = 0;
            PyObject *knot = PyList_GET_ITEM(knots, k);
            if (!PyTuple_Check(knot)) {
                PyErr_SetString(PyExc_TypeError, "a knot is (ns, ns)");
                return false;
            }
            if (!PyArg_ParseTuple(knot, "LL", &from, &to)) return false;
            made.knots.emplace_back(from, to);
        }
    }
    return true;
}

PyObject *reader_new(PyTypeObject *type, PyObject *args, PyObject *) {
    PyObject *list, *host_list = nullptr, *going_on_list = nullptr;
    unsigned cpus = 0;
    if (!PyArg_ParseTuple(args, "O!|IO!O!", &PyList_Type, &list, &cpus, &PyList_Type, &host_list, &PyList_Type,
                          &going_on_list))
        return nullptr;
    return guarded_reader([&]() -> PyObject * {
        std::vector<std::string> paths, going_on;
        if (!paths_from(list, paths) || (going_on_list && !paths_from(going_on_list, going_on))) return nullptr;
        std::vector<opline::ctf::HostClock> hosts;
        if (host_list && PyList_GET_SIZE(host_list) > 0 && !hosts_from(host_list, paths.size(), hosts)) return nullptr;
        auto state = std::make_unique<ReaderState>(paths, cpus, hosts, going_on);
        auto self = reinterpret_cast<ReaderObject *>(type->tp_alloc(type, 0));
        if (!self) return nullptr;
        self->state = state.release();
        return reinterpret_cast<PyObject *>(self);
    });
}

void reader_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    ReaderState *state = reinterpret_cast<ReaderObject *>(self)->state;
    if (state) {
        PyObject *core = state->core;  // after the reader, whose thread may still fill batches
        delete state;
        Py_XDECREF(core);
    }
    type->tp_free(self);
    Py_DECREF(type);
}

PyObject *reader_open(PyObject *self, PyObject *args) {
    PyObject *consumer;
    unsigned threads;
    if (!PyArg_ParseTuple(args, "OI", &consumer, &threads)) return nullptr;
    ReaderState &state = reader_of(self);
    if (state.core) {
        PyErr_SetString(PyExc_ValueError, "the reader is open already");
        return nullptr;
    }
    opline::EventSink *sink = sink_from(consumer);
    if (!sink) return nullptr;
    return guarded_reader([&]() -> PyObject * {
        state.core = Py_NewRef(consumer);
        state.reader.open(*sink, threads);
        Py_RETURN_NONE;
    });
}

PyObject *reader_run(PyObject *self, PyObject *args) {
    unsigned long long max_events;
    if (!PyArg_ParseTuple(args, "K", &max_events)) return nullptr;
    ReaderState &state = reader_of(self);
    if (!state.core) {
        PyErr_SetString(PyExc_ValueError, "the reader is not open");
        return nullptr;
    }
    return guarded_reader(
        [&]() -> PyObject * { return PyBool_FromLong(unlocked([&] { return state.reader.run(max_events); })); });
}

PyObject *reader_progress(PyObject *self, PyObject *) {
    return guarded_reader([&]() -> PyObject * {
        return Py_BuildValue("(KK)", static_cast<unsigned long long>(reader_of(self).reader.bytes_read()),
                             static_cast<unsigned long long>(reader_of(self).reader.bytes_total()));
    });
}

PyObject *reader_aligned(PyObject *self, PyObject *) {
    return guarded_reader(
        [&]() -> PyObject * { return PyLong_FromUnsignedLongLong(reader_of(self).reader.aligned_count()); });
}

PyObject *reader_losses(PyObject *self, PyObject *) {
    const auto &l = reader_of(self).reader.losses();
    PyObject *messages = opline::python::list_of(l.messages, text_of);
    if (!messages) return nullptr;
    return Py_BuildValue("{sKsKsKsKsKsKsKsN}", "truncated_packets", l.truncated_packets, "malformed_packets",
                         l.malformed_packets, "packets_out_of_order", l.packets_out_of_order, "unknown_events",
                         l.unknown_events, "packets_doubled", l.packets_doubled, "packets_missing", l.packets_missing,
                         "streams_missing", l.streams_missing, "messages", messages);
}

PyObject *reader_environment(PyObject *self, PyObject *) {
    return guarded_reader([&]() -> PyObject * { return text_of(reader_of(self).reader.environment_json()); });
}

PyObject *reader_survey(PyObject *self, PyObject *) {
    return guarded_reader([&]() -> PyObject * { return text_of(reader_of(self).reader.survey_json()); });
}

PyObject *reader_mendings(PyObject *self, PyObject *) {
    return guarded_reader([&]() -> PyObject * { return text_of(reader_of(self).reader.mendings_json()); });
}

PyMethodDef reader_methods[] = {
    {"open", reader_open, METH_VARARGS,
     "open(consumer, threads): declare classes and streams to a Core or Printer; with 2 threads, decode in one of its "
     "own."},
    {"run", reader_run, METH_VARARGS,
     "run(max_events) -> bool: push events in merge order; False: that was all, and the consumer is finished."},
    {"progress", reader_progress, METH_NOARGS, "(bytes read, bytes in all)"},
    {"aligned", reader_aligned, METH_NOARGS, "How many events the fast path for fields at whole bytes has read."},
    {"losses", reader_losses, METH_NOARGS, "What was wrong with the bytes: counts, and messages of one line each."},
    {"survey", reader_survey, METH_NOARGS, "What the trace says was there and is not, a JSON document."},
    {"mendings", reader_mendings, METH_NOARGS,
     "Instead of open(): reads everything for nobody; what to mend for babeltrace2, a JSON document."},
    {"environment", reader_environment, METH_NOARGS, "Environment and clock of each trace, a JSON list."},
    {nullptr, nullptr, 0, nullptr}};

opline::python::TypeSlots reader_slots = opline::python::type_slots(
    "NativeReader([trace folder], CPUs of the machine or 0, [(host, [(own ns, cluster's ns)])]): CTF 1.8 and CTF 2. "
    "Raises Unsupported for what it does "
    "not recognise, ValueError for junk.",
    reader_methods, reader_new, reader_dealloc);

}  // namespace

PyObject *opline_unsupported = nullptr;

PyType_Spec opline_reader_spec = {"opline._core.NativeReader", sizeof(ReaderObject), 0, Py_TPFLAGS_DEFAULT,
                                  reader_slots.data()};
