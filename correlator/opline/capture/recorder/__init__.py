# SPDX-License-Identifier: MIT
"""One recording from its options to its last line, and who watches over it."""
