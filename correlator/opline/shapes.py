# SPDX-License-Identifier: MIT
"""The shape of a JSON document: which types its values must have before anybody uses them.

A shape is a type, None, a list of one shape (a list of such), a dict of shapes by key, or a tuple of shapes, one of
which must fit. A key that ends in ``?`` may be absent; the key ``*`` stands for all that are not named. Keys that the
shape does not name may have anything.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from opline.errors import OplineError

if TYPE_CHECKING:
    from typing import Any

    from opline.paths import StrPath

_NAMES = {str: "a text", int: "an integer", bool: "true or false", dict: "an object", list: "a list", float: "a number"}


def fault_in(value: Any, shape: Any, where: str = "") -> str | None:
    """What is wrong in one line, with the place; None: the value has the shape."""
    if isinstance(shape, tuple):
        faults = [fault_in(value, one, where) for one in shape]
        # the shape that it fits best is the one that it fits deepest
        return None if None in faults else max((f for f in faults if f), key=lambda f: len(f.partition(" is ")[0]))
    if shape is None or isinstance(shape, type):
        fits = value is None if shape is None else type(value) is shape
        return None if fits else f"{where or 'it'} is {_said(value)}, not {'null' if shape is None else _NAMES[shape]}"
    if isinstance(shape, list):
        if type(value) is not list:
            return fault_in(value, list, where)
        return next((f for i, v in enumerate(value) if (f := fault_in(v, shape[0], f"{where}[{i}]"))), None)
    if type(value) is not dict:
        return fault_in(value, dict, where)
    return _fault_of_keys(value, shape, where)


def _fault_of_keys(value: dict[str, Any], shape: dict[str, Any], where: str) -> str | None:
    dot = f"{where}." if where else ""
    named = {key.removesuffix("?") for key in shape}
    for key, inner in shape.items():
        name = key.removesuffix("?")
        if key == "*":
            rest = (f for k, v in value.items() if k not in named and (f := fault_in(v, inner, dot + k[:40])))
            if fault := next(rest, None):
                return fault
        elif name in value:
            if fault := fault_in(value[name], inner, dot + name):
                return fault
        elif name == key:
            return f"{dot}{name} is missing"
    return None


def _said(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:40]}…"


def parsed(text: str | bytes) -> Any:
    """The document that a text is. Raises ValueError, also of one that is nested too deeply."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def read_json(file: StrPath, shape: Any, advice: str = "") -> Any:
    """The document in a file, if it has the shape. ``advice``: what to do about one that has not.

    Raises OplineError.
    """
    try:
        with open(file, encoding="utf-8") as text:  # noqa: PTH123 (every command reads one: opline.paths)
            document = parsed(text.read())
    except OSError as error:
        raise OplineError(f"Cannot read {file}: {error.strerror}.") from error
    except ValueError as error:
        what = " ".join(str(error).split())
        raise OplineError(f"Cannot read {file}: it is damaged ({what}).{advice and ' ' + advice}") from error
    if fault := fault_in(document, shape):
        raise OplineError(f"Cannot read {file}: it is damaged: {fault}.{advice and ' ' + advice}")
    return document
