# SPDX-License-Identifier: MIT
"""The op model's language: what each of its words means in the plan, its documentation, and the shipped models."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.lib.recorded import OWN_MODELS

from opline.model import check_text, load_model, shipped_models
from opline.model.language import IO_FIELDS, POINT_FIELDS

ROOT = Path(__file__).resolve().parents[2]

SMALL = """\
[keys]
op = "id"
[points]
"p:begin" = { role = "begin", key = "op" }
"p:end" = { role = "end", key = "op" }
"""


def plan_of(text: str) -> dict[str, Any]:
    model, problems = check_text(text, "m", "m.toml")
    assert not [p for p in problems if p.severity == "error"], problems
    return model.plan()


def points_of(points: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = plan_of(SMALL + points)["points"]
    return found[2:]


def findings(text: str, severity: str = "error") -> list[str]:
    return [f"{p.line}: {p.message}" for p in check_text(text, "m", "m.toml")[1] if p.severity == severity]


def test_a_small_model_gives_its_whole_plan() -> None:
    key = [{"space": 0, "fields": ["id"]}]
    assert plan_of(SMALL) == {
        "version": 1,
        "model": "m",
        "claims": ["p:*"],
        "linger_ns": 100_000_000,
        "match": "pointer",
        "key_spaces": [{"name": "op", "scope": "process"}],
        "points": [
            {"name": "p:begin", "event": "p:begin", "role": "begin", "bind": key},
            {"name": "p:end", "event": "p:end", "role": "end", "find": key},
        ],
        "stages": [],
    }


def test_names_from_dots_tables_and_fields() -> None:
    points = points_of(
        'a.b = "p:x"\n"c d" = "p:y"\n"f:{msg}" = "p:z"\na.c = { event = ["p:u", "p:v"] }\n[points.e.f]\nevent = "p:w"\n'
    )
    names = [(p["name"], p.get("name_field"), p["event"]) for p in points]
    # In the order of the text, although a.c is inside the table that a.b made.
    assert names == [
        ("a.b", None, "p:x"),
        ("c d", None, "p:y"),
        ("f:{}", "msg", "p:z"),
        ("a.c", None, "p:u"),
        ("a.c", None, "p:v"),
        ("e.f", None, "p:w"),
    ]


def test_rules_of_one_name_keep_their_order() -> None:
    points = points_of(
        """x = [
            { event = "p:x", when = { n = [1, "one"] }, class = "{n}" },
            { event = "p:x", when = { n = 2 } },
            "p:x",
        ]
        """
    )
    assert [p["name"] for p in points] == ["x"] * 3
    assert [p.get("when") for p in points] == [[{"field": "n", "any": [1, "one"]}], [{"field": "n", "any": [2]}], None]
    assert [p.get("class") for p in points] == [{"field": "n"}, None, None]


def test_key_uses() -> None:
    text = SMALL.replace(
        'op = "id"', 'op = "id"\nr = { fields = ["num", "tid"], scope = "global" }\nt = { scope = "thread" }'
    )
    points = plan_of(text + 'x = { event = "p:x", key = ["r", "op(other)"], bind = "t( a , b )", release = "op" }\n')[
        "points"
    ]
    assert points[2]["find"] == [{"space": 1, "fields": ["num", "tid"]}, {"space": 0, "fields": ["other"]}]
    assert points[2]["bind"] == [{"space": 2, "fields": ["a", "b"]}]
    assert points[2]["release"] == [{"space": 0, "fields": ["id"]}]


def test_ios_and_bios() -> None:
    text = SMALL + (
        'in = { event = "p:i", role = "begin", thread = "switch", '
        'ios = { submit = "op", count = "n", ring = true, taken = "head" } }\n'
        'wait = { event = "p:wait", ios = { wait = "op(other)", least = "most" } }\n'
        'out = { event = "p:out", thread = "leave", ios = { submitted = "ret", reaped = "*" } }\n'
        'taken = { event = "p:taken", ios = { reaped = "ret", names = "objects" } }\n'
        '[bios]\nclass = "bio"\nthreads = ["*"]\nexcept = ["kworker/*"]\n'
    )
    plan = plan_of(text)
    words = ("submit", "wait", "count", "least", "submitted", "reaped", "names", "told", "taken", "posted")
    nothing = dict.fromkeys(words) | {"ring": False}
    assert [p["ios"] for p in plan["points"][2:]] == [
        {**nothing, "submit": {"space": 0, "fields": ["id"]}, "count": "n", "ring": True, "taken": "head"},
        {**nothing, "wait": {"space": 0, "fields": ["other"]}, "least": "most"},
        {**nothing, "submitted": "ret", "reaped": "*"},
        {**nothing, "reaped": "ret", "names": "objects"},
    ]
    assert plan["bios"] == [{"class": "bio", "threads": ["*"], "except": ["kworker/*"]}]


def test_batches_and_big_integers() -> None:
    (p,) = points_of('x = { event = "p:x", when = { n = 0xffffffffffffffff } }\n')
    assert p["when"] == [{"field": "n", "any": [-1]}]  # 64 bits are 64 bits
    (p,) = points_of('x = { event = "p:x", batch = { open = "kv" } }\n')
    assert p["batch"] == {"space": "kv", "do": "open"}


def test_stages_of_several_pairs() -> None:
    text = (
        SMALL
        + """[stages]
        s = [ { from = ["p:begin"], to = "p:end", kind = "wait" }, { from = "p:end", to = ["p:begin", "p:end"] } ]
        """
    )
    assert plan_of(text)["stages"] == [
        {"name": "s", "from": "p:begin", "to": "p:end", "kind": "wait"},
        {"name": "s", "from": "p:end", "to": "p:begin"},
        {"name": "s", "from": "p:end", "to": "p:end"},
    ]


def test_match_is_the_callers() -> None:
    model = check_text(SMALL, "m", "m.toml")[0]
    assert json.loads(model.plan_json(match="sector"))["match"] == "sector"


def test_the_examples_of_the_documentation() -> None:
    def toml_of(page: str) -> list[str]:
        return re.findall(r"```toml\n(.*?)```", (ROOT / "docs" / page).read_text(), re.DOTALL)

    whole, keys, hints, stages = toml_of("model.md")
    ios, batch, order, halves, facts, bios = toml_of("internals/model.md")
    assert [p.get("thread") for p in plan_of(whole)["points"]] == [None, "enter", "leave"]
    for model in (whole, halves):
        assert not check_text(model, "m", "m.toml")[1]
    plan = plan_of(facts + "begin = { event = 'a:b', role = 'begin', key = 'wire' }")
    assert plan["facts"] == [
        {"name": "ports", "scope": "process", "of": "fd", "value": ["lport", "rport"], "unordered": True}
    ]
    assert plan["points"][-1]["bind"] == [{"space": 0, "fields": ["fd", "tid"], "facts": [0, -1]}]
    assert [k["name"] for k in plan_of(keys + "[points]\n'a:b' = { role = 'begin', key = 'slot' }")["key_spaces"]] == [
        "completion", "reqid", "slot", "txc",
    ]  # fmt: skip
    plan_of(SMALL + hints)
    plan_of(SMALL.replace("op =", 'txn = "txn"\nop =') + batch)
    plan_of("version = 2\n" + SMALL + order)
    plan_of(SMALL.replace("op =", 'aio = "ctx_id"\nop =') + ios)
    plan_of(SMALL + bios)
    assert not [f for f in findings(stages) if "no point" not in f and "needs [points]" not in f]
    documented = set(
        re.findall(r"^\| `(\w+)`(?:, `(\w+)`)?(?:, `(\w+)`)?", (ROOT / "docs" / "model.md").read_text(), re.MULTILINE)
    )
    assert {*POINT_FIELDS, *IO_FIELDS} <= {name for row in documented for name in row}


@pytest.mark.parametrize("name", [*shipped_models(), *map(str, OWN_MODELS)])
def test_shipped_models_have_no_mistakes(name: str) -> None:
    model = load_model(name)
    assert not check_text(model.text, model.name, model.path)[1]
    assert model.title and (model.claims or model.bios or model.requests)


def test_the_model_of_the_test_application_is_short() -> None:
    assert len((ROOT / "tests" / "models" / "lab.toml").read_text().splitlines()) <= 40
