# SPDX-License-Identifier: MIT
"""Functions for SQL on a run's tables: `dev_name(dev)` and `wall(ns)`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opline_analyses.base.text import device_name
from opline_analyses.runs.wall_clock import offset_ns

if TYPE_CHECKING:
    from opline_analyses.runs.run import Run

_DEVICES = "SELECT dev FROM requests UNION SELECT dev FROM bios UNION SELECT dev FROM ops"


def make_functions(run: Run, place: str = "") -> None:
    """Makes both, in the run's own database or another attached one (``place``: its name and a dot).

    dev_name(dev): the device's name, MAJOR:MINOR without a known name. wall(ns): an instant of the run as a timestamp
    in UTC; for a trace's clock without an offset to the time of day, as if the run's first event were at 1970-01-01.
    """
    names = run.device_names()
    known = {*names, *(int(dev) for (dev,) in run.rows(_DEVICES) if dev is not None)}
    cases = " ".join(f"WHEN {dev} THEN '{_quoted(device_name(names, dev))}'" for dev in sorted(known))
    named = f"CASE dev {cases} END" if cases else "NULL::VARCHAR"
    run.con.execute(f"CREATE OR REPLACE MACRO {place}dev_name(dev) AS {named}")
    offset = offset_ns(run)
    shift = -run.start_ns() if offset is None else offset
    run.con.execute(f"CREATE OR REPLACE MACRO {place}wall(ns) AS make_timestamp_ns((ns + ({shift}))::BIGINT)")


def _quoted(text: str) -> str:
    return text.replace("'", "''")
