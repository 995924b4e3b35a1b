# SPDX-License-Identifier: MIT
"""`opline coverage` with the text of rados bench: the ceph-devel mail's shares (C1.10), and its rate (C1.11)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.analyses.test_client_reports import MAIL
from tests.lib.build_run import P, RunBuilder

from opline_analyses.cli import main


@pytest.mark.parametrize(("mean_ns", "covered"), [(750_000, 0.606), (726_000, 0.587)])
def test_c1_10_the_command_gives_the_mails_shares(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], mean_ns: int, covered: float
) -> None:
    """The mail's own text as the client's report, of a run whose ops take that long: 750 us and 726 us of 1237 us."""
    run = RunBuilder()
    for n in range(5):
        begin = 2_000_000 * n
        run.op([P("begin", begin), P("mid", begin + 1000, stage="first"), P("end", begin + mean_ns + 500 * (n - 2))])
    (tmp_path / "bench.txt").write_text(MAIL)
    path = run.write(tmp_path / "run")
    assert main(["coverage", str(path), "--client", str(tmp_path / "bench.txt"), "--json"]) == 0
    document = json.loads(capfd.readouterr().out)
    assert document["coverage"] == pytest.approx(covered, abs=5e-4)
    assert sum(part["mean_ns"] for part in document["parts"] if part["level"] == 0) == pytest.approx(1_237_220)


@pytest.mark.parametrize(("made", "warned"), [(100, False), (99, False), (97, True), (103, True)])
def test_c1_11_a_rate_that_is_another_is_warned_of(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], made: int, warned: bool
) -> None:
    """100 ops end in the tenth of a second that the client says it ran; it says how many it made."""
    run = RunBuilder()
    for n in range(100):
        run.op([P("begin", 1_000_000 * n), P("end", 1_000_000 * n + 900_000)])
    (tmp_path / "bench.txt").write_text(
        f"Total time run:         0.1\nTotal writes made:      {made}\nAverage Latency:        0.0009\n"
    )
    path = run.write(tmp_path / "run")
    assert main(["coverage", str(path), "--client", str(tmp_path / "bench.txt")]) == 0
    out, err = capfd.readouterr()
    assert (" FAIL  IOPS: 100 completions / 0.1 s = 1000.0" in out) is warned
    assert ("warning: IOPS: " in err) is warned
