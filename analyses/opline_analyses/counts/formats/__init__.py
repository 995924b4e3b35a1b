# SPDX-License-Identifier: MIT
"""Inputs with histograms, or with times and latencies, one module for each format (opline.readers.registry)."""
