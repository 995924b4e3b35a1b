# SPDX-License-Identifier: MIT
"""Waits for speedscope (the format: speedscope.py): a profile per class of ops, a sample per stack with its sum.

Of slow ops against typical ones a class has two profiles, whose samples are means per op.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable
from typing import Any, BinaryIO

from opline_analyses.export.speedscope import Frames, about
from opline_analyses.export.wait_stacks import waited, waited_against_typical
from opline_analyses.runs.run import Run
from opline_analyses.runs.selection import Selection
from opline_analyses.why.sets import Rule


def _profile(name: str, frames: Frames, stacks: Iterable[tuple[tuple[str, ...], int]]) -> dict[str, Any]:
    """Of the stacks and their ns, without those of 0 ns."""
    samples = [([frames.number(one) for one in stack], ns) for stack, ns in stacks if ns]
    return {
        "type": "sampled", "name": name, "unit": "nanoseconds",
        "startValue": 0, "endValue": sum(ns for _, ns in samples),
        "samples": [stack for stack, _ in samples], "weights": [ns for _, ns in samples],
    }  # fmt: skip


def write(run: Run, which: Selection, out: BinaryIO, against: Rule | None = None) -> int:
    """Writes the profiles; gives the number of ops that count. ``against``: which of them are slow."""
    frames = Frames()
    profiles = []
    if against is None:
        ops, stacks = waited(run, which)
        for op_class, of_class in itertools.groupby(stacks, lambda one: one.op_class):
            profiles.append(_profile(op_class, frames, ((one.frames, one.ns) for one in of_class)))
    else:
        ops, both = waited_against_typical(run, which, against)
        for op_class, sides in itertools.groupby(both, lambda one: one.op_class):
            found = list(sides)
            profiles.append(_profile(f"{op_class}, typical", frames, ((one.frames, one.typical_ns) for one in found)))
            profiles.append(_profile(f"{op_class}, slow", frames, ((one.frames, one.slow_ns) for one in found)))
    whole = about(run) | {"profiles": profiles, "shared": {"frames": frames.all()}}
    out.write(json.dumps(whole).encode() + b"\n")
    return ops
