/* SPDX-License-Identifier: MIT */
/* Python as a program of the thread sanitizer, which has to be there from the start. */
#include <Python.h>

int main(int argc, char **argv) { return Py_BytesMain(argc, argv); }
