# SPDX-License-Identifier: MIT
"""What the head of every page has of its run: model, begin, losses, colours. Names are shortened; texts are plain."""

from __future__ import annotations

from itertools import combinations
from typing import Any

from opline.cost import cost_of
from opline.steps import STEPS
from opline.talk import shown
from opline_analyses.base.colours import HUES, UNATTRIBUTED, stage_colour
from opline_analyses.report.ops import NAME_LENGTH
from opline_analyses.runs import ledger
from opline_analyses.runs.cluster import read_cluster
from opline_analyses.runs.run import Run

FORMAT = 1
MOST_LOST = 1000  # intervals that the page draws
_LAST = f"{STEPS[-2].letter}2{STEPS[-1].letter}"
_BETWEEN = [f"{a.letter}2{b.letter}" for a, b in combinations(STEPS, 2)]
BLOCK_COLOURS = {n: stage_colour(n, "device" if n == _LAST else "block") for n in _BETWEEN} | {"other": UNATTRIBUTED}


def short_name(text: str) -> str:
    """A name of a trace, as a page holds it."""
    return shown(text)[:NAME_LENGTH]


def stage_head(name: str, kind: str) -> dict[str, Any]:
    """A stage."""
    return {"name": short_name(name), "kind": short_name(kind), "colour": stage_colour(name, kind)}


def _hosts(run: Run) -> list[dict[str, Any]]:
    """The hosts of a joined run by number: ``reference``: all times are of its clock; else how far they may be off."""
    cluster = read_cluster(run.path)
    known = {host["name"]: host for host in cluster["hosts"]}
    return [
        {
            "name": short_name(name),
            "reference": name == cluster["reference"],
            "clock": short_name(cluster["reference"]),
            **{key: known.get(name, {}).get(key) for key in ("bound_p50_ns", "bound_max_ns")},
        }
        for name in run.hosts()
    ]


def common_head(run: Run, start_ns: int) -> dict[str, Any]:
    """``start_ns``: of the run's clock, what the page's times count from."""
    recording = run.manifest.get("recording") or {}
    model = run.manifest.get("model") or {}
    lost = run.rows(
        f"SELECT begin_ns, end_ns, count, packets, stream FROM discarded ORDER BY begin_ns, stream LIMIT {MOST_LOST}"
    )
    entries = ledger.entries(run)
    hosts = {"hosts": _hosts(run)} if run.is_cluster else {}
    return {
        **hosts,
        "format": FORMAT,
        "start_ns": str(start_ns),  # may be beyond 2^53: a text
        "model": short_name(str(model.get("name", "?"))),
        "wall": short_name(str((recording.get("begin") or {}).get("wall") or "").split(".")[0].replace("T", " ")),
        "block_colours": BLOCK_COLOURS,
        "steps": "".join(step.letter.lower() for step in STEPS),
        "unattributed": {"colour": UNATTRIBUTED},
        "kinds": [[kind, hues[0]] for kind, hues in HUES.items()],
        "cost": cost_of(recording).text(),
        "lost": [
            [*(None if t is None else t - start_ns for t in (begin, end)), n, bool(packets), short_name(stream or "")]
            for begin, end, n, packets, stream in lost
        ],
        "losses": [[e.loss, e.severity, e.origin, e.count, e.advice] for e in entries],
        "bad_losses": ledger.bad_count(entries),
        "touched": ledger.touched(entries, run.core("ops")).share,
        "loss_matters": ledger.bad_count(entries) > 0 and not ledger.is_small(entries, run.core("ops"), ledger.MANY),
    }
