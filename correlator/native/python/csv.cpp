// SPDX-License-Identifier: MIT
// opline._core.OpCsv: the rows of `opline csv`, fed with the columns of a run, or by a Core.
#include "csv.hpp"

#include <array>
#include <deque>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "buffer.hpp"
#include "guarded.hpp"
#include "output/csv/op_csv.hpp"
#include "type_slots.hpp"

namespace {

using opline::OpCsv;
using opline::python::Buffer;
using opline::python::guarded;
using opline::python::rows_match;

struct State {
    State(OpCsv::Rows form, int fd) : csv(form, fd) {}
    OpCsv csv;
    std::deque<std::string> texts{""};  // what columns of numbers refer to; 0: absent
};

struct OpCsvObject {
    PyObject_HEAD
    State *state;
};

State &state_of(PyObject *self) { return *reinterpret_cast<OpCsvObject *>(self)->state; }
OpCsv &csv_of(PyObject *self) { return state_of(self).csv; }

void csv_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    delete reinterpret_cast<OpCsvObject *>(self)->state;
    type->tp_free(self);
    Py_DECREF(type);
}

PyObject *csv_new(PyTypeObject *type, PyObject *args, PyObject *) {
    int stages, fd;
    if (!PyArg_ParseTuple(args, "pi", &stages, &fd)) return nullptr;
    return guarded([&]() -> PyObject * {
        auto state = std::make_unique<State>(stages ? OpCsv::Rows::kStages : OpCsv::Rows::kOps, fd);
        auto self = reinterpret_cast<OpCsvObject *>(type->tp_alloc(type, 0));
        if (!self) return nullptr;
        self->state = state.release();
        return reinterpret_cast<PyObject *>(self);
    });
}

// Numbers of texts that must have been added.
bool known(const State &state, std::initializer_list<const Buffer *> columns) {
    for (const Buffer *c : columns)
        for (std::size_t i = 0; i < c->size() / 4; ++i)
            if (c->at<std::uint32_t>(i) >= state.texts.size()) {
                PyErr_SetString(PyExc_ValueError, "a number of no text");
                return false;
            }
    return true;
}

PyObject *csv_add_text(PyObject *self, PyObject *text) {
    Py_ssize_t size;
    const char *s = PyUnicode_AsUTF8AndSize(text, &size);
    if (!s) return nullptr;
    return guarded([&]() -> PyObject * {
        state_of(self).texts.emplace_back(s, static_cast<std::size_t>(size));
        return PyLong_FromSize_t(state_of(self).texts.size() - 1);
    });
}

PyObject *csv_ops(PyObject *self, PyObject *args) {
    enum Number {
        kPlace,
        kId,
        kPid,
        kBeginTid,
        kEndTid,
        kBegin,
        kEnd,
        kLatency,
        kBytes,
        kDev,
        kSector,
        kComplete,
        kTainted,
        kUnattributed,
        kAttributes,
        kNumbers = kAttributes + opline::kOpAttributes.size()
    };
    PyObject *columns;
    Buffer classes, hosts, comms, reasons, offsets, objects;
    if (!PyArg_ParseTuple(args, "O!y*y*y*y*y*y*", &PyTuple_Type, &columns, &classes.view, &hosts.view, &comms.view,
                          &reasons.view, &offsets.view, &objects.view))
        return nullptr;
    std::array<Buffer, kNumbers> numbers;
    if (PyTuple_GET_SIZE(columns) != kNumbers) {
        PyErr_SetString(PyExc_ValueError, "not as many columns as a row has");
        return nullptr;
    }
    for (std::size_t i = 0; i < kNumbers; ++i)
        if (PyObject_GetBuffer(PyTuple_GET_ITEM(columns, static_cast<Py_ssize_t>(i)), &numbers[i].view, PyBUF_SIMPLE) !=
            0)
            return nullptr;
    const std::size_t rows = classes.size() / 4;
    for (const auto &n : numbers)
        if (!rows_match({{&n, 8}}, rows)) return nullptr;
    if (!rows_match({{&hosts, 4}, {&comms, 4}, {&reasons, 4}}, rows) || !rows_match({{&offsets, 4}}, rows + 1))
        return nullptr;
    if (!known(state_of(self), {&classes, &hosts, &comms, &reasons})) return nullptr;
    return guarded([&]() -> PyObject * {
        const auto &texts = state_of(self).texts;
        for (std::size_t i = 0; i < rows; ++i) {
            const auto number = [&](Number n) { return numbers[n].at<std::int64_t>(i); };
            const auto begin = static_cast<std::size_t>(offsets.at<std::int32_t>(i)),
                       end = static_cast<std::size_t>(offsets.at<std::int32_t>(i + 1));
            if (begin > end || end > objects.size()) throw std::runtime_error("offsets beyond the text");
            OpCsv::Op op;
            op.op_id = number(kId);
            op.op_class = texts[classes.at<std::uint32_t>(i)];
            op.object = {static_cast<const char *>(objects.view.buf) + begin, end - begin};
            op.host = texts[hosts.at<std::uint32_t>(i)];
            op.comm = texts[comms.at<std::uint32_t>(i)];
            op.reason = texts[reasons.at<std::uint32_t>(i)];
            op.pid = number(kPid);
            op.begin_tid = number(kBeginTid);
            op.end_tid = number(kEndTid);
            op.begin_ns = number(kBegin);
            op.end_ns = number(kEnd);
            op.latency_ns = number(kLatency);
            op.bytes = number(kBytes);
            op.dev = number(kDev);
            op.has_sector = number(kSector) != opline::kNoTime;
            op.sector = static_cast<std::uint64_t>(number(kSector));
            op.complete = number(kComplete) == 1;
            op.tainted = number(kTainted) == 1;
            op.unattributed_ns = number(kUnattributed);
            for (std::size_t n = 0; n < opline::kOpAttributes.size(); ++n)
                op.attributes.*opline::kOpAttributes[n] = numbers[kAttributes + n].at<std::int64_t>(i);
            csv_of(self).op(static_cast<std::uint64_t>(number(kPlace)), op);
        }
        Py_RETURN_NONE;
    });
}

PyObject *csv_clients(PyObject *self, PyObject *args) {
    Buffer places, values;
    if (!PyArg_ParseTuple(args, "y*y*", &places.view, &values.view)) return nullptr;
    const std::size_t rows = places.size() / 8;
    if (!rows_match({{&places, 8}, {&values, 8}}, rows)) return nullptr;
    return guarded([&]() -> PyObject * {
        for (std::size_t i = 0; i < rows; ++i)
            csv_of(self).client(places.at<std::uint64_t>(i), values.at<std::int64_t>(i));
        Py_RETURN_NONE;
    });
}

PyObject *csv_bios(PyObject *self, PyObject *args) {
    Buffer places, ids, kinds;
    if (!PyArg_ParseTuple(args, "y*y*y*", &places.view, &ids.view, &kinds.view)) return nullptr;
    const std::size_t rows = places.size() / 8;
    if (!rows_match({{&places, 8}, {&ids, 8}, {&kinds, 4}}, rows) || !known(state_of(self), {&kinds})) return nullptr;
    return guarded([&]() -> PyObject * {
        for (std::size_t i = 0; i < rows; ++i)
            csv_of(self).bio(places.at<std::uint64_t>(i), ids.at<std::uint64_t>(i),
                             state_of(self).texts[kinds.at<std::uint32_t>(i)]);
        Py_RETURN_NONE;
    });
}

PyObject *csv_stages(PyObject *self, PyObject *args) {
    Buffer places, ids, seqs, stages, kinds, froms, tos, begins, durations, tids, requests;
    if (!PyArg_ParseTuple(args, "y*y*y*y*y*y*y*y*y*y*y*", &places.view, &ids.view, &seqs.view, &stages.view,
                          &kinds.view, &froms.view, &tos.view, &begins.view, &durations.view, &tids.view,
                          &requests.view))
        return nullptr;
    const std::size_t rows = places.size() / 8;
    if (!rows_match({{&places, 8},
                     {&ids, 8},
                     {&seqs, 4},
                     {&stages, 4},
                     {&kinds, 4},
                     {&froms, 4},
                     {&tos, 4},
                     {&begins, 8},
                     {&durations, 8},
                     {&tids, 8},
                     {&requests, 8}},
                    rows) ||
        !known(state_of(self), {&stages, &kinds, &froms, &tos}))
        return nullptr;
    return guarded([&]() -> PyObject * {
        OpCsv &csv = csv_of(self);
        const auto &texts = state_of(self).texts;
        std::vector<std::uint32_t> numbers(texts.size());  // of stages, plus 1
        std::vector<std::pair<std::uint32_t, std::int64_t>> sums;
        std::vector<OpCsv::StageRow> whole;
        for (std::size_t i = 0; i < rows;) {
            const auto id = ids.at<std::int64_t>(i), place = places.at<std::int64_t>(i);
            sums.clear();
            whole.clear();
            for (; i < rows && ids.at<std::int64_t>(i) == id; ++i) {
                const auto text = stages.at<std::uint32_t>(i);
                if (numbers[text] == 0) numbers[text] = csv.stage_number(texts[text]) + 1;
                csv.met(numbers[text] - 1, static_cast<std::uint64_t>(id), seqs.at<std::uint32_t>(i));
                if (place < 0) continue;
                if (csv.form() == OpCsv::Rows::kOps) {
                    sums.emplace_back(numbers[text] - 1, durations.at<std::int64_t>(i));
                    continue;
                }
                OpCsv::StageRow s;
                s.stage = texts[text];
                s.kind = texts[kinds.at<std::uint32_t>(i)];
                s.from = texts[froms.at<std::uint32_t>(i)];
                s.to = texts[tos.at<std::uint32_t>(i)];
                s.seq = seqs.at<std::uint32_t>(i);
                s.begin_ns = begins.at<std::int64_t>(i);
                s.duration_ns = durations.at<std::int64_t>(i);
                s.tid = tids.at<std::int64_t>(i);
                s.request_id = requests.at<std::int64_t>(i);
                whole.push_back(s);
            }
            if (!sums.empty()) csv.durations(static_cast<std::uint64_t>(place), sums);
            if (!whole.empty()) csv.stage_rows(static_cast<std::uint64_t>(place), id, whole);
        }
        Py_RETURN_NONE;
    });
}

PyObject *csv_stages_in_order(PyObject *self, PyObject *) {
    return guarded([&]() -> PyObject * {
        return opline::python::list_of(csv_of(self).stages_in_order(), opline::python::text_of);
    });
}

// nullptr and OSError where the temporary file failed.
PyObject *checked(PyObject *self, PyObject *result) {
    if (result && csv_of(self).error() != 0) {
        Py_DECREF(result);
        errno = csv_of(self).error();
        return PyErr_SetFromErrno(PyExc_OSError);
    }
    return result;
}

PyObject *csv_rows(PyObject *self, PyObject *) {
    return checked(self, guarded([&]() -> PyObject * {
                       const auto rows = csv_of(self).rows();
                       return PyBytes_FromStringAndSize(rows.data(), static_cast<Py_ssize_t>(rows.size()));
                   }));
}

PyObject *csv_check(PyObject *self, PyObject *) { return checked(self, Py_NewRef(Py_None)); }

PyMethodDef csv_methods[] = {
    {"add_text", csv_add_text, METH_O, "add_text(text) -> its number, for columns of texts; 0 is absent."},
    {"ops", csv_ops, METH_VARARGS,
     "ops((place, op_id, pid, begin_tid, end_tid, begin_ns, end_ns, latency_ns, bytes, dev, sector, complete, tainted, "
     "unattributed_ns) i64, class, host, comm, reason u32, offsets of objects i32, objects)"},
    {"clients", csv_clients, METH_VARARGS, "clients(place, client_ns), i64"},
    {"bios", csv_bios, METH_VARARGS, "bios(place i64, bio_id i64, kind u32)"},
    {"stages", csv_stages, METH_VARARGS,
     "stages(place i64, op_id i64, seq u32, stage, kind, from, to u32, begin_ns, duration_ns, tid, request_id i64): "
     "all rows of all ops, one op's together; place -1: for the order alone."},
    {"stages_in_order", csv_stages_in_order, METH_NOARGS,
     "Names of the stages that have a column, in its order; once all is fed."},
    {"rows", csv_rows, METH_NOARGS,
     "More rows, as bytes; empty: that was all. Raises OSError where the temporary file failed."},
    {"check", csv_check, METH_NOARGS, "Raises OSError where the temporary file failed."},
    {nullptr, nullptr, 0, nullptr}};

opline::python::TypeSlots csv_slots = opline::python::type_slots(
    "OpCsv(stages, fd): rows of ops, or of their intervals, in order; fd: an empty file for what does not fit into "
    "memory. Columns' absent numbers are -2^63.",
    csv_methods, csv_new, csv_dealloc);

}  // namespace

PyType_Spec opline_op_csv_spec = {"opline._core.OpCsv", sizeof(OpCsvObject), 0, Py_TPFLAGS_DEFAULT, csv_slots.data()};

opline::OpCsv *opline_op_csv_of(PyObject *object) {
    if (Py_TYPE(object)->tp_dealloc == csv_dealloc) return &csv_of(object);
    PyErr_SetString(PyExc_TypeError, "an OpCsv is wanted");
    return nullptr;
}
