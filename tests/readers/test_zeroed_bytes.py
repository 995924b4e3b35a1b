# SPDX-License-Identifier: MIT
"""Zeroed bytes in the middle of a stream, as a disk leaves them that lost a block: an op that is not as in the whole
trace overlaps a loss, and both readers say the same.
"""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.lib.damages import packets_of
from tests.lib.recorded import Correlated, RunOf, model_of

from opline.correlation import correlate, stage_statistics
from opline.losses import BY_NAME
from opline_analyses.cli import main

ZEROED = 4096
#: A trace, a stream of it (the application's, the kernel's), and where it is zeroed.
CASES = [
    *(("demo-kernel", "app_1", place) for place in ("header", "middle")),
    *(("demo-kernel", "kernel_0", place) for place in ("header", "middle", "two packets")),
    *(("app-sync-qd4-nvme", "kch_0", place) for place in ("header", "middle", "two packets")),
    ("app-sync-qd4-nvme", "uch_0", "two packets"),
]
Op = tuple[dict[str, Any], list[Any], list[Any]]


def zero(path: Path, place: str) -> None:
    """Zeroes a packet's header, bytes in the middle of a packet, or the end of one and the begin of the next."""
    data = bytearray(path.read_bytes())
    packets = packets_of(data)
    begin, end = packets[len(packets) // 2 if place == "middle" else 0]
    at = {"header": begin, "middle": (begin + end) // 2, "two packets": end - ZEROED // 2}[place]
    data[at : at + ZEROED] = bytes(len(data[at : at + ZEROED]))
    path.write_bytes(data)


def ops_of(run: Correlated) -> dict[tuple[int, str | None], list[Op]]:
    """Ops by begin and key, each with its stages, and the bios and requests of its links."""
    requests = {r["request_id"]: (r["issue_ns"], r["complete_ns"]) for r in run.rows("requests")}
    bios = {b["bio_id"]: (b["dev"], b["sector"], b["queue_ns"]) for b in run.rows("bios")}
    stages, links = defaultdict(list), defaultdict(list)
    for stage in run.rows("stages"):
        stages[stage["op_id"]].append((stage["begin_ns"], stage["duration_ns"], stage["stage"]))
    for link in run.rows("links"):
        links[link["op_id"]].append(str((bios[link["bio_id"]], requests.get(link["request_id"]))))
    found = defaultdict(list)
    for op in run.rows("ops"):
        found[op["begin_ns"], op["key"]].append((op, sorted(stages[op["op_id"]]), sorted(links[op["op_id"]])))
    return found


def told(run: Correlated) -> dict[str, int]:
    """The losses that make results doubtful."""
    return {name: n for name, n in run.manifest["losses"].items() if n and BY_NAME[name].severity.value != "info"}


@pytest.mark.parametrize(("name", "stream", "place"), CASES)
def test_what_differs_from_the_whole_trace_overlaps_a_loss(
    name: str, stream: str, place: str, trace: Callable[[str], Path], run_of: RunOf, tmp_path: Path
) -> None:
    whole, folder = ops_of(run_of(name)), Path(shutil.copytree(trace(name), tmp_path / "trace"))
    (path,) = folder.rglob(stream)
    zero(path, place)
    runs = {}
    for reader in ("native", "bt2"):
        manifest = correlate(folder, model_of(name), tmp_path / reader, reader=reader, progress=False)
        runs[reader] = Correlated(tmp_path / reader, manifest)
    damaged = ops_of(runs["native"])
    same = 0
    for key, ops in whole.items():
        for (op, stages, links), (now, now_stages, now_links) in zip(ops, damaged.get(key, ()), strict=False):
            if now["tainted"] or now["unsplit"]:
                continue
            assert (now["end_ns"], now["complete"]) == (op["end_ns"], op["complete"]), key
            assert (now_stages, now_links) == (stages, links), key
            same += 1
    assert same < sum(map(len, whole.values()))
    assert told(runs["native"]).keys() > told(run_of(name)).keys()
    for table in ("ops", "stages", "links", "discarded"):
        assert runs["native"].rows(table) == runs["bt2"].rows(table), table


def test_the_ways_without_a_run_say_the_same(
    trace: Callable[[str], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`opline csv` and `opline stages` of a trace read it again, too."""
    name = "app-sync-qd4-nvme"
    folder = Path(shutil.copytree(trace(name), tmp_path / "trace"))
    (path,) = folder.rglob("kch_0")
    zero(path, "middle")
    manifest = correlate(folder, model_of(name), tmp_path / "run", progress=False)
    statistics, losses = stage_statistics(folder, model_of(name), progress=False)
    assert losses == {n: c for n, c in manifest["losses"].items() if c}
    assert statistics["ops"] == manifest["core"]["ops"]
    outputs = []
    for given in ([str(folder), "--model", str(model_of(name).path)], [str(tmp_path / "run")]):
        assert main(["csv", *given, "--stages"]) == 0
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1]
