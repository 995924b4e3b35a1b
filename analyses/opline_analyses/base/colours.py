# SPDX-License-Identifier: MIT
"""One colour for each stage, fixed by its name: the same in every run and on every page.

The hue says the stage's kind, by Okabe and Ito's palette (https://jfly.uni-koeln.de/color/), which the colour-blind
tell apart; the lightness tells stages of one kind apart. Stages of the shipped models and of block requests have a
place of their own in their kind, in the models' order, so that neighbours differ; any other name has the place of its
check sum.
There are more names than colours: a picture prints the names as well.
"""

from __future__ import annotations

import zlib
from functools import cache

HUES = {
    "work": ("#0072B2", "#56B4E9"),
    "wait": ("#E69F00", "#F0C840"),
    "network": ("#009E73",),
    "device": ("#D55E00",),
    "block": ("#CC79A7",),
    "unknown": ("#777777",),
}
UNATTRIBUTED = "#C8C8C8"
#: What a thread did, by the column of the table stages, with what pictures call it.
STATES = {
    "on_cpu_ns": ("on CPU", "#2E7D32"),
    "runnable_ns": ("waits for a CPU", "#F0C000"),
    "blocked_io_ns": ("blocked on I/O", "#6A1B9A"),
    "blocked_ns": ("blocked", "#9E9E9E"),
}
STATES_UNKNOWN = "state unknown"
# Towards white (above 0) or black (below), so that neighbours are far apart.
_STEPS = (0.0, 0.45, -0.35, 0.65, 0.22, -0.2)
# Waits only get lighter, time at the device only darker: without red or green both are yellow.
_STEPS_OF = {"wait": (0.0, 0.45, 0.65, 0.22), "device": (0.0, -0.35, -0.2, -0.5)}
_BLOCK = (
    ("D2C", "device"),
    ("Q2G", "block"),
    ("G2I", "block"),
    ("I2D", "block"),
    ("G2D", "block"),
    ("Q2M", "block"),
    ("M2D", "block"),
)


def _mixed(colour: str, step: float) -> str:
    towards = 255 if step > 0 else 0
    parts = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{round(c + (towards - c) * abs(step)):02X}" for c in parts)


@cache
def shades(kind: str) -> tuple[str, ...]:
    """The colours of a kind, the plain hue first. A kind that is not known has those of unknown."""
    hues = HUES.get(kind, HUES["unknown"])
    return tuple(_mixed(hue, step) for step in _STEPS_OF.get(kind, _STEPS) for hue in hues)


@cache
def _places() -> dict[tuple[str, str], int]:
    from opline.model import load_model, shipped_models

    places: dict[tuple[str, str], int] = {}
    used: dict[str, int] = {}
    # a stage whose kind the model does not say is work, or a wait where it goes to another thread
    named = [(stage.name, stage.kind or "work") for model in shipped_models() for stage in load_model(model).stages]
    for name, kind in (*_BLOCK, *named):
        if (name, kind) not in places:
            places[name, kind] = used.get(kind, 0)
            used[kind] = places[name, kind] + 1
    return places


def stage_colour(name: str, kind: str) -> str:
    """The colour of a stage of this kind, as #RRGGBB."""
    ramp = shades(kind)
    place = _places().get((name, kind))
    if place is None:
        place = zlib.crc32(name.encode("utf-8", "surrogateescape"))
    return ramp[place % len(ramp)]
