// SPDX-License-Identifier: MIT
#include "follower_type.hpp"

#include <memory>

#include "ctf/follower.hpp"
#include "reader_parts.hpp"
#include "type_slots.hpp"

namespace {

using namespace opline::python;

struct FollowerState {
    explicit FollowerState(const std::vector<std::string> &paths) : follower(paths) {}
    opline::ctf::Follower follower;
    PyObject *core = nullptr;  // kept alive while the follower pushes into it
};

struct FollowerObject {
    PyObject_HEAD
    FollowerState *state;
};

FollowerState &state_of(PyObject *self) { return *reinterpret_cast<FollowerObject *>(self)->state; }

PyObject *follower_new(PyTypeObject *type, PyObject *args, PyObject *) {
    PyObject *list;
    if (!PyArg_ParseTuple(args, "O!", &PyList_Type, &list)) return nullptr;
    return guarded_reader([&]() -> PyObject * {
        std::vector<std::string> paths;
        if (!paths_from(list, paths)) return nullptr;
        auto state = std::make_unique<FollowerState>(paths);
        auto self = reinterpret_cast<FollowerObject *>(type->tp_alloc(type, 0));
        if (!self) return nullptr;
        self->state = state.release();
        return reinterpret_cast<PyObject *>(self);
    });
}

void follower_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    FollowerState *state = reinterpret_cast<FollowerObject *>(self)->state;
    if (state) {
        PyObject *core = state->core;
        delete state;
        Py_XDECREF(core);
    }
    type->tp_free(self);
    Py_DECREF(type);
}

bool is_open(PyObject *self) {
    if (!state_of(self).core) PyErr_SetString(PyExc_ValueError, "the follower is not open");
    return state_of(self).core != nullptr;
}

PyObject *follower_open(PyObject *self, PyObject *consumer) {
    FollowerState &state = state_of(self);
    if (state.core) {
        PyErr_SetString(PyExc_ValueError, "the follower is open already");
        return nullptr;
    }
    opline::EventSink *sink = sink_from(consumer);
    if (!sink) return nullptr;
    return guarded_reader([&]() -> PyObject * {
        state.core = Py_NewRef(consumer);
        state.follower.open(*sink);
        Py_RETURN_NONE;
    });
}

PyObject *follower_grow(PyObject *self, PyObject *) {
    if (!is_open(self)) return nullptr;
    return guarded_reader([&] { return PyBool_FromLong(unlocked([&] { return state_of(self).follower.grow(); })); });
}

PyObject *follower_run(PyObject *self, PyObject *args) {
    long long until_ns;
    unsigned long long max_events;
    if (!PyArg_ParseTuple(args, "LK", &until_ns, &max_events) || !is_open(self)) return nullptr;
    return guarded_reader(
        [&] { return PyBool_FromLong(unlocked([&] { return state_of(self).follower.run(until_ns, max_events); })); });
}

PyMethodDef follower_methods[] = {
    {"open", follower_open, METH_O, "open(consumer): declare classes to a Core or Printer."},
    {"grow", follower_grow, METH_NOARGS,
     "grow() -> bool: take in whole packets that have been written since. False: the traces are to be read anew, by "
     "another."},
    {"run", follower_run, METH_VARARGS,
     "run(until_ns, max_events) -> bool: push events before that time in merge order; False: there are none left. The "
     "consumer is never finished."},
    {nullptr, nullptr, 0, nullptr}};

TypeSlots follower_slots = type_slots(
    "Follower([trace folder]): CTF 1.8 and CTF 2 while they are written. Raises Unsupported for what it does not "
    "recognise, ValueError for junk.",
    follower_methods, follower_new, follower_dealloc);

}  // namespace

PyType_Spec opline_follower_spec = {"opline._core.Follower", sizeof(FollowerObject), 0, Py_TPFLAGS_DEFAULT,
                                    follower_slots.data()};
