# SPDX-License-Identifier: MIT
"""Block events as text: all layouts give the run that the trace itself gives, and what can't be read is said."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.lib.perf_text import LAYOUTS, text_of
from tests.lib.recorded import RunOf

from opline import _core
from opline.correlation import correlate
from opline.model import load_model
from opline_analyses.cli import main

REQUESTS = (
    "dev", "sector", "nr_sectors", "kind", "rwbs", "queue_ns", "getrq_ns", "insert_ns", "first_issue_ns", "issue_ns",
    "complete_ns", "queue_tid", "queue_comm", "issue_tid", "issue_comm", "queue_cpu", "issue_cpu", "complete_cpu",
    "error", "bio_count", "merge_count", "requeue_count", "in_flight", "outcome",
)  # fmt: skip
BIOS = (
    "dev",
    "sector",
    "nr_sectors",
    "kind",
    "queue_ns",
    "getrq_ns",
    "merge_ns",
    "tid",
    "comm",
    "request_id",
    "parent_id",
)
SEED = """\
    tar 16072 [001] 2199495.030133: block:block_rq_issue: 202,16 R 0 () 21997888 + 8 [tar]
    swapper    0 [000] 2199495.030286: block:block_rq_complete: 202,16 R () 21997888 + 8 [0]
        tar 16072 [001] 2199495.030327: block:block_rq_issue: 202,16 R 0 () 21997896 + 8 [tar]
    swapper    0 [000] 2199495.030512: block:block_rq_complete: 202,16 R () 21997896 + 8 [0]
"""


@pytest.fixture(scope="module")
def lines(trace: Callable[[str], Path], opline: Callable[..., Any]) -> Callable[[str], list[str]]:
    """What `opline events` prints of a recorded trace."""
    known: dict[str, list[str]] = {}

    def get(name: str) -> list[str]:
        if name not in known:
            known[name] = opline("events", trace(name)).stdout.splitlines()
        return known[name]

    return get


def rows(run: Path, table: str, columns: tuple[str, ...]) -> list[tuple[Any, ...]]:
    return sorted(
        (tuple(row[c] for c in columns) for row in pq.read_table(run / f"{table}.parquet").to_pylist()), key=repr
    )


@pytest.mark.parametrize(
    ("name", "layouts"),
    [
        ("app-libaio-qd8-dmcrypt", LAYOUTS),
        ("app-sync-2m-nvme-split", LAYOUTS[:1]),
        ("app-libaio-requeue-vdc", LAYOUTS[3:4]),
    ],
)
def test_c7_9_every_layout_gives_the_traces_own_requests(
    run_of: RunOf, lines: Callable[[str], list[str]], tmp_path: Path, name: str, layouts: tuple[str, ...]
) -> None:
    """Old and new kernels', perf's, ftrace's and trace-cmd's; splits, remaps, requeues and flushes among them."""
    expected = [rows(run_of(name).path, "requests", REQUESTS), rows(run_of(name).path, "bios", BIOS)]
    assert len(expected[0]) > 300
    for layout in layouts:
        text = tmp_path / "events.txt"
        text.write_text("\n".join(text_of(lines(name), layout)) + "\n")
        manifest = correlate(text, load_model("generic"), tmp_path / layout, progress=False)
        assert manifest["reader"] == "text"
        assert "unreadable_lines" not in manifest["losses"]
        found = [rows(tmp_path / layout, "requests", REQUESTS), rows(tmp_path / layout, "bios", BIOS)]
        assert found == expected, layout


def test_the_seeds_own_lines(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "out.blockio"
    file.write_text(SEED)
    assert main(["log", str(file), "--json"]) == 0
    found = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert [(r["comm"], r["tid"], r["sector"], r["bytes"], r["latency_ns"]) for r in found] == [
        ("tar", 16072, 21997888, 4096, 153_000), ("tar", 16072, 21997896, 4096, 185_000)
    ]  # fmt: skip


def test_c7_19_a_pipe_needs_no_file() -> None:
    program = Path(sys.executable).with_name("opline")
    done = subprocess.run([program, "log", "-"], input=SEED, text=True, capture_output=True, check=True)
    assert [line.split()[-1] for line in done.stdout.splitlines()[1:]] == ["0.15", "0.18"]
    for options, text, count in ((["-"], SEED, 2), (["--unitstime=us", "-"], "1 2\n3 4\n5 6\n", 3)):
        argv = [str(program), "heatmap", "--json", *options]
        done = subprocess.run(argv, input=text, text=True, capture_output=True, check=True)
        assert sum(cell["count"] for cell in json.loads(done.stdout)["cells"]) == count


def test_c7_10_a_second_completion_is_no_second_latency(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "twice.txt"
    file.write_text(SEED + SEED.splitlines()[1].replace("030286", "030900") + "\n")
    assert main(["hist", str(file)]) == 0
    assert "2 I/Os, D2C mean 169 us" in capfd.readouterr().out
    assert main(["losses", str(file), "--json"]) == 0
    lost = {entry["loss"]: entry["count"] for entry in json.loads(capfd.readouterr().out)["losses"]}
    assert lost["unmatched_complete"] == 1, "it is counted, and no latency"


@pytest.mark.parametrize(
    ("who", "comm", "tid"),
    [
        ("kworker/0:1H 123", "kworker/0:1H", 123), ("my program 7 99", "my program 7", 99), ("<idle>-0", "<idle>", 0),
        ("[odd] name 12", "[odd] name", 12), ("jbd2/xvda1-212   212", "jbd2/xvda1-212", 212),
        ("tar-16072", "tar", 16072), ("x-1   (-------)", "x", 1), ("fio 10/11", "fio", 11),
        ("a-b c-7 (  7)", "a-b c", 7),
    ],
)  # fmt: skip
def test_c7_9_names_may_have_anything(who: str, comm: str, tid: int) -> None:
    found = _core.parse_block_line(
        f"  {who} [003] 5.000001: block:block_rq_issue: 8,0 WS 4096 () 16 + 8 none,0,0 [x]".encode()
    )
    assert found is not None
    event, ts_ns, cpu, *named = found[:5]
    assert (event, ts_ns, cpu, named) == ("block_rq_issue", 5_000_001_000, 3, [comm, tid])


@pytest.mark.parametrize(
    ("body", "payload"),
    [
        ("block_rq_issue: 8,0 WFS 0 (2a 00 00) 16 + 8 [a b]", {"sector": 16, "nr_sector": 8, "rwbs": "WFS"}),
        ("block_rq_complete: 8,0 R () 16 + 8 none,0,0 [-5]", {"error": -5}),
        ("block_rq_complete: 8,0 R () 16 + 8 be,0,4 [0]", {"error": 0}),
        ("block_rq_issue: 8,0 FF 0 () 18446744073709551615 + 0 [kworker]", {"sector": (1 << 64) - 1, "nr_sector": 0}),
        ("block_bio_remap: 259,1 WS 5 + 8 <- (253,0) 9", {"dev": 259 << 20 | 1, "old_dev": 253 << 20, "old_sector": 9}),
        ("block_split: 8,0 W 16 / 24 [x]", {"sector": 16, "new_sector": 24}),
    ],
)
def test_c7_9_what_a_line_says_of_the_request(body: str, payload: dict[str, Any]) -> None:
    found = _core.parse_block_line(f"x 1 [000] 1.5: block:{body}".encode())
    assert found is not None
    assert payload.items() <= found[5].items()


def test_c4_9_lost_events_are_a_loss(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "lost.txt"
    first, *rest = SEED.splitlines()
    file.write_text("\n".join(["# tracer: nop", first, "CPU:1 [LOST 7 EVENTS]", *rest]) + "\n")
    assert main(["hist", str(file), "--max-loss", "0"]) == 3
    assert "discarded_events 7" in capfd.readouterr().err.replace(":", "")


def test_lines_that_cannot_be_read_are_counted_and_shown(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "odd.txt"
    file.write_text(SEED + "x 1 [000] 2199496.0: block:block_rq_issue: something new\nand a sentence\n")
    assert main(["hist", str(file)]) == 0
    err = capfd.readouterr().err
    assert "line 5: not understood: x 1 [000]" in err and "unreadable_lines" in err
    sound = SEED.splitlines()[-1]
    for number in ("9" * 20, "9" * 5000):
        file.write_text(
            SEED + re.sub(r"\d+ \+", f"{number} +", sound) + "\n" + re.sub(r"\d+\.", f"{number}.", sound) + "\n"
        )
        assert main(["hist", str(file)]) == 0
        assert "unreadable_lines 2" in capfd.readouterr().err
    for content, why in (("", "is empty: nothing was traced"), ("just\nwords\n", "is of no format that opline knows")):
        file.write_text(content)
        assert main(["hist", str(file)]) == 1
        assert why in capfd.readouterr().err
