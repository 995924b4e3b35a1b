// SPDX-License-Identifier: MIT
// Types that push bytes into a consumer: lines of text, records of the BPF ring.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

extern PyType_Spec opline_text_feed_spec, opline_ring_feed_spec;
// parse_block_line(bytes) -> (event, ns, CPU, thread's name, thread, {field: value}) or None
PyObject *opline_parse_block_line(PyObject *, PyObject *line);
// is_block_line(bytes) -> bool
PyObject *opline_is_block_line(PyObject *, PyObject *line);
