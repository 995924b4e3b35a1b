# SPDX-License-Identifier: MIT
"""`opline model infer` where nobody has said what a probe's arguments are: fields are arg1, arg2, … of each event.

Of recordings whose fields have names these are taken away: what is inferred must be the same but for the names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from tests.infer.test_infer import _trace

from opline.model import Model, check_text
from opline_analyses.infer import events as reading
from opline_analyses.infer import infer
from opline_analyses.infer.events import Event, Events
from opline_analyses.infer.probed import Probed, table
from opline_analyses.infer.unnamed import Uses, what_is_it

NAMED = (
    "demo-qd4", "infer/demo-libaio", "app-sync-qd4-nvme", "app-libaio-qd16-nvme", "app-buf-fsync1-ext4",
    "postgresql/pgbench-4", "rocksdb/writes-240",
)  # fmt: skip
Trace = Callable[[str], Path]
Names = dict[str, dict[str, str]]  # per event: arg1 … by the field's name


def model_of(text: str) -> Model:
    model, problems = check_text(text, "m", "m.toml")
    assert not [p for p in problems if p.severity == "error"], problems
    return model


def numbered(events: Iterable[Event], names: Names) -> list[Event]:
    found = []
    for event in events:
        mine = names.setdefault(event.name, {})
        fields = {mine.setdefault(name, f"arg{len(mine) + 1}"): value for name, value in event.fields.items()}
        found.append(event._replace(fields=fields))
    return found


def described(model: Model, names: Names) -> dict[str, Any]:
    """What a model says of each event, its fields by number; keys by all that carry them."""
    own = {space.name: space.fields for space in model.keys}
    carried: dict[str, set[tuple[str, tuple[str, ...]]]] = {}

    def number(event: str, fields: Iterable[str | None]) -> tuple[str | None, ...]:
        return tuple(names.get(event, {}).get(field, field) if field else field for field in fields)

    for rule in model.rules:
        for use in (*rule.key, *rule.bind):
            for event in rule.events:
                fields = number(event, use.fields or own[use.space])
                carried.setdefault(use.space, set()).add((event, tuple(map(str, fields))))
    rules: dict[str, Any] = {"keys": {frozenset(uses) for uses in carried.values()}}
    for rule in model.rules:
        if rule.in_flight is None:  # places and lengths are told by their names alone
            event = rule.events[0]
            when = [(*number(event, (one.field,)), one.values) for one in rule.when]
            says = [(word, *number(event, (field,))) for word, field in rule.batch_says]
            about = (rule.role, rule.thread, rule.optional, rule.aside, when, rule.batch_do, says)
            rules.setdefault(event, []).append((*about, [frozenset(carried[use.space]) for use in rule.key]))
    return rules


@pytest.mark.parametrize("name", NAMED)
def test_without_names_the_same_keys_ends_and_threads_are_found(
    name: str, trace: Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = _trace(name, trace, tmp_path)
    where = where / "trace" if (where / "trace").exists() else where
    seen = reading.read_events(where)
    names: Names = {}
    blind: Events = seen._replace(events=numbered(seen.events, names), hex_fields=frozenset())
    monkeypatch.setattr(reading, "read_events", lambda _: seen)
    with_names = described(model_of(infer(where)), names)
    monkeypatch.setattr(reading, "read_events", lambda _: blind)
    text = infer(where)
    assert described(model_of(text), {}) == with_names
    assert len(with_names["keys"]) >= 1
    assert "# ? What is it (arg" in text
    assert all(len(line) <= 120 for line in text.splitlines() if line.startswith("#"))


def test_postgresqls_own_probes_make_a_statement_the_op(trace: Trace, tmp_path: Path) -> None:
    """Blocks and locks that several backends are at are no op's name: a backend does its statement alone."""
    where = _trace("infer/postgresql-usdt", trace, tmp_path)
    text = infer(where)
    model = model_of(text)
    assert model.keys == () and "No field's values join events of several threads" in text
    roles = {rule.events[0]: rule.role for rule in model.rules if rule.role}
    assert roles == {"postgresql:query__start": "begin", "postgresql:query__done": "end"}
    assert "# 558 ops, of which 558 end" in text
    inside = {rule.events[0].partition(":")[2] for rule in model.rules}
    assert inside >= {
        "query__parse__start",
        "transaction__commit",
        "lwlock__acquire",
        "buffer__read__start",
        "wal__insert",
    }


def test_what_is_asked_of_a_key() -> None:
    assert what_is_it({"a:b": ("conn",)}) is None
    uses: Uses = {f"a:e{n}": (f"arg{n}",) for n in range(1, 9)}
    listed = ", ".join(f"arg{n} of e{n}" for n in range(1, 7))
    said = f'? What is it ({listed} and 2 more)? A name says so, in [probes]: fields = {{ NAME = "arg1" }}'
    assert what_is_it(uses) == said


def test_what_arguments_were_is_said_above_a_probe() -> None:
    fields = ", ".join(f'{name} = "{name}"' for name in ("arg1", "arg2", "arg3", "arg4"))
    line = f'"p:e" = {{ usdt = "p:e", program = "x", fields = {{ {fields}, id = "arg5" }} }}'
    model = model_of(f'version = 2\n[probes]\n{line}\n[points]\ne = {{ event = "p:e", role = "begin", class = "?" }}\n')
    values = [{"arg1": 1 << 40, "arg2": 3 * n, "arg3": 7, "arg4": n % 2, "id": n} for n in range(6)]
    events = [Event(n, "p:e", ("h", 1, 1), "", dict(one)) for n, one in enumerate(values)]
    assert [text for text in table(Probed(model, ()), {"p:e"}, events) if text.startswith("#")] == [
        "# ? arg1: always as large as an address. Of a text (argN:text32), of a structure (argN->OFFSET)?",
        "# ? What are they: arg2 0 to 15, 6 values; arg3 always 7; arg4 0 or 1",
    ]
