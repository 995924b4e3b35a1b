# SPDX-License-Identifier: MIT
"""The fields of a model's point: read here; ``reader.py`` makes the point from the fields."""

from __future__ import annotations

import fnmatch
import re
from typing import TYPE_CHECKING

from .fields import Fields
from .language import (
    ALL,
    BATCH_DOINGS,
    BATCH_SAYS,
    FLAGS,
    IOS_FIELDS,
    KEYS,
    MESSAGES,
    PARTS,
    POINTS,
    ROLES,
    TEXTS,
    WINDOWS,
    WORDS,
    Condition,
    Ios,
    KeyUse,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from .positions import Path, Place

_KEY_USE = re.compile(r"\s*+([^\s()]++)\s*+(?:\(([^()]*+)\))?\s*+")


class PointFields(Fields):
    """The fields of a point, and the tables valid for several points."""

    def __init__(self, document: Mapping[str, Any], places: Mapping[Path, Place]) -> None:
        super().__init__(document, places)
        self.used: set[tuple[str, str]] = set()  # names in tables valid for several points
        self.ignored: list[int] = []  # lines of points with words that opline no longer reads

    groups: Mapping[str, tuple[str, ...]]
    defaults: tuple[tuple[str, Mapping[str, Any]], ...]
    own_batches: frozenset[str]
    point_names: set[str]

    def with_defaults(self, events: tuple[str, ...], value: Mapping[str, Any]) -> Mapping[str, Any]:
        """The point's own fields, and the fields of all ``[defaults]`` valid for all of its events."""
        for glob, fields in reversed(self.defaults):
            if events and all(fnmatch.fnmatchcase(event, glob) for event in events):
                self.used.add(("defaults", glob))
                value = {**fields, **value}
        return value

    def part(self, path: Path, field: str, value: Mapping[str, Any]) -> tuple[Path, Mapping[str, Any]]:
        """A table of a point, with the table's place."""
        found = self.typed(path, field, value, dict, f"a table with {', '.join(PARTS[field])}") or {}
        self.known((*path, field), found, PARTS[field], f"`{field}`")
        return (*path, field), found

    def by_name(self, parts: Mapping[str, tuple[Path, Mapping[str, Any]]]) -> dict[str, Any]:
        """The fields read by name alone (language.py). ``parts``: the point itself and its tables, with places."""
        path, value = parts[""]
        found: dict[str, Any] = {f: bool(self.typed(path, f, value, bool, "true or false")) for f in FLAGS}
        for field, part in TEXTS.items():
            here, table = parts[part]
            found[field] = self.text(here, field, table)
        for field, (part, words) in WORDS.items():
            here, table = parts[part]
            found[field] = self.word(here, field, table, words)
        for field, part in KEYS.items():
            here, table = parts[part]
            found[field] = self.key_uses(here, field, table)
        found |= {field: self.points_of(path, field, value) for field in POINTS}
        return found

    def role(self, path: Path, value: Mapping[str, Any]) -> tuple[str | None, tuple[str, ...]]:
        """The role in the plan's word, and for an end the classes ended."""
        written = value.get("role")
        if not isinstance(written, dict):
            word = self.word(path, "role", value, tuple(ROLES))
            return None if word is None else ROLES[word], ()
        here = (*path, "role")
        if len(written) != 1 or not self.known(here, written, ("end", "end?"), "`role`"):
            self.error(here, '`role`: a word, or { "end" = ["class", …] }, is wanted')
            return None, ()
        (word,) = written
        return ROLES[word], self.texts(here, word, written)

    def points_of(self, path: Path, field: str, value: Mapping[str, Any]) -> tuple[str, ...]:
        """Names of points; a group's name stands for all points of the group."""
        named = self.texts(path, field, value)
        self.used |= {("groups", name) for name in named}
        return tuple(dict.fromkeys(point for name in named for point in self.groups.get(name, (name,))))

    def conditions(self, path: Path, value: Mapping[str, Any]) -> Iterator[Condition]:
        when = self.typed(path, "when", value, dict, "a table { field = value }") or {}
        for field, wanted in when.items():
            values = wanted if isinstance(wanted, list) else [wanted]
            good = [v for v in values if isinstance(v, str) or (isinstance(v, int) and not isinstance(v, bool))]
            if not values or len(good) < len(values):
                self.error((*path, "when", field), f"`when.{field}`: an integer, a string, or a list of them is wanted")
            elif any(isinstance(v, int) and not -(2**63) <= v < 2**64 for v in good):
                self.error((*path, "when", field), f"`when.{field}`: an integer of more than 64 bits")
            else:
                yield Condition(field, tuple(good))

    def key_uses(self, path: Path, field: str, value: Mapping[str, Any]) -> tuple[KeyUse, ...]:
        if field not in value:
            return ()
        uses: list[KeyUse] = []
        for written in self.texts(path, field, value):
            found = _KEY_USE.fullmatch(written)
            names = [f.strip() for f in found[2].split(",")] if found and found[2] is not None else []
            if found is None or "" in names:
                message = f'`{field} = "{written}"`: a key is written "space" or "space(field, field)"'
                self.error((*path, field), message)
                continue
            if ALL in names and (field != "release" or names != [ALL]):
                self.error((*path, field), f'`{field} = "{written}"`: `*` stands alone, and in `release`')
                continue
            uses.append(KeyUse(found[1], tuple(names), self.line((*path, field))))
        return tuple(uses)

    def batch(self, path: Path, value: Mapping[str, Any]) -> tuple[str | None, str | None, tuple[tuple[str, str], ...]]:
        """The point's act on a batch, the batch, and the fields with more facts."""
        nothing = None, None, ()
        written = value.get("batch")
        if written is None:
            return nothing
        here = (*path, "batch")
        doings = [name for name in written if name not in BATCH_SAYS] if isinstance(written, dict) else []
        if not isinstance(written, dict) or len(doings) != 1:
            self.error(here, '`batch`: { open = "name" }, or join, work, close or leave instead, is wanted')
            return nothing
        if not self.known(here, written, (*BATCH_DOINGS, *BATCH_SAYS), "`batch`"):
            return nothing
        (doing,) = doings
        for word, goes_with in (("count", ("close",)), ("needs", ("open", "join")), ("reaches", ("work", "close"))):
            if word in written and doing not in goes_with:
                self.error((*here, word), f"`batch`: `{word}` goes with {' or '.join(goes_with)}")
        if "among" in written and not {"needs", "reaches"} & written.keys():
            self.error((*here, "among"), "`batch`: `among` goes with `needs` or `reaches`")
        space = self.text(here, doing, written)
        self.used.add(("batches", space or ""))
        opens = space in self.own_batches and doing in ("work", "join")
        told = ((word, self.text(here, word, written)) for word in BATCH_SAYS)
        return (
            f"open_or_{doing}" if opens else doing,
            space,
            tuple((word, field) for word, field in told if field is not None),
        )

    def message(self, path: Path, value: Mapping[str, Any]) -> tuple[str | None, tuple[KeyUse, ...]]:
        """The point's act on a message, and the key of the message's identity, if named."""
        written = value.get("message")
        if not isinstance(written, dict):
            return (None if written is None else self.word(path, "message", value, MESSAGES)), ()
        here = (*path, "message")
        if len(written) != 1 or not self.known(here, written, MESSAGES, "`message`"):
            self.error(here, '`message`: "send", "receive", or { send = "space" } is wanted')
            return None, ()
        (word,) = written
        uses = self.key_uses(here, word, written)
        if len(uses) != 1:
            self.error(here, "`message`: one key is wanted")
        return word, uses

    def quorum(self, path: Path, value: Mapping[str, Any]) -> int | None:
        """The number of children awaited by the op at this point."""
        found: int | None = self.typed(path, "quorum", value, int, "an integer")
        if found is not None and (found < 1 or "after" not in value):
            self.error((*path, "quorum"), "`quorum`: how many children of `after` are waited for: 1 or more")
            return None
        return found

    def ios(self, path: Path, value: Mapping[str, Any]) -> Ios | None:
        written = self.typed(path, "ios", value, dict, "a table")
        if written is None:
            return None
        here = (*path, "ios")
        self.known(here, written, IOS_FIELDS, "`ios`")
        keys = {name: self.key_uses(here, name, written) for name in ("submit", "wait")}
        for name, uses in keys.items():
            if len(uses) > 1:
                self.error((*here, name), f"`ios.{name}`: one key is wanted")
        return Ios(
            submit=next(iter(keys["submit"]), None),
            wait=next(iter(keys["wait"]), None),
            count_field=self.text(here, "count", written),
            least=self.text(here, "least", written),
            ring=bool(self.typed(here, "ring", written, bool, "true or false")),
            submitted=self.text(here, "submitted", written),
            reaped=self.text(here, "reaped", written),
            names=self.text(here, "names", written),
            told=self.word(here, "told", written, WINDOWS),
            taken=self.text(here, "taken", written),
            posted=self.text(here, "posted", written),
        )
