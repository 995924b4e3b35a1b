# SPDX-License-Identifier: MIT
"""What makes slow ops slow: from `opline csv RUN > ops.csv`, the mean time in each stage by class of latency.

usage: slow_ops.py ops.csv slow.png          prints the table (us), draws it stacked
"""

from __future__ import annotations

import sys

import matplotlib.pyplot as plt
import pandas as pd

CLASSES = {"fastest half": (0, 0.5), "p50 to p90": (0.5, 0.9), "p90 to p99": (0.9, 0.99), "slowest 1 %": (0.99, 1)}


def by_latency(ops: pd.DataFrame) -> pd.DataFrame:
    """Mean time in us: a row per class of latency, a column per stage (those below 2 % together).

    An empty cell is a stage that the op did not have.
    """
    first = list(ops.columns).index("rw") + 1
    stages = ops.iloc[:, first:].select_dtypes("number").fillna(0) / 1000
    stages.columns = stages.columns.str.removesuffix("_ns")
    small = stages.columns[stages.sum() < 0.02 * stages.sum().sum()]
    stages = stages.drop(columns=small).assign(other=stages[small].sum(axis=1))
    rank = ops["latency_ns"].rank(method="first", pct=True)
    rows = {name: stages[(rank > low) & (rank <= high)].mean() for name, (low, high) in CLASSES.items()}
    return pd.DataFrame(rows).T


def main() -> None:
    """Read the CSV, print the table, write the picture."""
    source, picture = sys.argv[1:]
    table = by_latency(pd.read_csv(source))
    print(table.T.round(1).to_string())
    figure, axes = plt.subplots(figsize=(10, 5))
    table.plot.barh(ax=axes, stacked=True, xlabel="mean time (us)", colormap="tab10")
    axes.legend(bbox_to_anchor=(1, 1), fontsize="small")
    figure.savefig(picture, bbox_inches="tight", dpi=100)


if __name__ == "__main__":
    plt.switch_backend("Agg")
    main()
