# SPDX-License-Identifier: MIT
"""Time in intervals and values in buckets: the only engine of distributions."""
