# SPDX-License-Identifier: MIT
"""Inputs with histograms only: other tools' counts. These inputs have no single I/Os."""
