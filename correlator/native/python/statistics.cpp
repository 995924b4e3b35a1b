// SPDX-License-Identifier: MIT
// opline._core.StageStatistics: the core's statistics per stage, fed with the columns of a run.
#include "statistics.hpp"

#include <cstdint>
#include <exception>
#include <limits>
#include <new>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "buffer.hpp"
#include "guarded.hpp"
#include "statistics/stage_stats.hpp"
#include "type_slots.hpp"

namespace {

using opline::python::Buffer;
using opline::python::rows_match;

struct StatisticsObject {
    PyObject_HEAD
    opline::StageStatistics *statistics;
};

opline::StageStatistics &statistics_of(PyObject *self) {
    return *reinterpret_cast<StatisticsObject *>(self)->statistics;
}

PyObject *statistics_new(PyTypeObject *type, PyObject *args, PyObject *) {
    int all = 0;
    if (!PyArg_ParseTuple(args, "|p", &all)) return nullptr;
    auto self = reinterpret_cast<StatisticsObject *>(type->tp_alloc(type, 0));
    if (!self) return nullptr;
    self->statistics =
        new (std::nothrow) opline::StageStatistics(all ? opline::Distribution::kAll : opline::Distribution::kExact);
    if (!self->statistics) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    return reinterpret_cast<PyObject *>(self);
}

void statistics_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    delete reinterpret_cast<StatisticsObject *>(self)->statistics;
    type->tp_free(self);
    Py_DECREF(type);
}

PyObject *statistics_stages(PyObject *self, PyObject *args) {
    Buffer ops, seqs, names, kinds, durations, counts;
    if (!PyArg_ParseTuple(args, "y*y*y*y*y*y*", &ops.view, &seqs.view, &names.view, &kinds.view, &durations.view,
                          &counts.view))
        return nullptr;
    const auto rows = static_cast<std::size_t>(ops.view.len) / 8;
    if (!rows_match({{&ops, 8}, {&seqs, 4}, {&names, 4}, {&kinds, 4}, {&durations, 8}, {&counts, 1}}, rows))
        return nullptr;
    try {
        for (std::size_t i = 0; i < rows; ++i)
            statistics_of(self).stage(names.at<std::uint32_t>(i), kinds.at<std::uint32_t>(i), ops.at<std::uint64_t>(i),
                                      seqs.at<std::uint32_t>(i), durations.at<std::int64_t>(i),
                                      counts.at<std::uint8_t>(i) != 0);
    } catch (const std::bad_alloc &) {
        return PyErr_NoMemory();
    }
    Py_RETURN_NONE;
}

PyObject *statistics_ops(PyObject *self, PyObject *args) {
    Buffer latencies, unattributed, unknown;
    if (!PyArg_ParseTuple(args, "y*y*y*", &latencies.view, &unattributed.view, &unknown.view)) return nullptr;
    const auto rows = static_cast<std::size_t>(latencies.view.len) / 8;
    if (!rows_match({{&latencies, 8}, {&unattributed, 8}, {&unknown, 8}}, rows)) return nullptr;
    try {
        for (std::size_t i = 0; i < rows; ++i)
            statistics_of(self).op(latencies.at<std::int64_t>(i), unattributed.at<std::int64_t>(i),
                                   unknown.at<std::int64_t>(i));
    } catch (const std::bad_alloc &) {
        return PyErr_NoMemory();
    }
    Py_RETURN_NONE;
}

// What `made` makes of the function that gives the text of a number, as JSON.
template <class Made>
PyObject *json_with(PyObject *texts, Made made) {
    PyObject *list = PySequence_Fast(texts, "a list of texts is wanted");
    if (!list) return nullptr;
    std::vector<std::string> strings;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(list); ++i) {
        Py_ssize_t size;
        const char *s = PyUnicode_AsUTF8AndSize(PySequence_Fast_GET_ITEM(list, i), &size);
        if (!s) {
            Py_DECREF(list);
            return nullptr;
        }
        strings.emplace_back(s, static_cast<std::size_t>(size));
    }
    Py_DECREF(list);
    try {
        return opline::python::text_of(made([&](std::uint32_t n) { return strings.at(n); }).dump());
    } catch (const std::exception &e) {
        PyErr_SetString(PyExc_ValueError, e.what());
        return nullptr;
    }
}

PyObject *statistics_result(PyObject *self, PyObject *texts) {
    return json_with(texts, [&](const auto &text) { return statistics_of(self).json(text); });
}

PyObject *statistics_sums(PyObject *self, PyObject *texts) {
    return json_with(texts, [&](const auto &text) { return statistics_of(self).sums(text); });
}

PyObject *statistics_within(PyObject *self, PyObject *args) {
    long long group, low, past, step;
    if (!PyArg_ParseTuple(args, "LLLL", &group, &low, &past, &step)) return nullptr;
    opline::StageStatistics &s = statistics_of(self);
    if (step < 1 || group < -3 || group > std::numeric_limits<std::uint32_t>::max()) {
        PyErr_SetString(PyExc_ValueError, "no such group or step");
        return nullptr;
    }
    try {
        const opline::Distribution *values = group == -1   ? &s.unattributed()
                                             : group == -2 ? &s.unknown()
                                             : group == -3 ? &s.latency()
                                                           : s.values(static_cast<std::uint32_t>(group));
        nlohmann::json out = nlohmann::json::array();
        if (values) out = values->within(low, past, step);
        return opline::python::text_of(out.dump());
    } catch (const std::bad_alloc &) {
        return PyErr_NoMemory();
    }
}

PyObject *statistics_kept(PyObject *self, PyObject *) { return PyLong_FromSize_t(statistics_of(self).kept()); }

PyMethodDef statistics_methods[] = {
    {"stages", statistics_stages, METH_VARARGS,
     "stages(op_id i64, seq u32, stage u32, kind u32, duration_ns i64, counts u8): rows of stages, one op's together."},
    {"ops", statistics_ops, METH_VARARGS, "ops(latency_ns, unattributed_ns, unknown_ns), i64: the ops that count."},
    {"result", statistics_result, METH_O, "result(texts) -> JSON; stages and kinds are numbers of texts."},
    {"sums", statistics_sums, METH_O, "sums(texts) -> JSON, what adds to other runs' values; all must be kept."},
    {"within", statistics_within, METH_VARARGS,
     "within(group, low, past, step) -> JSON, [[step, values]]: a stage's number; -1 unattributed, -2 unknown, -3 "
     "latency."},
    {"kept", statistics_kept, METH_NOARGS, "kept() -> bytes of values."},
    {nullptr, nullptr, 0, nullptr}};

opline::python::TypeSlots statistics_slots =
    opline::python::type_slots("StageStatistics(all=False): count, sum, largest and percentiles per stage, of columns.",
                               statistics_methods, statistics_new, statistics_dealloc);

}  // namespace

PyType_Spec opline_statistics_spec = {"opline._core.StageStatistics", sizeof(StatisticsObject), 0, Py_TPFLAGS_DEFAULT,
                                      statistics_slots.data()};
