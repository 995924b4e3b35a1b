# SPDX-License-Identifier: MIT
"""Waits for speedscope (the format: speedscope.py): a profile per class of ops, a sample per stack with its sum."""

from __future__ import annotations

import itertools
import json
from typing import BinaryIO

from opline_analyses.export.speedscope import Frames, about
from opline_analyses.export.wait_stacks import waited
from opline_analyses.runs.run import Run
from opline_analyses.runs.selection import Selection


def write(run: Run, which: Selection, out: BinaryIO) -> int:
    """Writes the profiles; gives the number of ops that count."""
    ops, stacks = waited(run, which)
    frames = Frames()
    profiles = []
    for op_class, of_class in itertools.groupby(stacks, lambda one: one.op_class):
        samples = [([frames.number(name) for name in one.frames], one.ns) for one in of_class]
        profiles.append({
            "type": "sampled", "name": op_class, "unit": "nanoseconds",
            "startValue": 0, "endValue": sum(ns for _, ns in samples),
            "samples": [stack for stack, _ in samples], "weights": [ns for _, ns in samples],
        })  # fmt: skip
    whole = about(run) | {"profiles": profiles, "shared": {"frames": frames.all()}}
    out.write(json.dumps(whole).encode() + b"\n")
    return ops
