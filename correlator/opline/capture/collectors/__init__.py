# SPDX-License-Identifier: MIT
"""Programs beside a recording: kernel events into LTTng, and which files are opened and where they lie."""
