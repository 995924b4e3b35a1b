# SPDX-License-Identifier: MIT
"""`opline why` of a recording with a planted cause: bursts of somebody else's writes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.lib.recorder import record_well

pytestmark = pytest.mark.live

STORE = Path(__file__).resolve().parents[2] / "examples" / "demo-store" / "run"
TRIES = 3  # a busy machine has worse stalls of its own
AHEAD = ["chrt", "-r", "1"]  # of whatever else wants the processors: it would stall ops as the fault does


def why(run: Path, *options: str) -> Any:
    """Records the demo store with these options; what `opline why` says."""
    opline = [sys.executable, "-m", "opline_analyses"]
    ahead = AHEAD if subprocess.run([*AHEAD, "true"], capture_output=True).returncode == 0 else []
    record = [*opline, "record", "-o", str(run), "--model", "demo", "--", str(STORE), *options]
    record_well([*ahead, *record], stdout=subprocess.DEVNULL, timeout=120)
    found = subprocess.run(
        [*opline, "why", str(run), "--tainted", "--json"], check=True, capture_output=True, timeout=120
    )
    return json.loads(found.stdout)


def test_writes_that_starve_reads_are_named(tmp_path: Path) -> None:
    """100 ms of each second; the reads are not to blame, and the store does not know of the writes."""
    options = ["--qd", "16", "--read", "100", "--rate", "500", "--seconds", "8", "--fault", "writes:100000:1000000"]
    found = {}
    for n in range(TRIES):
        found = why(tmp_path / str(n), *options)
        first = found["caused"]["causes"][0]
        ahead = {a["owner"]: a["slow_ns"] for a in first["ahead"]}
        if first["stage"] == "D2C" and ahead.get("demo-writes", 0) > 0.2 * found["caused"]["slow_ns"]:
            return
    pytest.fail(f"not named: {json.dumps(found, indent=1)[:3000]}")
