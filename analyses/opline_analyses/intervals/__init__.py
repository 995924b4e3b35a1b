# SPDX-License-Identifier: MIT
"""Time in intervals and values in buckets: the one engine of all distributions."""
