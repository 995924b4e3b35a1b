// SPDX-License-Identifier: MIT
#include "dropper_type.hpp"

#include <memory>

#include "event/dropper.hpp"
#include "guarded.hpp"
#include "type_slots.hpp"

namespace {

using opline::python::guarded;

struct DropperObject {
    PyObject_HEAD
    opline::Dropper *dropper;
    PyObject *consumer;  // kept alive while events are handed to it
};

// Takes anything with address(): a Core, a Printer.
PyObject *dropper_new(PyTypeObject *type, PyObject *args, PyObject *) {
    PyObject *consumer;
    const char *name;
    unsigned per_million;
    unsigned long long seed;
    if (!PyArg_ParseTuple(args, "OsIK", &consumer, &name, &per_million, &seed)) return nullptr;
    PyObject *address = PyObject_CallMethod(consumer, "address", nullptr);
    if (!address) return nullptr;
    void *p = PyLong_AsVoidPtr(address);
    Py_DECREF(address);
    if (!p) return nullptr;
    return guarded([&]() -> PyObject * {
        auto dropper = std::make_unique<opline::Dropper>(*static_cast<opline::EventSink *>(p), name, per_million, seed);
        auto self = reinterpret_cast<DropperObject *>(type->tp_alloc(type, 0));
        if (!self) return nullptr;
        self->dropper = dropper.release();
        self->consumer = Py_NewRef(consumer);
        return reinterpret_cast<PyObject *>(self);
    });
}

void dropper_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    auto *object = reinterpret_cast<DropperObject *>(self);
    delete object->dropper;
    Py_XDECREF(object->consumer);
    type->tp_free(self);
    Py_DECREF(type);
}

opline::Dropper &dropper_of(PyObject *self) { return *reinterpret_cast<DropperObject *>(self)->dropper; }

PyObject *dropper_address(PyObject *self, PyObject *) {
    opline::EventSink *consumer = &dropper_of(self);
    return PyLong_FromVoidPtr(consumer);
}

PyObject *dropper_dropped(PyObject *self, PyObject *) {
    return PyLong_FromUnsignedLongLong(dropper_of(self).dropped());
}

PyObject *dropper_seen(PyObject *self, PyObject *) {
    PyObject *out = PyDict_New();
    if (!out) return nullptr;
    for (const auto &[name, count] : dropper_of(self).seen()) {
        PyObject *value = PyLong_FromUnsignedLongLong(count);
        const bool failed = !value || PyDict_SetItemString(out, name.c_str(), value) < 0;
        Py_XDECREF(value);
        if (failed) {
            Py_DECREF(out);
            return nullptr;
        }
    }
    return out;
}

PyMethodDef dropper_methods[] = {
    {"address", dropper_address, METH_NOARGS, "Address of the dropper as a consumer of events."},
    {"dropped", dropper_dropped, METH_NOARGS, "How many events went."},
    {"seen", dropper_seen, METH_NOARGS, "How many events of each name came, those included that went."},
    {nullptr, nullptr, 0, nullptr}};

opline::python::TypeSlots dropper_slots = opline::python::type_slots(
    "Dropper(consumer, event name, per million, seed): hands events on but some of one name, in silence. For checks.",
    dropper_methods, dropper_new, dropper_dealloc);

}  // namespace

PyType_Spec opline_dropper_spec = {"opline._core.Dropper", sizeof(DropperObject), 0, Py_TPFLAGS_DEFAULT,
                                   dropper_slots.data()};
