# SPDX-License-Identifier: MIT
"""The LTTng session of a recording, its daemon and its index files."""
