# SPDX-License-Identifier: MIT
"""Follow one application operation from its tracepoints down to the disk and back."""

__version__ = "0.1.0"
