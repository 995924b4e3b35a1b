# SPDX-License-Identifier: MIT
"""Man pages and shell completion, made from the commands' own parsers at the build."""
