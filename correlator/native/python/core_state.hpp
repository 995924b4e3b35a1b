// SPDX-License-Identifier: MIT
// What an object of the type opline._core.Core holds. Private to core_type.cpp and core_feed.cpp.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <cstddef>
#include <string>
#include <vector>

#include "core/core.hpp"

namespace opline::python {

struct CoreState {
    explicit CoreState(const std::string &plan) : core(plan) {}
    Core core;
    std::vector<std::size_t> wanted;  // per class that came through add_class(): how many values an event has
    std::size_t streams = 0;
    PyObject *csv = nullptr;  // kept alive while the core feeds it
};

struct CoreObject {
    PyObject_HEAD
    CoreState *state;
};

inline CoreState &state_of(PyObject *self) { return *reinterpret_cast<CoreObject *>(self)->state; }
inline Core &core_of(PyObject *self) { return state_of(self).core; }

}  // namespace opline::python
