# SPDX-License-Identifier: MIT
"""`opline model`: list, show, compile, lint; against a recorded trace too."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

from opline.model import load_model, shipped_models

Opline = Callable[..., "subprocess.CompletedProcess[str]"]
LAB = Path(__file__).resolve().parents[1] / "models" / "lab.toml"


def test_list_show_and_compile(opline: Opline, tmp_path: Path) -> None:
    listed = opline("model", "list").stdout.splitlines()
    assert [line.split()[0] for line in listed] == shipped_models()
    mine = tmp_path / "mine.toml"
    mine.write_text(opline("model", "show", "ceph").stdout)
    plans = [json.loads(opline("model", "compile", what, "--match", "sector").stdout) for what in ("ceph", mine)]
    assert plans[0].pop("model") == "ceph" and plans[1].pop("model") == "mine"
    assert plans[0] == plans[1] and plans[0]["match"] == "sector"


def test_lint_of_a_file(opline: Opline, tmp_path: Path) -> None:
    bad = tmp_path / "bad.toml"
    bad.write_text('[points]\nx = { evnt = "p:x" }\n[stages]\ns = { from = "x", to = "y" }\n')
    done = opline("model", "lint", bad)
    assert done.returncode == 1
    assert [line.split(": ")[:2] for line in done.stdout.splitlines()] == [
        [f"{bad}:2", "error"],
        [f"{bad}:2", "error"],
        [f"{bad}:4", "error"],
    ]
    assert done.stderr == f"opline: {bad}: 3 errors.\n"
    assert opline("model", "lint", LAB).returncode == 0
    for missing in ("nosuch", tmp_path / "nosuch.toml"):
        done = opline("model", "lint", missing)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert opline("model").returncode == 2


def test_a_wrong_model_stops_a_command_with_all_its_mistakes(
    opline: Opline, trace: Callable[[str], Path], tmp_path: Path
) -> None:
    bad = tmp_path / "bad.toml"
    bad.write_text("[points]\nx = { event = 1 }\ny = 3\n")
    done = opline("ops", trace("app-uring-qd16-nvme"), "--model", bad)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"opline: {bad}:2: error: `event`: a text is wanted, not an integer\n"
        f"{bad}:3: error: point y: an event's name or a table is wanted\n"
    )


def test_lint_against_a_trace(opline: Opline, trace: Callable[[str], Path], tmp_path: Path) -> None:
    text = "\n".join(line for line in LAB.read_text().split("\n") if "lab:queue_enter" not in line)
    text = text.replace("[keys]\n", '[keys]\nlen = "len"\n').replace('"queue_enter"', '"dequeue"')
    mine = tmp_path / "mine.toml"
    mine.write_text(text.replace('"lab:io_end", key = "op"', '"lab:io_end", key = "len"'))
    done = opline("model", "lint", mine, trace("app-uring-qd16-nvme"))
    lines = mine.read_text().splitlines()
    said = [line.removeprefix(f"{mine}:").partition(": ") for line in done.stdout.splitlines()]
    assert {
        ("sync_begin", "warning: point sync_begin: never seen: the trace has no lab:sync_begin"),
        ("sync_end", "warning: point sync_end: never seen: the trace has no lab:sync_end"),
        ("claims", "warning: no point for lab:queue_enter (4000 events): give it one, or list it in `ignore`"),
        ("io_end", "warning: point io_end: its key len never found an op"),
    } <= {(lines[int(line) - 1].split(" ")[0], message) for line, _, message in said}
    assert done.returncode == 0


def test_lint_names_fields_that_the_traces_events_lack(
    opline: Opline, trace: Callable[[str], Path], tmp_path: Path
) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text(
        load_model("demo")
        .text.replace('offset = "off", length', 'offset = "offs", length', 1)
        .replace('class = "write"', 'class = "{wht}"', 1)
    )
    said = opline("model", "lint", mine, trace("demo-qd4")).stdout
    assert "warning: point io.begin: demo:io_begin has no field `offs` (did you mean `off`?)" in said
    assert " and has no field `wht`" in said


def test_a_period_is_a_model_of_one_line(opline: Opline, trace: Callable[[str], Path]) -> None:
    """By thread, with its block requests; by a key, with as many ops as the model finds; not of block events."""
    where = trace("app-sync-2m-nvme-split")
    ops = json.loads(opline("stages", where, "--period", "lab:io_begin,lab:io_end", "--json").stdout)
    assert ops["ops"] == 100 and {"submit", "D2C", "reap"} <= {stage["stage"] for stage in ops["stages"]}
    keyed = json.loads(opline("stages", where, "--period", "lab:client_submit,lab:client_reply,op_id", "--json").stdout)
    whole = json.loads(opline("stages", where, "--model", LAB, "--json").stdout)
    assert keyed["ops"] == whole["ops"] == 100 and keyed["stages"][-1]["total_ns"] == whole["stages"][-1]["total_ns"]
    for period, said in (
        ("lab:io_begin", "BEGIN,END or BEGIN,END,KEY is wanted"),
        ("a:b,a:c,d e", "is no field"),
        ("block_rq_issue,block_rq_complete", "`opline requests`"),
    ):
        done = opline("stages", where, "--period", period)
        assert done.returncode == 1 and said in done.stderr and done.stderr.count("\n") == 1
    none = opline("stages", where, "--period", "x:y,x:z")
    assert none.returncode == 1 and "No op to count" in none.stderr and "opline model lint" in none.stderr


def test_lint_says_why_no_op_has_a_block_request(opline: Opline, trace: Callable[[str], Path], tmp_path: Path) -> None:
    points = """version = 2
        claims = ["lab:client_submit", "lab:client_reply", "lab:io_begin"]
        [keys]
        op = "op_id"
        [points]
        submit = { event = "lab:client_submit", role = "begin", key = "op" }
        """
    end = 'reply = { event = "lab:client_reply", key = "op", role = "end" }\n'
    works = 'io = { event = "lab:io_begin", key = "op", thread = "enter" }\n'
    by_client = points.replace('key = "op" }', 'key = "op", thread = "enter" }')
    cases = (
        (points + end, "no thread ever works for an op"),
        (by_client, "none of these threads passes a point"),
        (by_client + end, "while they work for no op"),
        (points + works + end, None),
    )
    for number, (text, why) in enumerate(cases):
        model = tmp_path / f"{number}.toml"
        model.write_text(text)
        out = opline("model", "lint", model, trace("app-sync-2m-nvme-split")).stdout
        assert ("no op has a block request, though 401 bios were queued, by lab-worker0 (400)" in out) is (
            why is not None
        )
        assert why is None or why in out
