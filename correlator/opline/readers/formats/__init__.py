# SPDX-License-Identifier: MIT
"""Files and pipes that are read as traces, one module for each format (opline.readers.registry)."""
