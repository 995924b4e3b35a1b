# SPDX-License-Identifier: MIT
"""Analyses of runs, their pictures, and the command line.

Every analysis is one file: it takes a `runs.run.Run`, asks it with SQL, and gives rows, lines or a picture. Each folder
has one subject; docs/internals/design.md has their order.
The files in `commands` put them on the command line, and are the only ones that print.
"""
