# SPDX-License-Identifier: MIT
"""Options of a command as Python gives them: `log=True, percentiles="50,99"` is `--log --percentiles 50,99`.

The command's own parser reads them, so that names, defaults and errors are the command line's.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import NoReturn

from opline.errors import UsageError
from opline_analyses.cli import parser_of

Option = str | int | float | bool | Iterable[str | int] | None


def words_of(options: dict[str, Option]) -> list[str]:
    """As they stand on the command line. None and False leave an option out; a list gives it again and again."""
    words: list[str] = []
    for name, value in options.items():
        option = f"--{name.strip('_').replace('_', '-')}"
        if value is None or value is False:
            continue
        if value is True:
            words.append(option)
            continue
        several = [value] if isinstance(value, (str, int, float)) else value
        words += [f"{option}={one}" for one in several]
    return words


def arguments(command: str, positionals: list[str], options: dict[str, Option]) -> argparse.Namespace:
    """What the command's parser makes of them. Raises UsageError for what it does not know."""
    parser = parser_of(command)

    def error(message: str) -> NoReturn:
        raise UsageError(f"{command}: {message}.")

    parser.error = error  # type: ignore[method-assign]  # argparse would end the process
    return parser.parse_args([*words_of(options), *positionals])
