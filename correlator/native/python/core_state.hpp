// SPDX-License-Identifier: MIT
// What an object of the type opline._core.Core holds. Private to core_type.cpp and core_feed.cpp.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <memory>
#include <string>

#include "core/core.hpp"
#include "output/parquet/writers.hpp"
#include "sink_feed.hpp"

namespace opline::python {

struct CoreState {
    explicit CoreState(const std::string &plan) : core(plan) {}
    Core core;
    SinkFeed feed{core};
    PyObject *csv = nullptr;                    // kept alive while the core feeds it
    std::unique_ptr<parquet::Writers> writers;  // of write(); they read the core's strings
};

struct CoreObject {
    PyObject_HEAD
    CoreState *state;
};

inline CoreState &state_of(PyObject *self) { return *reinterpret_cast<CoreObject *>(self)->state; }
inline SinkFeed &core_sink(PyObject *self) { return state_of(self).feed; }
inline Core &core_of(PyObject *self) { return state_of(self).core; }

}  // namespace opline::python
