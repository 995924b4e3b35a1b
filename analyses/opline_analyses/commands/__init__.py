# SPDX-License-Identifier: MIT
"""One file per command: NAME, HELP, EXAMPLES, prepare_parser(parser), run(args) -> exit status."""
