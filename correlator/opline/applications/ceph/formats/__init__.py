# SPDX-License-Identifier: MIT
"""What Ceph's daemons and its benchmark print, one module for each format (opline.readers.registry)."""
