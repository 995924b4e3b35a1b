# SPDX-License-Identifier: MIT
"""Opening a run, and the questions to every run: ledger, integrity, selection of ops."""
