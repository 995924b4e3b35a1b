# SPDX-License-Identifier: MIT
"""Analyses of runs, their pictures, and the command line."""
