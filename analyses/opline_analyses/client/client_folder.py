# SPDX-License-Identifier: MIT
"""A result folder of CBT, which starts a benchmark on several clients: the clients' outputs of one test as one report.

CBT starts a program on each client and for each volume or process, and copies the outputs into one folder per test
(benchmark/librbdfio.py of CBT). The names are `output.N`, or `output.N.HOST`. `json_output.N` is made of the same text.
The clients run at the same time: their ops and rates add.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opline.errors import OplineError
from opline_analyses.client.client_report import ClientReport

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

_OUTPUT = re.compile(r"output\.\d+(?:\..+)?")  # not fio's own logs, output.0_lat.1.log
_NAMED = 5  # limit of tests named in a message


def outputs_of(folder: Path) -> list[Path]:
    """The outputs of one test. Raises OplineError for a folder without outputs, or with several tests."""
    found = sorted(p for p in folder.rglob("output.*") if _OUTPUT.fullmatch(p.name) and p.is_file())
    if not found:
        raise OplineError(f"{folder} has no output of a client: CBT calls them output.N or output.N.HOST.")
    tests = sorted({str(path.parent) for path in found})
    if len(tests) > 1:
        more = f" and {len(tests) - _NAMED} others" if len(tests) > _NAMED else ""
        raise OplineError(f"{folder} has several tests: name one of {', '.join(tests[:_NAMED])}{more}.")
    return found


def _weighted(parts: Iterable[tuple[int, float]]) -> tuple[int, float]:
    """Number and mean of all parts."""
    known = list(parts)
    count = sum(n for n, _ in known)
    return count, sum(n * mean for n, mean in known) / count


def _added(maps: Sequence[Mapping[str, int]]) -> dict[str, int]:
    return {name: sum(one.get(name, 0) for one in maps) for name in sorted(set().union(*maps))}


def together(reports: Sequence[ClientReport]) -> ClientReport:
    """Concurrent clients as one. Raises OplineError for different programs, or a client without a number of ops."""
    tools = sorted({report.tool for report in reports})
    if len(tools) > 1:
        raise OplineError(f"The outputs of one test are of different programs: {', '.join(tools)}.")
    if not all(report.count for report in reports):
        raise OplineError("An output does not say its number of ops: the mean of all clients is unknown.")
    count, mean_ns = _weighted((r.count or 0, r.mean_ns) for r in reports)
    seconds = [r.seconds for r in reports if r.seconds is not None]
    rates = [r.iops for r in reports if r.iops is not None]
    depths = [r.queue_depth for r in reports if r.queue_depth is not None]
    moved = [r.bytes for r in reports if r.bytes is not None]
    ramps = [r.ramp_seconds for r in reports if r.ramp_seconds is not None]
    syncs = [r.syncs for r in reports if r.syncs]
    apart = all(r.by_class for r in reports)
    names = sorted({name for r in reports for name in r.by_class})
    return ClientReport(
        tools[0], mean_ns, count,
        seconds=max(seconds, default=None),
        iops=sum(rates) if len(rates) == len(reports) else None,
        queue_depth=sum(depths) if len(depths) == len(reports) else None,
        by_class={n: _weighted(r.by_class[n] for r in reports if n in r.by_class) for n in names} if apart else {},
        bytes=sum(moved) if len(moved) == len(reports) else None,
        bytes_by_class=_added([r.bytes_by_class for r in reports]) if apart and len(moved) == len(reports) else {},
        ramp_seconds=max(ramps, default=None),
        syncs=_weighted(syncs) if syncs else None,
    )  # fmt: skip
