# SPDX-License-Identifier: MIT
"""The page of a run: its data as columns, and the one HTML file that holds them with the script that draws them."""
