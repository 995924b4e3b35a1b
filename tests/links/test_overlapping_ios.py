# SPDX-License-Identifier: MIT
"""Ops in flight at once on the same sectors: whose request is whose, where the trace has no pointers.

The kernel's pointers, which BPF sees, are the truth; the same recording is read again without them.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from tests.lib.block_capture import loop_device
from tests.lib.recorded import Correlated, Row
from tests.lib.recorder import status

from opline.correlation import correlate
from opline.model import load_model

pytestmark = pytest.mark.live
RIGHT = 0.6  # of the guesses, at least: some 0.97 on an idle machine, less where other work takes the CPUs away
# Eight blocks, of which up to 16 I/Os want one each.
FIO = (
    "fio --filename=$1 --direct=1 --rw=randrw --bs=4k --size=32k --io_size={bytes} --norandommap --output=/dev/null "
    "--name={engine} --ioengine={engine} --iodepth={depth} --iodepth_batch=8 --numjobs={jobs}"
)
FIOS = [
    FIO.format(engine="libaio", bytes="8m", depth=16, jobs=1),
    FIO.format(engine="psync", bytes="1m", depth=1, jobs=8),
]
WORK = "set -e\nfor s in none mq-deadline; do\necho $s > $2 || continue\n" + "\n".join(FIOS) + "\ndone"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Correlated]:
    """The recording, read with the pointers and without."""
    if shutil.which("fio") is None:
        pytest.skip("needs fio")
    folder = tmp_path_factory.mktemp("overlap")
    opline = Path(sys.executable).with_name("opline")
    with loop_device() as device:
        scheduler = Path("/sys/block") / Path(device).name / "queue" / "scheduler"
        work = ["sh", "-c", WORK, "sh", device, str(scheduler)]
        done = subprocess.run(
            [opline, "record", "--model", "syscalls", "-o", folder / "run", "--", *work],
            capture_output=True, text=True, timeout=60,
        )  # fmt: skip
    assert status(done) == 0, done.stderr
    if json.loads((folder / "run" / "recording.json").read_text())["block_source"] != "bpf":
        pytest.skip(f"not through BPF here: {done.stderr}")
    found = {}
    for match in ("pointer", "sector"):
        manifest = correlate(folder / "run", load_model("syscalls"), folder / match, match=match, progress=False)
        found[match] = Correlated(folder / match, manifest)
    return found


def links_of(run: Correlated) -> dict[tuple[int, int], list[tuple[Row, tuple[int, int]]]]:
    """Of each op and time at which a bio of it was queued: the links, and when their requests were issued and
    completed.
    """
    requests = {r["request_id"]: r for r in run.rows("requests")}
    bios = {b["bio_id"]: b for b in run.rows("bios")}
    found = defaultdict(list)
    for link in run.rows("links"):
        r = requests.get(link["request_id"])
        if r and r["complete_ns"] is not None:
            key = link["op_id"], bios[link["bio_id"]]["queue_ns"]
            found[key].append((link, (r["issue_ns"], r["complete_ns"])))
    return found


def test_the_guesses_among_ios_on_the_same_sectors_are_right(runs: dict[str, Correlated]) -> None:
    truth, guessed = links_of(runs["pointer"]), links_of(runs["sector"])
    counts: Counter[tuple[str, bool, bool]] = Counter()
    for key, links in guessed.items():
        right = {times for _, times in truth.get(key, ())}
        for link, times in links:
            counts[link["confidence"], link["ambiguous"], times in right] += 1
    ambiguous = {right: counts["low", True, right] for right in (True, False)}
    assert sum(ambiguous.values()) > 500, counts
    assert ambiguous[True] >= RIGHT * sum(ambiguous.values()), counts
    # What is not marked is right, but for neighbours of completions that no BPF program saw (tracepoints/COLLECTOR.md).
    unseen = sum(r["complete_ns"] is None for r in runs["pointer"].rows("requests"))
    unmarked = sum(n for (_, marked, right), n in counts.items() if not right and not marked)
    assert unmarked <= unseen, counts
    assert not any(n for (confidence, marked, _), n in counts.items() if marked and confidence != "low"), counts
