// SPDX-License-Identifier: MIT
// The types opline._core.BlktraceFeed and Plugs, for the module.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

extern PyType_Spec opline_blktrace_feed_spec, opline_plugs_spec;
