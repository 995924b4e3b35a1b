# SPDX-License-Identifier: MIT
"""Reads an op model: takes the text of a TOML file, gives a typed ``Model`` and every mistake in it with its line."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING

from .language import (
    BATCH_DOINGS,
    BIOS_FIELDS,
    DEFAULT_LINGER_NS,
    DIRECTIONS,
    FACT_FIELDS,
    IOS_FIELDS,
    KEY_FIELDS,
    MAX_LINGER_NS,
    MODEL_FIELDS,
    PLACEHOLDER,
    POINT_FIELDS,
    ROLES,
    SCOPES,
    STAGE_FIELDS,
    STAGE_KINDS,
    THREAD_RULES,
    UNITS_NS,
    WINDOWS,
    Bios,
    Condition,
    Fact,
    Ios,
    KeySpace,
    KeyUse,
    Model,
    Problem,
    Rule,
    Stage,
)
from .positions import positions
from .probes import read_probes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from .positions import Path, Place

_KEY_USE = re.compile(r"\s*([^\s()]+)\s*(?:\(([^()]*)\))?\s*")
_TOML_PLACE = r" \(at (?:line (\d+), column \d+|end of document)\)$"


def parse(text: str, name: str, path: str) -> tuple[Model, list[Problem]]:
    """Parse a model. The problems are sorted by line; with an error among them the model is what could be read."""
    try:
        document = tomllib.loads(text)
        places = positions(text)
    except ValueError as error:  # TOMLDecodeError is one; an integer of thousands of digits is another
        message = str(error)
        found = re.search(_TOML_PLACE, message)
        last = text.count("\n") + 1
        line = int(found[1]) if found and found[1] else last
        what = re.sub(_TOML_PLACE, "", message)
        return _empty(text, name, path), [Problem(line, "error", f"not valid TOML: {_lower(what)}")]
    except RecursionError:
        return _empty(text, name, path), [Problem(0, "error", "not a model: nested too deeply")]
    reader = _Reader(document, places)
    model = reader.model(text, name, path)
    return model, sorted(reader.problems)


def _empty(text: str, name: str, path: str) -> Model:
    return Model(name, path, name, text, "", [], 0, (), DEFAULT_LINGER_NS, (), (), ())


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


class _Reader:
    """Walks the TOML tree; every mistake is noted and the walk goes on."""

    def __init__(self, document: Mapping[str, Any], places: Mapping[Path, Place]) -> None:
        self.document = document
        self.places = places
        self.problems: list[Problem] = []

    def line(self, path: Path) -> int:
        while path and path not in self.places:
            path = path[:-1]
        return self.places[path].line if path else 0

    def error(self, path: Path, message: str) -> None:
        self.problems.append(Problem(self.line(path), "error", message))

    def model(self, text: str, name: str, path: str) -> Model:
        self.known((), self.document, MODEL_FIELDS, "a model")
        keys = tuple(self.key_spaces())
        before = len(self.problems)
        rules, broken = self.points()
        if not rules and len(self.problems) == before:
            self.error(("points",), "a model needs [points]")
        claims = list(self.texts((), "claims", self.document))
        if not claims:
            claims = list(dict.fromkeys(_claim(event) for rule in rules for event in rule.events))
        title = self.text((), "title", self.document) or name
        if "\n" in title:
            self.error(("title",), "`title` is one line; put more into `text`")
        return Model(
            name=name,
            path=path,
            title=title,
            text=text,
            description=self.text((), "text", self.document) or "",
            claims=claims,
            claims_line=self.line(("claims",)),
            ignore=self.texts((), "ignore", self.document),
            linger_ns=self.linger(),
            keys=keys,
            rules=rules,
            stages=tuple(self.stages()),
            bios=self.bios(),
            facts=tuple(self.facts()),
            preload=self.texts((), "preload", self.document),
            probes=tuple(read_probes(self)),
            broken_points=broken,
        )

    # -- tables --------------------------------------------------------------------------------------------------------

    def key_spaces(self) -> Iterator[KeySpace]:
        for name, value in self.table((), "keys").items():
            path: Path = ("keys", name)
            if not re.fullmatch(r"[^\s()=]+", name):
                self.error(path, f"key space {name!r}: a name has no spaces, brackets or `=`")
            if isinstance(value, (str, list)):
                value = {"fields": value}
            if not isinstance(value, dict):
                self.error(path, f"key space {name}: a field's name, a list of them, or a table is wanted")
                continue
            self.known(path, value, KEY_FIELDS, f"key space {name}")
            scope = self.word(path, "scope", value, SCOPES) or SCOPES[0]
            by_order = bool(self.typed(path, "by_order", value, bool, "true or false"))
            fields, carries = self.texts(path, "fields", value), self.texts(path, "with", value)
            yield KeySpace(name, fields, scope, self.line(path), by_order, carries)

    def facts(self) -> Iterator[Fact]:
        for name, value in self.table((), "facts").items():
            path: Path = ("facts", name)
            if not isinstance(value, dict):
                self.error(path, f"fact {name}: a table with `of` and `value` is wanted")
                continue
            self.known(path, value, FACT_FIELDS, f"fact {name}")
            of, told = self.text(path, "of", value), self.texts(path, "value", value)
            if of is None or not told:
                self.error(path, f"fact {name}: `of` and `value` are needed")
                continue
            scope = self.word(path, "scope", value, SCOPES) or SCOPES[0]
            unordered = bool(self.typed(path, "unordered", value, bool, "true or false"))
            yield Fact(name, of, told, scope, unordered, self.line(path))

    def points(self) -> tuple[tuple[Rule, ...], tuple[str, ...]]:
        found: list[tuple[Path, str, Any]] = []
        self.flatten(("points",), "", self.table((), "points"), found)
        found.sort(key=lambda f: self.places[f[0]].order)
        rules: list[Rule] = []
        broken: list[str] = []
        for path, name, value in found:
            before = len(self.problems)
            rule = self.rule(path, name, value)
            if rule is not None:
                rules.append(rule)
            if len(self.problems) > before:
                broken.append(name)
        return tuple(rules), tuple(broken)

    def flatten(self, path: Path, prefix: str, table: Mapping[str, Any], found: list[tuple[Path, str, Any]]) -> None:
        """Dotted keys and sub-tables make dotted names; a list gives several rules."""
        for name, value in table.items():
            here = (*path, name)
            full = prefix + name
            if isinstance(value, list):
                if not value:
                    self.error(here, f"point {full}: an empty list has no rule")
                found.extend(((*here, i), full, v) for i, v in enumerate(value))
            elif self.is_group(here, value):
                self.flatten(here, full + ".", value, found)
            else:
                found.append((here, full, value))

    def is_group(self, path: Path, value: object) -> bool:
        return (
            isinstance(value, dict)
            and bool(value)
            and not self.places[path].inline
            and not any(k in POINT_FIELDS for k in value)
            and all(isinstance(v, (str, dict, list)) for v in value.values())
        )

    def rule(self, path: Path, name: str, value: object) -> Rule | None:
        what = f"point {name}"
        if isinstance(value, str):
            value = {"event": value}
        if not isinstance(value, dict):
            self.error(path, f"{what}: an event's name or a table is wanted")
            return None
        self.known(path, value, POINT_FIELDS, what)
        placeholders = PLACEHOLDER.findall(name)
        if len(placeholders) > 1 or "" in placeholders or re.search(r"[{}]", PLACEHOLDER.sub("", name)):
            self.error(path, f"{what}: a name may contain one {{field}} and no other braces")
        if not name or name != name.strip() or not name.isprintable():
            self.error(path, f"point {name!r}: a name is printable text without spaces around it")
        events = self.texts(path, "event", value)
        if "event" not in value:
            if ":" in name and not placeholders:
                events = (name,)
            else:
                self.error(path, f"{what}: `event` is missing (only a name like provider:event is an event by itself)")
        class_text = self.text(path, "class", value)
        class_field = None
        if class_text is not None and (found := PLACEHOLDER.fullmatch(class_text)):
            class_text, class_field = None, found[1]
        if class_field == "" or (class_text is not None and re.search("[{}]", class_text)):
            self.error((*path, "class"), f'{what}: `class` is a text or one "{{field}}"')
        duration, unit_ns = self.duration(path, value)
        doing, space, batch_count = self.batch(path, value)
        return Rule(
            name=name,
            name_field=placeholders[0] if placeholders else None,
            line=self.line(path),
            events=events,
            when=tuple(self.conditions(path, value)),
            role=self.word(path, "role", value, ROLES),
            end_of=self.texts(path, "end_of", value),
            key=self.key_uses(path, "key", value),
            bind=self.key_uses(path, "bind", value),
            release=self.key_uses(path, "release", value),
            wait=self.key_uses(path, "wait", value),
            meet=self.key_uses(path, "meet", value),
            sole=self.key_uses(path, "sole", value),
            optional=bool(self.typed(path, "optional", value, bool, "true or false")),
            child=bool(self.typed(path, "child", value, bool, "true or false")),
            learn=self.text(path, "learn", value),
            mark=self.text(path, "mark", value),
            at=self.text(path, "at", value),
            thread=self.word(path, "thread", value, THREAD_RULES),
            class_text=class_text,
            class_field=class_field,
            object=self.text(path, "object", value),
            offset=self.text(path, "offset", value),
            length=self.text(path, "length", value),
            io=self.word(path, "io", value, WINDOWS),
            sync_wait=self.word(path, "sync_wait", value, WINDOWS),
            direction=self.word(path, "direction", value, DIRECTIONS),
            file_by=self.text(path, "file_by", value),
            duration_field=duration,
            duration_unit_ns=unit_ns,
            aside=bool(self.typed(path, "aside", value, bool, "true or false")),
            after=self.texts(path, "after", value),
            batch_do=doing,
            batch_space=space,
            batch_count=batch_count,
            ios=self.ios(path, value),
        )

    def stages(self) -> Iterator[Stage]:
        for name, value in self.table((), "stages").items():
            path: Path = ("stages", name)
            if not name.strip() or not name.isprintable():
                self.error(path, f"stage {name!r}: a name is printable text")
            parts = value if isinstance(value, list) else [value]
            for i, part in enumerate(parts):
                here = (*path, i) if isinstance(value, list) else path
                if not isinstance(part, dict):
                    self.error(here, f"stage {name}: a table with `from` and `to` is wanted")
                    continue
                self.known(here, part, STAGE_FIELDS, f"stage {name}")
                for end in ("from", "to"):
                    if end not in part:
                        self.error(here, f"stage {name}: `{end}` is missing")
                kind = self.word(here, "kind", part, STAGE_KINDS) or STAGE_KINDS[0]
                behind = bool(self.typed(here, "behind", part, bool, "true or false"))
                ends = (self.texts(here, "from", part), self.texts(here, "to", part))
                yield Stage(name, *ends, kind, behind, self.line(here))

    # -- fields --------------------------------------------------------------------------------------------------------

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
            uses.append(KeyUse(found[1], tuple(names), self.line((*path, field))))
        return tuple(uses)

    def duration(self, path: Path, value: Mapping[str, Any]) -> tuple[str | None, int]:
        written = value.get("duration")
        if written is None or isinstance(written, str):
            return self.text(path, "duration", value), 1
        here = (*path, "duration")
        if not isinstance(written, dict):
            self.error(here, '`duration`: a field\'s name or { field = "…", unit = "s" } is wanted')
            return None, 1
        self.known(here, written, ("field", "unit"), "`duration`")
        if "field" not in written:
            self.error(here, "`duration`: `field` is missing")
        unit = self.word(here, "unit", written, tuple(UNITS_NS)) or "ns"
        return self.text(here, "field", written), UNITS_NS[unit]

    def batch(self, path: Path, value: Mapping[str, Any]) -> tuple[str | None, str | None, str | None]:
        written = value.get("batch")
        if written is None:
            return None, None, None
        here = (*path, "batch")
        doings = [name for name in written if name != "count"] if isinstance(written, dict) else []
        if not isinstance(written, dict) or len(doings) != 1 or ("count" in written and doings != ["close"]):
            self.error(
                here,
                '`batch`: { open = "name" }, or open_or_work, join, open_or_join, work or close instead, is wanted',
            )
            return None, None, None
        if not self.known(here, written, (*BATCH_DOINGS, "count"), "`batch`"):
            return None, None, None
        return doings[0], self.text(here, doings[0], written), self.text(here, "count", written)

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
            ring=bool(self.typed(here, "ring", written, bool, "true or false")),
            submitted=self.text(here, "submitted", written),
            reaped=self.text(here, "reaped", written),
        )

    def bios(self) -> Bios | None:
        written = self.table((), "bios")
        if not written:
            return None
        self.known(("bios",), written, BIOS_FIELDS, "`bios`")
        op_class, threads = self.text(("bios",), "class", written), self.texts(("bios",), "threads", written)
        for name, given in (("class", op_class), ("threads", threads)):
            if not given:
                self.error(("bios",), f"`bios`: `{name}` is missing")
        return Bios(op_class or "", threads, self.texts(("bios",), "except", written))

    def linger(self) -> int:
        value: int | None = self.typed((), "linger_ns", self.document, int, "an integer")
        if value is None:
            return DEFAULT_LINGER_NS
        if not 0 <= value <= MAX_LINGER_NS:
            self.error(("linger_ns",), f"`linger_ns` lies between 0 and {MAX_LINGER_NS} (an hour)")
        return value

    # -- values (most fields are absent: that is to cost little) ------------------------------------------------------

    def known(self, path: Path, table: Mapping[str, Any], fields: tuple[str, ...], what: str) -> bool:
        unknown = [f for f in table if f not in fields]
        for field in unknown:
            self.error((*path, field), f"{what} has no field `{field}`{_did_you_mean(field, fields)}")
        return not unknown

    def table(self, path: Path, field: str) -> Mapping[str, Any]:
        found: Mapping[str, Any] | None = self.typed(path, field, self.document, dict, "a table")
        return found or {}

    def typed(self, path: Path, field: str, table: Mapping[str, Any], kind: type[Any], wanted: str) -> Any:
        value = table.get(field)
        if value is None or (isinstance(value, kind) and (kind is not int or not isinstance(value, bool))):
            return value
        self.error((*path, field), f"`{field}`: {wanted} is wanted, not {_say_type(value)}")
        return None

    def text(self, path: Path, field: str, table: Mapping[str, Any]) -> str | None:
        if field not in table:
            return None
        value: str | None = self.typed(path, field, table, str, "a text")
        if value == "":
            self.error((*path, field), f"`{field}` is empty")
        return value or None

    def texts(self, path: Path, field: str, table: Mapping[str, Any]) -> tuple[str, ...]:
        if field not in table:
            return ()
        value = table[field]
        if isinstance(value, list) and all(isinstance(v, str) and v for v in value):
            return tuple(value)
        if isinstance(value, list):
            self.error((*path, field), f"`{field}`: a list of texts is wanted")
            return ()
        one = self.text(path, field, table)
        return () if one is None else (one,)

    def word(self, path: Path, field: str, table: Mapping[str, Any], words: tuple[str, ...]) -> str | None:
        if field not in table:
            return None
        value = self.text(path, field, table)
        if value is None or value in words:
            return value
        self.error((*path, field), f'`{field} = "{value}"`: one of {", ".join(words)} is wanted')
        return None


def _claim(event: str) -> str:
    provider, colon, _ = event.partition(":")
    return provider + ":*" if colon else event


def _did_you_mean(word: str, words: tuple[str, ...]) -> str:
    import difflib

    close = difflib.get_close_matches(word, words, n=1)
    return f" (did you mean `{close[0]}`?)" if close else f" (it has {', '.join(words)})"


_TYPE_NAMES: tuple[tuple[type, str], ...] = (
    (bool, "true or false"),
    (str, "a text"),
    (int, "an integer"),
    (float, "a decimal number"),
    (list, "a list"),
    (dict, "a table"),
)


def _say_type(value: object) -> str:
    return next((name for kind, name in _TYPE_NAMES if isinstance(value, kind)), "a date or time")
