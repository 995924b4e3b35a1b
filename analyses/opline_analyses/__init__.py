# SPDX-License-Identifier: MIT
"""Analyses of runs, their pictures, and the command line.

Every analysis is one file: takes a `runs.run.Run`, asks the run with SQL, and gives rows, lines or a picture. Each
folder has one subject; docs/internals/design.md has the order of folders.
The files in `commands` put the analyses on the command line, and are the only files that print.
"""
