// SPDX-License-Identifier: MIT
// The type opline._core.Follower, for the module.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

extern PyType_Spec opline_follower_spec;
