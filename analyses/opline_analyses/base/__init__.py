# SPDX-License-Identifier: MIT
"""What all analyses use and what knows no run: text, output files, quantities as people type them, colours."""
