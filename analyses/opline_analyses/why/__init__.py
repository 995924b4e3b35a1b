# SPDX-License-Identifier: MIT
"""Why ops are slow: the sets that are compared, the tail, the root, and what separates the slow ones."""
