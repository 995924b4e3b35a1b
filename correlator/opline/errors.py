# SPDX-License-Identifier: MIT
"""Errors meant for the person at the terminal: one clear line, and the exit status it leads to.

Raise them anywhere; only the command line's ``main`` catches them.
"""

from __future__ import annotations


class OplineError(Exception):
    """Something failed. The message says what, where, and what to do about it."""

    def __init__(self, message: str, exit_code: int = 1) -> None:
        super().__init__(message)
        self.message = message
        self.lines = [message]  # what is printed; names in it have no line of their own
        self.exit_code = exit_code


class TraceError(OplineError):
    """A trace that can't be read: what, where, what to do."""


class UsageError(OplineError):
    """The command line asks for something that does not exist or contradicts itself."""

    def __init__(self, message: str) -> None:
        super().__init__(message, exit_code=2)
