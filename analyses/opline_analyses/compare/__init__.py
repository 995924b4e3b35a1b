# SPDX-License-Identifier: MIT
"""What has changed between runs: figures, verdicts with intervals, and gates."""
