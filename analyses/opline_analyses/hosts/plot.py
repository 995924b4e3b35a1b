# SPDX-License-Identifier: MIT
"""The picture of a cluster's clocks: the bound of each host over the reference's time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import matplotlib

matplotlib.use("agg")
import numpy as np
from matplotlib.figure import Figure

from opline.store.arrays import gathered
from opline_analyses.base.literal import LiteralFiles
from opline_analyses.pictures.plot import COLOURS, label_of, save
from opline_analyses.runs.database import in_memory

if TYPE_CHECKING:
    from pathlib import Path

DPI = 150
MOST_POINTS = 20_000  # of one host; points left out are drawn by their greatest bound


def plot_bounds(cluster: Path, path: Path) -> None:
    """Draws ``clock.parquet`` into a PNG or an SVG. Raises OplineError."""
    files = LiteralFiles()
    file = files.open(cluster / "clock.parquet")
    with in_memory() as con:
        rows = gathered(con.sql(f"SELECT host, reference_ns, bound_ns FROM read_parquet('{file}')"))
    files.close()
    hosts, times, bounds = (rows.array(name) for name in ("host", "reference_ns", "bound_ns"))
    figure = Figure(figsize=(9, 4), layout="constrained")
    axes = figure.subplots()
    begin = int(times.min()) if len(times) else 0
    for n, host in enumerate(dict.fromkeys(hosts)):
        mine = np.flatnonzero(hosts == host)
        first = np.arange(0, len(mine), -(-len(mine) // MOST_POINTS))
        seconds = (times[mine][first] - begin) / 1e9
        bound = np.maximum.reduceat(bounds[mine], first) / 1e3
        axes.step(seconds, bound, where="post", color=COLOURS[n % len(COLOURS)], label=label_of(str(host)))
    axes.set_xlabel("time on the reference's clock (s)")
    axes.set_ylabel("bound (us)")
    axes.set_ylim(bottom=0)
    if len(times):
        axes.legend()
    save(figure, path, DPI)
