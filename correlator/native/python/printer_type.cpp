// SPDX-License-Identifier: MIT
#include "printer_type.hpp"

#include <memory>
#include <utility>

#include "core/printer.hpp"
#include "guarded.hpp"
#include "reader_parts.hpp"
#include "sink_feed.hpp"
#include "type_slots.hpp"

namespace {

using opline::python::guarded;

using opline::python::fed;

struct PrinterState {
    PrinterState(int fd, opline::PrintFilter filter) : printer(fd, std::move(filter)) {}
    opline::Printer printer;
    opline::python::SinkFeed feed{printer};
};

struct PrinterObject {
    PyObject_HEAD
    PrinterState *state;
};

PyObject *printer_new(PyTypeObject *type, PyObject *args, PyObject *) {
    int fd;
    const char *filter;
    if (!PyArg_ParseTuple(args, "is", &fd, &filter)) return nullptr;
    return guarded([&]() -> PyObject * {
        auto state = std::make_unique<PrinterState>(fd, opline::print_filter(filter));
        auto self = reinterpret_cast<PrinterObject *>(type->tp_alloc(type, 0));
        if (!self) return nullptr;
        self->state = state.release();
        return reinterpret_cast<PyObject *>(self);
    });
}

void printer_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    delete reinterpret_cast<PrinterObject *>(self)->state;
    type->tp_free(self);
    Py_DECREF(type);
}

PrinterState &state_of(PyObject *self) { return *reinterpret_cast<PrinterObject *>(self)->state; }
opline::Printer &printer_of(PyObject *self) { return state_of(self).printer; }
opline::python::SinkFeed &printer_sink(PyObject *self) { return state_of(self).feed; }

PyObject *printer_address(PyObject *self, PyObject *) {
    opline::EventSink *consumer = &printer_of(self);
    return PyLong_FromVoidPtr(consumer);
}

PyObject *printer_done(PyObject *self, PyObject *) { return PyBool_FromLong(printer_of(self).done()); }

PyObject *printer_finish(PyObject *self, PyObject *) {
    opline::Printer &printer = printer_of(self);
    opline::python::unlocked([&] { return printer.finish(); });
    const auto printed = static_cast<unsigned long long>(printer.printed());
    if (printer.length_ns() == opline::kNoTime) return Py_BuildValue("(KiO)", printed, printer.error(), Py_None);
    return Py_BuildValue("(KiL)", printed, printer.error(), static_cast<long long>(printer.length_ns()));
}

PyMethodDef printer_methods[] = {
    {"address", printer_address, METH_NOARGS, "Address of the printer as a consumer of events."},
    {"add_class", fed<printer_sink, opline::python::feed_class>, METH_VARARGS, "As a Core's."},
    {"add_stream", fed<printer_sink, opline::python::feed_stream>, METH_VARARGS, "As a Core's."},
    {"event", fed<printer_sink, opline::python::feed_event>, METH_VARARGS, "As a Core's."},
    {"discarded", fed<printer_sink, opline::python::feed_discarded>, METH_VARARGS, "As a Core's."},
    {"done", printer_done, METH_NOARGS, "True once nothing more will be printed."},
    {"finish", printer_finish, METH_NOARGS,
     "Write what is buffered; (events printed, errno of a failed write or 0, ns from the first event to the last)."},
    {nullptr, nullptr, 0, nullptr}};

opline::python::TypeSlots printer_slots = opline::python::type_slots(
    "Printer(fd, filter): writes each event that is meant; the filter is the JSON of a PrintFilter (core/printer.hpp).",
    printer_methods, printer_new, printer_dealloc);

}  // namespace

PyType_Spec opline_printer_spec = {"opline._core.Printer", sizeof(PrinterObject), 0, Py_TPFLAGS_DEFAULT,
                                   printer_slots.data()};
