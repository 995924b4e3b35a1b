# SPDX-License-Identifier: MIT
"""Mistakes in op models: all of them are found, each with its line; and what a trace says about a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from opline.errors import OplineError
from opline.model import ModelError, asked_fields, check_text, check_trace, format_problem, load_model

SMALL = """\
[keys]
op = "id"
[points]
"p:begin" = { role = "begin", key = "op" }
"p:end" = { role = "end", key = "op" }
"""


def findings(text: str, severity: str = "error") -> list[str]:
    return [f"{p.line}: {p.message}" for p in check_text(text, "m", "m.toml")[1] if p.severity == severity]


def test_all_mistakes_are_reported_each_with_its_line() -> None:
    text = """\
titel = "x"
linger_ns = true
[keys]
op = { fields = "id", scop = "global" }
unused = 3
[points]
"p:begin" = { role = "begn", key = "op" }
x = { evnt = "p:x" }
y = { event = "p:y", when = { a = 1.5 }, after = ["z"],
      key = "nosuch", aside = 1, quorum = 0 }
"z{a}{b}" = "p:z"
[points.w]
event = ["p:w", 3]
stamp = "mark"
batch = { opn = "kv" }
[stages]
s = { from = "x", to = "q", kind = "idle" }
t = { from = "x" }
""".replace('["z"],\n      key', '["z"], key')
    assert findings(text) == [
        "1: a model has no field `titel` (did you mean `title`?)",
        "2: `linger_ns`: an integer is wanted, not true or false",
        "4: key space op has no field `scop` (did you mean `scope`?)",
        "5: key space unused: a field's name, a list of them, or a table is wanted",
        '7: `role = "begn"`: one of begin, end, begin?, end? is wanted',
        "8: point x has no field `evnt` (did you mean `event`?)",
        "8: point x: `event` is missing (only a name like provider:event is an event by itself)",
        "9: `aside`: true or false is wanted, not an integer",
        "9: `quorum`: how many children of `after` are waited for: 1 or more",
        "9: `when.a`: an integer, a string, or a list of them is wanted",
        "9: point y: `after` names z, which is no point",
        "9: point y: there is no key space `nosuch` in [keys]",
        "10: point z{a}{b}: a name may contain one {field} and no other braces",
        "12: `event`: a list of texts is wanted",
        "13: `stamp`: a table with mark, at is wanted, not a text",
        "14: `batch` has no field `opn` (did you mean `open`?)",
        '16: `kind = "idle"`: one of work, wait, network, device, unknown is wanted',
        "16: stage s: `to` names q, which is no point",
        "17: stage t: `to` is missing",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[points\n", "1: not valid TOML: expected ']' at the end of a table declaration"),
        ("a = 1\na = 2\n", "2: not valid TOML: cannot overwrite a value"),
        ("a = ", "1: not valid TOML: invalid value"),
        ("x = " + "[" * 5000, "0: not a model: nested too deeply"),
        ("x = " + "9" * 5000, "1: not valid TOML"),
        ("", "0: a model needs [points], [bios] or [requests]"),
        ("[points]\n'p:x' = {}\n", "2: no point has role = \"begin\": there would be no op"),
        (
            SMALL + "a = { event = 'p:x', ios = { submit = 'op' } }\n",
            '6: point a: `ios.submit` goes with role = "begin" and thread = "switch"',
        ),
        (
            SMALL + "a = { event = 'p:x', key = 'op', ios = { told = 'begin' } }\n",
            '6: point a: `ios.told`: "begin" goes with role = "begin", "end" with no role, both with a key',
        ),
        (
            SMALL + "a = { event = 'p:x', ios = { told = 'end' } }\n",
            '6: point a: `ios.told`: "begin" goes with role = "begin", "end" with no role, both with a key',
        ),
        (
            SMALL + "a = { event = 'p:x', key = 'op', ios = { told = 'end', reaped = '*' } }\n",
            "6: point a: `ios.told` is about one I/O: it goes with no other word of `ios`",
        ),
        (
            SMALL + "a = { event = 'p:x', ios = { wait = 'op' } }\n",
            "6: point a: `ios`: no point is the exit of this call (`submitted` or `reaped`)",
        ),
        (
            SMALL + "a = { event = 'p:x', ios = { wait = 'op', reaped = 'n' } }\n",
            "6: point a: `ios` has `submit` or `wait` at a call's entry, `submitted` or `reaped` at its exit",
        ),
        (
            SMALL + "a = { event = 'p:x', ios = { reaped = '*', names = 'n' } }\n",
            "6: point a: `ios.names` goes with `submit`, or with a field in `reaped`",
        ),
        (SMALL + "[bios]\nthreads = '*'\n", "6: `bios`: `class` is missing"),
        (SMALL + "'p:Q' = { batch = { join = 'kv' } }\n", "6: point p:Q: no point opens the batch kv"),
        (
            "version = 2\n" + SMALL + "'p:Q' = { batch = { open = 'kv', needs = 'lsn' } }\n",
            "7: point p:Q: needs a batch kv that reaches so far, and none says what it reaches",
        ),
        (
            "version = 2\n" + SMALL + "'p:Q' = { batch = { join = 'kv', reaches = 'lsn' } }\n",
            "7: `batch`: `reaches` goes with work or close",
        ),
        (
            "version = 2\n" + SMALL + "'p:Q' = { batch = { work = 'kv', among = 'log' } }\n",
            "7: `batch`: `among` goes with `needs` or `reaches`",
        ),
        (SMALL + "'Q' = 'p:q'\n", "6: point Q: this is the name of a step of block requests"),
        (SMALL + "'p:x' = { key = 'op(a, b)' }\n", "6: point p:x: 2 fields for key space op, which has 1"),
        (SMALL + "'p:x' = { key = 'op(a' }\n", '6: `key = "op(a"`: a key is written "space" or "space(field, field)"'),
        (SMALL + "[stages]\ns = { from = 'p:end#2', to = 'p:end' }", "7: stage s: `from` names p:end#2, which has a"),
        (SMALL + "'p:x' = { key = 'op', role = { begin = 'read' } }\n", "6: `role`"),
        (
            SMALL + "'f:{m}' = 'p:f'\n[stages]\ns = { from = 'f:a', to = 'f:{m}' }",
            "8: stage s: `to` names f:{m}, which has a placeholder",
        ),
        (SMALL + "x = []\n", "6: point x: an empty list has no rule"),
        (SMALL.replace('"id"', "[]"), "4: point p:begin: key space op has no fields of its own: write `op(field)`"),
    ],
)  # fmt: skip
def test_an_error(text: str, said: str) -> None:
    assert [f for f in findings(text) if f.startswith(said)], findings(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a = { event = 'p:*' }\nb = 'p:x'\n", "7: point b: p:x never gets here: point a (line 6) takes all of it"),
        (
            "a = [ { event = 'p:x', when = { n = [1, 2] } }, { event = 'p:x', when = { n = 1, m = 3 } } ]\n",
            "6: point a: p:x never gets here: an earlier rule of it (line 6) takes all of it",
        ),
        ("a = 'p:x'\n", "6: point a: has no key, and no thread ever enters an op: it would be nobody's"),
        ("a = { event = 'p:x', thread = 'leave', key = 'op' }\n", "6: point a: a thread leaves, but none ever enters"),
        ("a = { event = 'p:x', batch = { open = 'b' } }\n", "6: point a: opens the batch b, but no op ever joins it"),
        ("[stages]\na = { from = 'p:begin', to = 'p:end' }\nb = { from = 'p:begin', to = 'p:end' }\n",
         "8: stage b: p:begin → p:end is called a already"),
    ],
)  # fmt: skip
def test_a_warning(text: str, said: str) -> None:
    assert said in findings(SMALL + text, "warning")
    assert not findings(SMALL + text)


def test_warnings_about_keys_ends_and_claims() -> None:
    keys = "claims = ['q:*']\n[keys]\na = 'x'\nb = 'y'\nc = 'z'\n"
    text = keys + "[points]\n'q:b' = { role = 'begin', key = 'a' }\n'p:x' = { key = 'b' }\n"
    assert findings(text, "warning") == [
        "4: key space b is never bound: no `begin` carries it, no `bind`, and no point with another key",
        "5: key space c is not used",
        "7: no point has role = \"end\": no op would be complete",
        "8: point p:x: p:x is not in `claims`: `opline record` would not enable it",
    ]  # fmt: skip
    assert findings(SMALL + "'p:x' = { key = 'op', thread = 'enter' }\n", "note") == [
        '6: point p:x: a thread enters and none ever leaves: is `thread = "switch"` meant?'
    ]


def test_rules_that_something_reaches() -> None:
    # By another value of the field; and where the event has no field id.
    for later in (
        "{ event = 'p:x', when = { n = 2 }, key = 'op' }",
        "{ event = 'p:x' , when = { n = 1 }, thread = 'enter' }",
    ):
        assert not findings(
            SMALL + f"a = [ {{ event = 'p:x', when = {{ n = 1 }}, key = 'op' }}, {later} ]\n", "warning"
        )


def test_loading_a_model_that_is_wrong_or_not_there(tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    path.write_text("[points]\nx = { evnt = 'p:x' }\ny = 3\n")
    with pytest.raises(ModelError) as raised:
        load_model(path)
    assert [line.split(": ")[0] for line in str(raised.value).splitlines()] == [f"{path}:2", f"{path}:2", f"{path}:3"]
    assert issubclass(ModelError, OplineError)
    assert raised.value.exit_code == 1
    for name in ("nosuch", str(tmp_path / "nosuch.toml"), str(tmp_path), "a\0.toml"):
        with pytest.raises(ModelError):
            load_model(name)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ModelError, match="UTF-8"):
        load_model(path)


def test_a_problem_is_one_line_whatever_the_names_are() -> None:
    _, problems = check_text('"a\\nb" = 1\n[points]\n"x\\u001b" = 3\n', "m", "m.toml")
    assert all("\n" not in format_problem("m.toml", p) and "\x1b" not in format_problem("m.toml", p) for p in problems)


def test_what_a_trace_says() -> None:
    text = SMALL + '"p:a" = { key = "op" }\nb = { event = ["p:b", "p:c"], key = "op" }\n'
    model = check_text("ignore = ['p:noise']\n" + text, "m", "m.toml")[0]
    points = [
        {"name": n, "seen": s, "transitions": s}
        for n, s in (("p:begin", 3), ("p:end", 3), ("p:a", 0), ("b", 0), ("b", 2))
    ]
    keys = [
        {"space": "op", "point": "p:end", "found": 3, "missed": 0},
        {"space": "op", "point": "b", "found": 0, "missed": 2},
        {"space": "op", "point": "p:a", "found": 5, "missed": 1},
    ]
    events = {"p:begin": 3, "p:noise": 9, "p:new": 4, "q:other": 7}
    said = [f"{p.line} {p.severity}: {p.message}" for p in check_trace(model, {"points": points, "keys": keys}, events)]
    assert said == [
        "0 warning: no point for p:new (4 events): give it one, or list it in `ignore`",
        "7 note: point p:a: its key op found no op in 1 of 6 events",
        "7 warning: point p:a: never seen: the trace has no p:a",
        "8 warning: point b: its key op never found an op",
    ]


def test_a_field_that_no_event_has_is_named() -> None:
    text = (
        "version = 2\n"
        + SMALL
        + 'a = { event = "p:a", key = "op", io = { offset = "offs", length = "len", file_by = "disk" } }\n'
        'b = { event = "p:b", key = "op", class = "{wht}" }\n'
    )
    model = check_text(text, "m", "m.toml")[0]
    core: dict[str, Any] = {
        "points": [{"name": r.name, "seen": int(r.name != "b"), "transitions": 0} for r in model.rules],
        "keys": [],
    }
    events = {"p:begin": 1, "p:a": 1, "p:b": 4}
    fields = {"p:a": {"id", "off", "len"}, "p:b": {"id", "what"}}
    assert asked_fields(model, events)[0] == "p:b"
    said = [f"{p.severity}: {p.message}" for p in check_trace(model, core, events, fields)]
    assert said == [
        "note: point a: p:a has no field `disk` (it has id, len, off)",
        "warning: point a: p:a has no field `offs` (did you mean `off`?)",
        "warning: point b: never seen: p:b comes 4 times, and has no field `wht` (did you mean `what`?)",
    ]


@pytest.mark.parametrize("field", ["sync", "in_flight"])
def test_what_ends_has_begun(field: str) -> None:
    ends = "version = 2\n" + SMALL + f'x = {{ event = "p:x", key = "op", io = {{ {field} = "end" }} }}\n'
    said = [p.message for p in check_text(ends, "m", "m.toml")[1]]
    assert f'point x: `io.{field} = "end"`: no point has `io.{field} = "begin"`' in said
    both = ends + f'y = {{ event = "p:y", key = "op", io = {{ {field} = "begin" }} }}\n'
    assert not [p for p in check_text(both, "m", "m.toml")[1] if "io." in p.message]


def test_a_key_that_is_learned_is_no_mistake() -> None:
    text = SMALL.replace('op = "id"', 'op = "id"\nr = "req"') + '"f:{m}" = { event = "p:f", key = ["op", "r"] }\n'
    model = check_text(text, "m", "m.toml")[0]
    core: dict[str, list[dict[str, Any]]] = {
        "points": [{"name": n, "seen": 1, "transitions": 1} for n in ("p:begin", "p:end", "f:{}")],
        "keys": [
            {"space": "op", "point": "f:{}", "found": 9, "missed": 0},
            {"space": "r", "point": "f:{}", "found": 0, "missed": 9},
        ],
    }
    assert not check_trace(model, core, {})
    core["keys"][0].update(found=0, missed=9)
    assert [p.line for p in check_trace(model, core, {})] == [7, 7]


def test_mistakes_in_what_joins_halves() -> None:
    text = """\
[keys]
op = { fields = "id", with = "nosuch" }
wire = { fields = ["fd@ports", "id"] }
[facts]
ports = { of = "fd", value = ["a", "b"], unorderd = true }
idle = { of = "fd", value = "a" }
bare = { of = "fd" }
[points]
begin = { event = "p:begin", role = "begin?" }
child = { event = "p:child", key = "op", child = true }
learn = { event = "p:learn", learn = "nofact", key = "op" }
at = { event = "p:at", key = "op(fd@nofact)", stamp = { at = "nomark" } }
end = { event = "p:end", key = "op", role = "end?", join = { wait = "wire", meet = "wire" } }
"""
    assert findings(text) == [
        "2: key space op: `with` names nosuch, which is none",
        "5: fact ports has no field `unorderd` (did you mean `unordered`?)",
        "7: fact bare: `of` and `value` are needed",
        "9: point begin: a soft begin needs a key: where no op is known by it, one begins",
        "10: point child: `child` is for a point of an op, with a `bind` that names the child",
        "11: point learn: `learn` and `mark` are for events of no op: it has no key, role, thread or batch",
        "11: point learn: there is no fact `nofact` in [facts]",
        "12: `fd@nofact`: a field, `@` and a fact of [facts] are wanted",
        '12: point at: `at = "nomark"`: no point has that `mark`',
    ]
    warnings = [w for w in findings(text, "warning") if "begin" not in w and "never ends" not in w]
    assert warnings == [
        '5: no point has learn = "ports"',
        "6: fact idle is not used: write `space(field@idle)`",
        '6: no point has learn = "idle"',
        "13: point end: waits and meets under one key",
    ]


def test_all_keys_of_a_space_are_for_release() -> None:
    text = SMALL + 'sent = { event = "p:sent", key = "op", release = "op(*)" }\n'
    assert not findings(text)
    for wrong in ('bind = "op(*)"', 'release = "op(id, *)"'):
        assert any(
            "`*` stands alone, and in `release`" in f for f in findings(text.replace('release = "op(*)"', wrong))
        )


def test_words_that_are_no_longer_read_make_one_warning_and_change_nothing() -> None:
    text = SMALL + 'sent = { event = "p:sent", key = "op" }\ndone = { event = "p:done", key = "op" }\n'
    old = text.replace('"p:sent", key = "op"', '"p:sent", key = "op", passed_with = ["p:nothing"]')
    old = old.replace('"p:done", key = "op"', '"p:done", key = "op", each_with = "sent"')
    assert findings(old) == []
    (found,) = findings(old, "warning")
    assert "opline no longer reads `passed_with` and `each_with` (2 in this model): delete them" in found
    plans = {check_text(model, "m", "m.toml")[0].plan_json("pointer", []) for model in (old, text)}
    assert len(plans) == 1
