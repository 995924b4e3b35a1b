# SPDX-License-Identifier: MIT
"""The page of `opline report`, served to this machine's browser with the run's tables behind it."""
