# SPDX-License-Identifier: MIT
"""The figures of one run that comparisons are made of, and the file that keeps those of several runs.

Takes a run and a selection; gives `Figures`: what the ops, their stages, sizes and devices came to, without the ops.
A baseline is a JSON file of such figures (schema "opline baseline 1") with the distributions as sketches.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from opline.errors import OplineError
from opline.shapes import read_json
from opline.values import Value
from opline_analyses.base.text import device_name
from opline_analyses.block.io_sources import AT_DEVICE
from opline_analyses.compare.sketch import Sketch, sketches
from opline_analyses.ops.stages import stage_table
from opline_analyses.runs.ran import time_of_most

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from typing import Any, TypeVar

    _T = TypeVar("_T", bound=Value)

    from opline_analyses.ops.stages import StageRow
    from opline_analyses.runs.run import Run
    from opline_analyses.runs.selection import Selection

SCHEMA = "opline baseline 1"
LATENCY = "latency"
MEASURED = {"p50": "p50_ns", "p90": "p90_ns", "p99": "p99_ns", "p99.9": "p999_ns"}
MOST_SIZES = 8


class Times(Value):
    """The times of a stage, or the latencies: over the ``count`` ops that have it."""

    kind: str
    count: int
    total_ns: int
    p50_ns: int
    p90_ns: int
    p99_ns: int
    p999_ns: int
    max_ns: int
    sketch: Sketch | None = None


class Device(Value):
    """The requests of a block device: how many, how many completed, and the time of those between D and C."""

    requests: int
    done: int
    d2c_ns: int


class Figures(Value):
    """``name``: the run's. ``window_ns``: the time that the rate is over. ``where``: host and kernel. ``completed``:
    the ops of the rate, tainted ones too, which are done however little is known of them; a file that an older opline
    wrote lacks it.
    """

    name: str
    ops: int
    incomplete: int
    tainted: int
    window_ns: int
    latency: Times
    stages: dict[str, Times]
    classes: dict[str, int]  # ops by class
    sizes: dict[str, int]  # ops by bytes; the most frequent ones
    devices: dict[str, Device]
    where: dict[str, str]
    model: str
    losses: int  # of severity data_loss and error
    completed: int | None = None

    def value(self, figure: str, stage: str = LATENCY) -> float | None:
        """A figure: iops, or of a stage its mean (over all ops), p50, p90, p99, p99.9, or another percentile, which is
        taken from the sketch; None where the run has no such stage. Raises OplineError without the sketch.
        """
        if figure == "iops":
            done = self.ops if self.completed is None else self.completed
            return done * 1e9 / self.window_ns if self.window_ns else None
        times = self.latency if stage == LATENCY else self.stages.get(stage)
        if times is None or not times.count:
            return None
        if figure == "mean":
            return times.total_ns / self.ops
        if figure in MEASURED:
            return float(getattr(times, MEASURED[figure]))
        if times.sketch is None:
            raise OplineError(f"{self.name}: its figures have no {figure}.")
        return times.sketch.quantile(float(figure.removeprefix("p")) / 100)


def _times(row: StageRow, sketch: Sketch | None) -> Times:
    return Times(
        row.kind, row.count, row.total_ns, row.p50_ns, row.p90_ns, row.p99_ns, row.p999_ns, row.max_ns, sketch
    )  # fmt: skip


def _rate_of(run: Run) -> tuple[int, int]:
    """The time that the rate is over, and the ops that completed in it: of recorded programs that in which they did
    nearly all of their work.
    """
    done = "FROM ops WHERE op_id IN (SELECT op_id FROM chosen WHERE complete)"
    if run.population is not None:
        ran = time_of_most(run, f"SELECT pid AS who, class AS what, begin_ns, end_ns {done}")
        if ran is not None:
            return ran.end_ns - ran.begin_ns, ran.done
    window_ns, completed = run.row(f"SELECT max(end_ns) - min(begin_ns), count(*) {done}")
    return int(window_ns), int(completed)


def figures_of(
    run: Run, which: Selection, name: str, losses: int, tainted: bool = False, sketched: bool = False
) -> Figures:
    """The figures of the selected ops. Raises OplineError where no op counts."""
    t = stage_table(run, which, tainted)  # makes the table `counted`
    latency, stages = sketches(run) if sketched else (None, {})
    window_ns, completed = _rate_of(run)
    classes = run.rows(
        "SELECT coalesce(class, '?') AS c, count(*) FROM ops SEMI JOIN counted USING (op_id) GROUP BY c ORDER BY c"
    )
    sizes = run.rows(
        f"""SELECT coalesce(length_bytes::VARCHAR, '?') AS b, count(*) AS n FROM ops SEMI JOIN counted USING (op_id)
            GROUP BY b ORDER BY n DESC, b LIMIT {MOST_SIZES}"""
    )
    devices = run.rows(
        f"""SELECT dev, count(*), count(r.d2c_ns), coalesce(sum(r.d2c_ns), 0)::BIGINT FROM requests r
            SEMI JOIN counted USING (op_id) WHERE dev IS NOT NULL AND {AT_DEVICE} GROUP BY dev ORDER BY dev"""
    )
    names = run.device_names()
    recording = run.manifest.get("recording") or {}
    host = recording.get("host")
    host = host if isinstance(host, dict) else {}
    model = run.manifest.get("model") or {}
    return Figures(
        name, t.ops, t.incomplete, t.tainted, window_ns, _times(t.latency, latency),
        {row.stage: _times(row, stages.get(row.stage)) for row in t.stages},
        dict(classes), dict(sizes), {device_name(names, dev): Device(*rest) for dev, *rest in devices},
        {key: str(host[key]) for key in ("hostname", "machine", "cpu_count", "kernel") if key in host},
        str(model.get("name", "")), losses, completed,
    )  # fmt: skip


# --- the file ---------------------------------------------------------------------------------------------------------

_ADVICE = "Is it a baseline (opline compare RUN ... --save FILE)?"
_TIMES = {
    "kind": str,
    **dict.fromkeys(("count", "total_ns", "p50_ns", "p90_ns", "p99_ns", "p999_ns", "max_ns"), int),
    "bins?": [int],
}
_SHAPE = {
    "schema": str,
    "runs": [
        {
            **dict.fromkeys(("name", "model"), str),
            **dict.fromkeys(("ops", "incomplete", "tainted", "window_ns", "losses"), int),
            "completed?": int,
            "latency": _TIMES,
            "stages": {"*": _TIMES},
            "classes": {"*": int},
            "sizes": {"*": int},
            "devices": {"*": {"requests": int, "done": int, "d2c_ns": int}},
            "where": {"*": str},
        }
    ],
}


def _times_document(t: Times) -> dict[str, Any]:
    plain = {name: value for name, value in vars(t).items() if name != "sketch"}
    return {**plain, "bins": list(t.sketch.bins)} if t.sketch else plain


def _run_document(f: Figures) -> dict[str, Any]:
    plain = {**vars(f), "latency": _times_document(f.latency)}
    plain["stages"] = {name: _times_document(t) for name, t in f.stages.items()}
    plain["devices"] = {name: vars(d) for name, d in f.devices.items()}
    if f.completed is None:
        del plain["completed"]
    return plain


def baseline(runs: Sequence[Figures]) -> dict[str, Any]:
    """The file's document: integers, so nothing is rounded."""
    return {"schema": SCHEMA, "runs": [_run_document(f) for f in runs]}


def baseline_text(runs: Sequence[Figures]) -> str:
    """The file's text: a line per stage of a run, so that differences can be read."""
    documents = []
    for plain in baseline(runs)["runs"]:
        fields = [f"{json.dumps(key)}: {_lines(value)}" for key, value in plain.items()]
        documents.append("{\n" + ",\n".join(fields) + "}")
    return f'{{"schema": {json.dumps(SCHEMA)}, "runs": [\n' + ",\n".join(documents) + "]}\n"


def _lines(value: Any) -> str:
    if isinstance(value, dict) and any(isinstance(v, dict) for v in value.values()):
        return "{\n " + ",\n ".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in value.items()) + "}"
    return json.dumps(value)


def read_baseline(path: Path) -> list[Figures]:
    """The runs of a baseline. Raises OplineError."""
    return figures_in(read_json(path, _SHAPE, _ADVICE), path)


def figures_in(document: dict[str, Any], path: object) -> list[Figures]:
    """The runs of the document of a baseline, which becomes theirs. Raises OplineError."""
    if document["schema"] != SCHEMA:
        raise OplineError(f"Cannot read {path}: its schema is not {SCHEMA}. {_ADVICE}")
    for run in document["runs"]:
        for t in (run["latency"], *run["stages"].values()):
            bins = t.pop("bins", None)
            if bins is not None and (len(bins) % 2 or min(bins, default=0) < 0 or bins[::2] != sorted({*bins[::2]})):
                raise OplineError(f"Cannot read {path}: it is damaged: bins are not pairs in order. {_ADVICE}")
            t["sketch"] = Sketch(tuple(bins)) if bins else None
        if run["ops"] <= 0 or min(t["count"] for t in (run["latency"], *run["stages"].values())) <= 0:
            raise OplineError(f"Cannot read {path}: it is damaged: a run without ops. {_ADVICE}")
        run["latency"] = _known(Times, run["latency"])
        run["stages"] = {name: _known(Times, t) for name, t in run["stages"].items()}
        run["devices"] = {name: _known(Device, d) for name, d in run["devices"].items()}
    if not document["runs"]:
        raise OplineError(f"{path} has no run. {_ADVICE}")
    return [_known(Figures, run) for run in document["runs"]]


def _known(kind: type[_T], document: dict[str, Any]) -> _T:
    """Its fields of the document, which may have more: a later version's."""
    return kind(**{name: document[name] for name in kind.__annotations__ if name in document})
