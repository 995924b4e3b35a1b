# SPDX-License-Identifier: MIT
"""Inputs that have histograms alone: what other tools counted while they measured. There are no single I/Os in them."""
