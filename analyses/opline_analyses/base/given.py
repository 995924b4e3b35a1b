# SPDX-License-Identifier: MIT
"""Options as values: what the options of commands, or the arguments of functions in Python, were given."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar

from opline.errors import UsageError
from opline.values import Value

if TYPE_CHECKING:
    from typing import Self

    Option = str | int | float | bool | Iterable[str | int] | None

#: Options whose names are words of Python, or of one of its functions.
FIELDS_OF = {"class": "op_class", "from": "start", "to": "end"}


class Given(Value):
    """What is wanted, by the names of the options: lists of what may be given again, texts of times and sizes."""

    FIELDS: ClassVar[tuple[str, ...]]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.FIELDS = tuple(cls.__annotations__)

    @classmethod
    def from_options(cls, options: dict[str, Option]) -> Self:
        """From Python: ``class_="read"`` is --class read, ``since=5`` is --since 5. Raises UsageError for an option
        that there is not.
        """
        found: dict[str, Any] = {}
        for name, value in options.items():
            option = name.strip("_")
            field = FIELDS_OF.get(option, option)
            if field not in cls.FIELDS:
                raise UsageError(f"There is no option --{option.replace('_', '-')}.")
            kind = cls.__annotations__[field]
            if value is None:
                continue
            if kind.startswith("Sequence"):
                several = [value] if isinstance(value, (str, int, float)) else list(value)
                found[field] = several if "[int]" in kind else [str(one) for one in several]
            else:
                found[field] = str(value) if kind.startswith("str") else value
        return cls(**found)


def split(options: dict[str, Option], first: type[Given], second: type[Given]) -> tuple[Any, Any]:
    """Options from Python as values of two kinds. Raises UsageError for one that neither has."""
    of_first = {
        name: v for name, v in options.items() if FIELDS_OF.get(name.strip("_"), name.strip("_")) in first.FIELDS
    }
    return first.from_options(of_first), second.from_options(
        {name: v for name, v in options.items() if name not in of_first}
    )
