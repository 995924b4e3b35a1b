# SPDX-License-Identifier: MIT
"""A recording's work of other programs, as one line for people.

Takes the core's summary of the population; gives the line of a command on standard error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opline.talk import shown
from opline_analyses.base.text import count_of, percent

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from opline.population import Population, Program
    from opline_analyses.runs.run import Run

NAMED = 1
OPTION = "--all-programs counts them"


def line_of_run(run: Run) -> str | None:
    """The line for a run; None where nothing is left out, or the user asked for all programs."""
    found = None if run.all_programs else run.population
    return None if found is None else line_of(found, run.device_names())


def line_of(found: Population, devices: Mapping[int, str]) -> str | None:
    """The line; None where nothing is left out."""
    others = found.left_out()
    if not found.counts_alone:
        if not others:
            return None
        names = [shown(name) for name in found.programs[-2:]]
        what, whose = " and ".join(names) or "the recorded program", "their" if len(names) > 1 else "its"
        did = "did nothing that is counted here"
        if found.idle and found.saw_block_events:
            did = f"did no I/O of {whose} own but to start"
        return f"{what} {did}: all programs of the machine are counted"
    return left_out_line(found, devices)


def left_out_line(found: Population, devices: Mapping[int, str]) -> str | None:
    """The work left out if only the population's rows count; None: nothing."""
    others = found.left_out()
    return f"not yours: {_programs(others, devices)}; {OPTION}" if others else None


def names_in(recording: Mapping[str, Any] | None) -> dict[int, str]:
    """The names of block devices in a recording's manifest, by kernel-internal number."""
    return {int(device["dev"]): str(device["name"]) for device in (recording or {}).get("devices", ())}


def background_line(run: Run) -> str | None:
    """The share of others in a device's figures, which count every program; None without work of others."""
    found = run.population
    if found is None or not found.counts_alone or not found.other_requests:
        return None
    whole = found.requests + found.other_requests
    share = percent(found.other_requests, whole)
    return f"of all programs: {found.other_requests} of {count_of(whole, 'I/O')} ({share} %) are not yours"


def _programs(others: list[Program], devices: Mapping[int, str]) -> str:
    told = [_program(one, devices) for one in others[:NAMED]]
    rest = others[NAMED:]
    if rest:
        count = sum(one.bios or one.ops for one in rest)
        what = count_of(count, "I/O" if all(one.bios for one in rest) else "I/O or op")
        told.append(f"{what} of {count_of(len(rest), 'more process', 'more processes')}")
    return ", ".join(told)


def _program(one: Program, devices: Mapping[int, str]) -> str:
    what = count_of(one.bios, "I/O") if one.bios else count_of(one.ops, "op")
    where = "" if one.dev is None else f" on {devices.get(one.dev, f'{one.dev >> 20}:{one.dev & 0xFFFFF}')}"
    who = f"{shown(one.comm)} (pid {one.pid})" if one.pid > 0 else "processes that the trace does not name"
    return f"{what} of {who}{where}"
