# SPDX-License-Identifier: MIT
"""Opening a run, and what is asked of every run: its ledger, its integrity, which ops are meant."""
