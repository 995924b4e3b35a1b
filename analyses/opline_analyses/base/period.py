# SPDX-License-Identifier: MIT
"""The option --period, of commands that take --model: it names a model of one line (``opline.model.period``)."""

from __future__ import annotations

import argparse


def add_period(parser: argparse._ActionsContainer) -> None:
    """--period, which sets ``model``: of a group with --model, where one excludes the other. Machines that only record
    have the option, and no native core.
    """
    parser.add_argument(
        "--period", metavar="BEGIN,END[,KEY]", dest="model", type=_period,
        help="instead of a model: an op lasts from the event BEGIN to the event END of the same thread, or with the "
        "same value of the field KEY",
    )  # fmt: skip


def _period(text: str) -> str:
    return f"period:{text}"
