# SPDX-License-Identifier: MIT
"""BPF programs and the bridge from them into an LTTng session."""
