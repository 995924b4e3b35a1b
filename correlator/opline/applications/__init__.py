# SPDX-License-Identifier: MIT
"""Applications that opline knows from the inside: a folder for each, with its model and what only it needs.

`table` finds the folders; nothing else names one of them.
"""
