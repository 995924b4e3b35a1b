# SPDX-License-Identifier: MIT
"""Proposes an op model for a trace (`opline model infer`) by rules for any program. Names only help to find begin and
end, place and size.
"""

from __future__ import annotations

from pathlib import Path

from opline.errors import OplineError


def infer(trace: Path, source: str | None = None) -> str:
    """The model's text, with evidence and questions as comments. ``source``: origin of the trace, if not the trace's
    name. Raises OplineError without any evidence.
    """
    from opline_analyses.infer.events import read_events
    from opline_analyses.infer.keys import candidates
    from opline_analyses.infer.ops import chosen
    from opline_analyses.infer.probed import probes_of
    from opline_analyses.infer.rules import find
    from opline_analyses.infer.text import Writer
    from opline_analyses.infer.threads import pair_of

    events = read_events(trace)
    if not events.events:
        raise OplineError(
            f"{trace} has no event of an application with its thread (vtid): record with its tracepoints or a model's "
            "probes. System calls need no model of yours: `--model syscalls`."
        )
    spaces, rest = chosen(candidates(events.events, events.hex_fields), events.events)
    found = find(events, spaces, rest, None if spaces else pair_of(events.events))
    return Writer(found, source or trace.name, probes_of(trace)).text()
