# SPDX-License-Identifier: MIT
"""The odd disk: which threshold makes an I/O an outlier, statistics per device, and the suspect against a good device;
of ops and stages the statistics per class or stage. The lines of SystemTap's script.

Whether the suspect has more outliers than a good device is asked with Fisher's exact test of both counts. It takes I/Os
for independent, which those of one burst are not: so what is called a difference has to be less than 1 % probable.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from opline.values import Value
from opline_analyses.base.text import device_name
from opline_analyses.block.io_filter import counted_sql
from opline_analyses.block.io_steps import who

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from opline_analyses.block.io_filter import Rows
    from opline_analyses.intervals.intervals import Cell
    from opline_analyses.runs.run import Run

THRESHOLD_US = 500_000  # of blockio_latency_outliers_per_device.stp
TIMES_MEDIAN = 10
TAIL = 0.999
FEW = 20  # I/Os of a device: fewer tell nothing about the distribution
BY_CHANCE = 0.01  # from here on a difference is not reported


def is_outlier_sql(threshold_ns: int) -> str:
    """Strictly above the threshold, both in whole microseconds, as the script compares."""
    return f"(end_ns - begin_ns) // 1000 > {threshold_ns // 1000}"


class Threshold(Value):
    """What an outlier takes longer than, in ns, and the reason: `given`, `10 times the median` or `p99.9`."""

    ns: int
    reason: str = "given"
    median_ns: int | None = None


def of_latencies(run: Run, rows: Rows) -> Threshold:
    """10 times the median of the counted rows; the 99.9th percentile where no row takes longer than that. In whole
    microseconds.
    """
    sql, parameters = counted_sql(rows, f"quantile_disc(end_ns - begin_ns, [0.5, {TAIL}]), max(end_ns - begin_ns)")
    found, most = run.row(sql, parameters)
    if found is None:
        return Threshold(THRESHOLD_US * 1000)  # nothing is counted, and nothing is above
    median, tail = found
    if most // 1000 > TIMES_MEDIAN * median // 1000:
        return Threshold(TIMES_MEDIAN * median // 1000 * 1000, f"{TIMES_MEDIAN} times the median", median)
    return Threshold(tail // 1000 * 1000, f"p{100 * TAIL:g}", median)


class Kind(Value):
    """What has outliers: what one is called, by what they are counted, and how a table names that."""

    one: str
    per: str
    several: str  # in a document
    head: str


KINDS = {
    "requests": Kind("I/O", "device", "devices", "Disk name"),
    "bios": Kind("I/O", "device", "devices", "Disk name"),
    "ops": Kind("op", "class", "classes", "Op class"),
    "stages": Kind("stage", "stage", "stages", "Stage"),
}


def warning(kind: Kind, row: dict[str, Any], names: dict[int, str], threshold_ns: int) -> str:
    """The script's line for one I/O; of an op or a stage what it is and whose thread it is. A row of io_log."""
    above = f"latency warning, >{threshold_ns // 1000} microsec"
    if kind.per == "device":
        sector = "-" if row["sector"] is None else row["sector"]
        told = f"device={device_name(names, row['dev'])}, sector={sector}"
    else:
        stage = f", stage={row['stage'] or '-'}" if kind.per == "stage" else ""
        told = f"class={row['class'] or '-'}{stage}, op={row['op_id']}, thread={who(row)}"
    return f"{above}: {told}, latency={row['latency_ns'] // 1000}"


def banner(kind: Kind, threshold_ns: int, interval: str) -> Iterator[str]:
    """The script's first lines."""
    what = "block I/O" if kind.per == "device" else kind.one
    yield f"Measuring {what} latency and statistics"
    yield f"A warning will be printed for {kind.one}s with latency higher than {threshold_ns // 1000} microseconds"
    yield f"Statistics will be printed every {interval} seconds"


def table_lines(kind: Kind, groups: Mapping[str, Cell], interval: str) -> Iterator[str]:
    """The script's table: whole microseconds; the device with the greatest latency first."""
    one = kind.one[0].upper() + kind.one[1:]
    yield f"{one} latency basic statistics per {kind.per}, measurement time: {interval} seconds"
    yield "Latency measured in microseconds"
    yield f"{kind.head:<19}{f'Num {kind.one}s':>8}{'Min latency':>15}{'Avg latency':>15}{'Max latency':>15}"
    yield "-" * 72
    for name, cell in sorted(groups.items(), key=lambda item: (-(item[1].most or 0), item[0])):
        mean = cell.total // cell.count // 1000
        yield f"{name:<19}{cell.count:>8}{(cell.least or 0) // 1000:>15}{mean:>15}{(cell.most or 0) // 1000:>15}"


def probability(slow: int, count: int, slow_other: int, count_other: int) -> float:
    """How probable it is that ``slow`` or more of all outliers fall on the first of two devices, if all I/Os of both
    are equally likely to be one: Fisher's exact test, one-sided.
    """
    total, outliers = count + count_other, slow + slow_other

    def log_choose(n: int, k: int) -> float:
        return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)

    whole = log_choose(total, outliers)
    return min(
        1.0,
        sum(
            math.exp(log_choose(count, k) + log_choose(count_other, outliers - k) - whole)
            for k in range(slow, min(count, outliers) + 1)
            if outliers - k <= count_other
        ),
    )


def suspect_and_good(devices: Mapping[str, Cell], slow: Mapping[str, int]) -> tuple[str, str] | None:
    """The device with the largest share of I/Os above the threshold, and the one to compare it with: of those with the
    least such share, and half as many I/Os at least, the one whose mean is the median. None without an outlier, or
    without another device; those with a few I/Os are none.
    """
    devices = {name: cell for name, cell in devices.items() if cell.count >= FEW}
    if not any(slow.get(name) for name in devices):
        return None
    share = {name: slow.get(name, 0) / cell.count for name, cell in devices.items()}
    suspect = max(share, key=lambda name: (share[name], devices[name].most or 0, name))
    others = [n for n in devices if n != suspect and share[n] < share[suspect]]
    least = min((share[n] for n in others), default=0.0)
    good = [n for n in others if share[n] == least]
    many = [n for n in good if devices[n].count * 2 >= devices[suspect].count] or good
    if not many:
        return None
    ordered = sorted(many, key=lambda n: (devices[n].mean or 0.0, n))
    return suspect, ordered[(len(ordered) - 1) // 2]
