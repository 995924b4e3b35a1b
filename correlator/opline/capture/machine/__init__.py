# SPDX-License-Identifier: MIT
"""What this machine is: its tools, its devices, its room, its processes."""
