# SPDX-License-Identifier: MIT
"""Reads an op model: takes the text of a TOML file, gives a typed ``Model`` and every mistake with its line."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .language import (
    BIOS_FIELDS,
    DEFAULT_LINGER_NS,
    FACT_FIELDS,
    IGNORED,
    KEY_FIELDS,
    MAX_LINGER_NS,
    MESSAGES,
    MODEL_FIELDS,
    PARTS,
    PLACEHOLDER,
    POINT_FIELDS,
    SCOPES,
    STAGE_FIELDS,
    STAGE_KINDS,
    VERSION,
    Bios,
    Fact,
    KeySpace,
    Model,
    Problem,
    Rule,
    Stage,
)
from .point_fields import PointFields
from .positions import positions
from .probes import on_request, read_probes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from .positions import Path

_TOML_PLACE = r" \(at (?:line (\d+), column \d+|end of document)\)$"


def parse(text: str, name: str, path: str) -> tuple[Model, list[Problem]]:
    """Parse a model. The problems are sorted by line; with an error among the problems the model has only the readable
    part.
    """
    import tomllib  # a run has been correlated: readers of a run parse no model

    try:
        document = tomllib.loads(text)
        places = positions(text)
    # TOMLDecodeError is a ValueError; so is the error for an integer of thousands of digits
    except ValueError as error:
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


class _Reader(PointFields):
    """Walks the TOML tree; every mistake is noted and the walk goes on."""

    def model(self, text: str, name: str, path: str) -> Model:
        self.check_version()
        self.known((), self.document, MODEL_FIELDS, "a model")
        groups = self.table((), "groups")
        self.groups = {name: self.texts(("groups",), name, groups) for name in groups}
        self.defaults = tuple(self.read_defaults())
        self.own_batches = frozenset(self.read_batches())
        keys = tuple(self.key_spaces())
        before = len(self.problems)
        self.point_names = set()
        rules, broken = self.points()
        if not rules and not {"bios", "requests"} & set(self.document) and len(self.problems) == before:
            self.error(("points",), "a model needs [points], [bios] or [requests]")
        stages = tuple(self.stages())
        self.unused()
        self.not_read()
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
            stages=stages,
            bios=self.own_ios("bios"),
            requests=self.own_ios("requests"),
            facts=tuple(self.facts()),
            preload=self.texts((), "preload", self.document),
            probes=tuple(read_probes(self)),
            probes_on_request=on_request(self),
            earlier=self.earlier(),
            broken_points=broken,
        )

    def check_version(self) -> None:
        found: int | None = self.typed((), "version", self.document, int, "an integer")
        if found == 1:
            what = "write `version = 2`, then `opline model lint` says what to write for each word that is gone"
            self.error(("version",), f"version 1 of the language is no longer read: {what}")
        elif found not in (None, VERSION):
            self.error(("version",), f"`version = {found}`: this opline reads {VERSION}")

    def unused(self) -> None:
        """Facts for several points that hold for none; a group with a point's name."""
        names = self.point_names
        for table, known in (("groups", self.groups), ("defaults", dict(self.defaults)), ("batches", self.own_batches)):
            for name in known:
                if (table, name) not in self.used:
                    self.problems.append(Problem(self.line((table, name)), "warning", f"[{table}] {name} is not used"))
                if table == "groups" and name in names:
                    self.error((table, name), f"group {name}: a point has this name")

    def not_read(self) -> None:
        """One line for all points with words that opline no longer reads."""
        if not self.ignored:
            return
        words = " and ".join(f"`{word}`" for word in IGNORED)
        message = f"opline no longer reads {words} ({len(self.ignored)} in this model): delete them"
        self.problems.append(Problem(min(self.ignored), "warning", message))

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

    def read_defaults(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Event globs, and the default fields of their points."""
        for glob, value in self.table((), "defaults").items():
            path: Path = ("defaults", glob)
            if not isinstance(value, dict):
                self.error(path, f'defaults of {glob}: a table is wanted, "glob" = {{ optional = true }}')
            elif self.known(
                path, value, tuple(f for f in (*POINT_FIELDS, *IGNORED) if f != "event"), f"defaults of {glob}"
            ):
                yield glob, value

    def read_batches(self) -> Iterator[str]:
        """Batches without an opening point: opened by work or by a join."""
        for name, value in self.table((), "batches").items():
            path: Path = ("batches", name)
            if not isinstance(value, dict):
                self.error(path, f"batch {name}: a table is wanted, {name} = {{ auto = true }}")
            elif self.known(path, value, ("auto",), f"batch {name}") and self.typed(
                path, "auto", value, bool, "true or false"
            ):
                yield name

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
        self.point_names = {name for _, name, _ in found}
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
            and not any(self.is_field(k, v) for k, v in value.items())
            and all(isinstance(v, (str, dict, list)) for v in value.values())
        )

    def is_field(self, name: str, value: object) -> bool:
        """A point's field; `commit.join` can also be a point's name."""
        if name == "message" and isinstance(value, str):
            return value in MESSAGES
        parts = (PARTS | {"message": MESSAGES}).get(name)
        return name in POINT_FIELDS and (parts is None or (isinstance(value, dict) and {*value} <= {*parts}))

    def rule(self, path: Path, name: str, value: object) -> Rule | None:
        what = f"point {name}"
        if isinstance(value, str):
            value = {"event": value}
        if not isinstance(value, dict):
            self.error(path, f"{what}: an event's name or a table is wanted")
            return None
        self.known(path, value, (*POINT_FIELDS, *IGNORED), what)
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
        value = self.with_defaults(events, value)
        self.ignored += [self.line(path) for word in IGNORED if word in value]
        class_text = self.text(path, "class", value)
        class_field = None
        if class_text is not None and (found := PLACEHOLDER.fullmatch(class_text)):
            class_text, class_field = None, found[1]
        if class_field == "" or (class_text is not None and re.search("[{}]", class_text)):
            self.error((*path, "class"), f'{what}: `class` is a text or one "{{field}}"')
        role, end_of = self.role(path, value)
        parts = {"": (path, value)} | {part: self.part(path, part, value) for part in PARTS}
        doing, space, batch_says = self.batch(path, value)
        message, identity = self.message(path, value)
        return Rule(
            name=name,
            name_field=placeholders[0] if placeholders else None,
            line=self.line(path),
            events=events,
            when=tuple(self.conditions(path, value)),
            role=role,
            end_of=end_of,
            key=self.key_uses(path, "key", value),
            learn=self.text(path, "learn", value),
            class_text=class_text,
            class_field=class_field,
            batch_do=doing,
            batch_space=space,
            batch_says=batch_says,
            ios=self.ios(path, value),
            quorum=self.quorum(path, value),
            message=message,
            identity=identity,
            **self.by_name(parts),
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
                kind = self.word(here, "kind", part, STAGE_KINDS)
                behind = bool(self.typed(here, "behind", part, bool, "true or false"))
                ends = (self.points_of(here, "from", part), self.points_of(here, "to", part))
                yield Stage(name, *ends, kind, behind, self.line(here))

    def own_ios(self, table: str) -> tuple[Bios, ...]:
        """A table, or several tables; the first table that fits a thread counts."""
        written = self.document.get(table)
        if isinstance(written, list) and written and all(isinstance(group, dict) for group in written):
            return tuple(self.own_group(table, group) for group in written)
        group = self.table((), table)
        return (self.own_group(table, group),) if group else ()

    def own_group(self, table: str, written: Mapping[str, Any]) -> Bios:
        self.known((table,), written, BIOS_FIELDS, f"`{table}`")
        op_class, threads = self.text((table,), "class", written), self.texts((table,), "threads", written)
        for name, given in (("class", op_class), ("threads", threads)):
            if not given:
                self.error((table,), f"`{table}`: `{name}` is missing")
        return Bios(op_class or "", threads, self.texts((table,), "except", written))

    def earlier(self) -> dict[str, str]:
        written = self.table((), "earlier")
        return {glob: name for glob in written if (name := self.text(("earlier",), glob, written))}

    def linger(self) -> int:
        value: int | None = self.typed((), "linger_ns", self.document, int, "an integer")
        if value is None:
            return DEFAULT_LINGER_NS
        if not 0 <= value <= MAX_LINGER_NS:
            self.error(("linger_ns",), f"`linger_ns` lies between 0 and {MAX_LINGER_NS} (an hour)")
        return value


def _claim(event: str) -> str:
    provider, colon, _ = event.partition(":")
    return provider + ":*" if colon else event
