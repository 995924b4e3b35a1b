# SPDX-License-Identifier: MIT
"""What a check of the machine found, as `opline doctor` reports it."""

from __future__ import annotations

import enum

from opline.values import Value


class Status(enum.StrEnum):
    """What a check found."""

    OK = "ok"
    OPTIONAL = "optional"  # not there, and the main job can do without
    WARNING = "warning"
    MISSING = "missing"


class Check(Value):
    """One line of the report. ``advice`` is what to type or install."""

    name: str
    status: Status
    detail: str
    advice: str = ""
