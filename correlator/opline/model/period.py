# SPDX-License-Identifier: MIT
"""A model of one line, `--period BEGIN,END[,KEY]`: an op lasts from one event to another event.

Without KEY both events are on the same thread. KEY is a common field of both events (several: joined by `+`); equal
values are the same op inside a process, for kernel events on the whole machine.
"""

from __future__ import annotations

import json
import re

PREFIX = "period:"
_EVENT = re.compile(r"[^\s,*?\[\]{}\"\\]+")
_FIELDS = re.compile(r"\w+(?:\+\w+)*")


def period_text(written: str) -> str:
    """The TOML of a period's model. Raises ValueError, with the expected form."""
    begin, comma, rest = written.partition(",")
    end, with_key, key = rest.partition(",")
    if not (comma and _EVENT.fullmatch(begin) and _EVENT.fullmatch(end) and begin != end):
        raise ValueError("BEGIN,END or BEGIN,END,KEY is wanted: two events' names, and a field that both have")
    if any(event.startswith("block_") for event in (begin, end)):
        raise ValueError(
            "block events are no points: `opline requests` and `opline btt` have the intervals between them"
        )
    if with_key and not _FIELDS.fullmatch(key):
        raise ValueError(f"{key!r} is no field: FIELD or FIELD+FIELD is wanted")
    names = [json.dumps(event) for event in (begin, end)]
    scope = "process" if ":" in begin and ":" in end else "global"
    fields = json.dumps(key.split("+"))
    use = 'key = "key", ' if with_key else ""
    lines = [
        "version = 2",
        f"title = {json.dumps(f'from {begin} to {end}')}",
        f"claims = [{', '.join(names)}]",
        *(["[keys]", f'key = {{ fields = {fields}, scope = "{scope}" }}'] if with_key else []),
        "[points]",
        f'{names[0]} = {{ event = {names[0]}, {use}role = "begin", thread = "switch", class = {names[0]} }}',
        f'{names[1]} = {{ event = {names[1]}, {use}role = "end", thread = "leave" }}',
    ]
    return "\n".join(lines) + "\n"
