# SPDX-License-Identifier: MIT
"""The page of `opline report`, served to this machine's browser together with the run's tables."""
