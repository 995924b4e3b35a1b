# SPDX-License-Identifier: MIT
"""A loss is said once, with the share of the ops that it touches, and again where it matters."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.lib.build_run import P, RunBuilder

from opline_analyses.cli import main
from opline_analyses.runs import ledger


def run_with(path: Path, unsplit: int, loss: str = "events_missing", recorded: bool = True) -> Path:
    """10 000 ops, of which so many have lost events inside."""
    run = RunBuilder(manifest={"core": {"ops": {"complete": 10_000, "incomplete": 0}}})
    run.op([P("begin", 1_000), P("end", 2_000)])
    run.loss(loss, "data_loss", "recording", 3)
    if unsplit:
        run.loss("unsplit_ops", "notice", "correlation", unsplit)
    if recorded:
        run.manifest["recording"] = {"state": "complete"}
    return run.write(path)


@pytest.mark.parametrize(
    ("unsplit", "loss", "recorded", "said"),
    [
        (7, "events_missing", True, False),
        (0, "discarded_events", True, False),
        (10, "events_missing", True, True),
        (7, "events_missing", False, True),
        (7, "completions_missing", True, True),
        (7, "recording_cut_short", True, True),
        (0, "discarded_packets", True, True),
    ],
)
@pytest.mark.parametrize("command", ["stages", "why", "log"])
def test_what_has_been_said_is_said_again_where_it_matters(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], command: str, unsplit: int, loss: str, recorded: bool, said: bool
) -> None:
    path = run_with(tmp_path / "run", unsplit, loss, recorded)
    main([command, str(path)])
    lines = [line for line in capfd.readouterr().err.splitlines() if line.startswith("opline: lost: ")]
    assert len(lines) == said, lines
    if said and unsplit:
        assert (
            f"{unsplit / 100:.2g} % of the ops ({unsplit} of 10000) overlap: the latency of {unsplit} counts"
            in lines[0]
        )


def test_a_line_has_every_loss_and_what_becomes_of_the_ops() -> None:
    entries = ledger.entries_of({"events_missing": 133, "discarded_events": 2, "unsplit_ops": 260, "tainted_ops": 5})
    assert ledger.line(entries, {"complete": 399_350, "incomplete": 12}) == (
        "lost: discarded_events 2, events_missing 133. 0.066 % of the ops (265 of 399362) overlap: the latency of 260 "
        "counts, their split into stages does not; 5 ops do not count. `opline losses` says more."
    )
    every = ledger.line(ledger.entries_of({"events_missing": 1, "unsplit_ops": 3}), {"complete": 3, "incomplete": 0})
    assert every is not None and " 100 % of the ops (3 of 3) overlap: " in every
    none = ledger.line(ledger.entries_of({"completions_missing": 9}), {"complete": 1000, "incomplete": 0})
    assert none is not None and ". All latencies count (1000 ops). `opline losses`" in none
    assert ledger.line(ledger.entries_of({"unsplit_ops": 3, "incomplete_ops": 1}), None) is None
    assert str(ledger.line(ledger.entries_of({"partition_violations": 1}), None)).startswith("error: partition_viol")


def test_the_page_shows_red_from_one_per_cent_on() -> None:
    for unsplit, red in ((99, False), (100, True)):
        entries = ledger.entries_of({"events_missing": 3, "unsplit_ops": unsplit})
        assert ledger.is_small(entries, {"complete": 10_000, "incomplete": 0}, ledger.MANY) is not red
