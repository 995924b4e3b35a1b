// SPDX-License-Identifier: MIT
// The types opline._core.WireSink and WireFeed, for the module.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

extern PyType_Spec opline_wire_sink_spec, opline_wire_feed_spec;
