# SPDX-License-Identifier: MIT
"""What a shell knows of the program: man pages and completion, made of the commands' own parsers when it is built."""
