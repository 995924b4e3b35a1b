# SPDX-License-Identifier: MIT
"""Pictures: heat maps as text and SVG, plots of stages, of single ops and of several runs."""
