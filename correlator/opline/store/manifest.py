# SPDX-License-Identifier: MIT
"""The shapes (opline.shapes) of ``manifest.json`` and ``recording.json``: what of them anybody reads. What an older
opline did not write may be absent.
"""

from __future__ import annotations

_COUNTS = {"*": int}
_GAP = {"loss": str, "why": str, "from_ns": (int, None), "to_ns": (int, None), "count": int}
_REQUESTS = {"unseen?": (int, None), "records?": (int, None)}
_COLLECTOR = (None, {"cpu_ns?": (int, None), "sent?": (int, None, _COUNTS), "requests?": (None, _REQUESTS)})

RECORDING = {
    "model?": (None, {"argument": str}),
    "command?": {
        "argv?": [str],
        "cwd?": str,
        "begin_monotonic_ns?": (int, None),
        "end_monotonic_ns?": (int, None),
    },
    "event_count?": (int, None),
    "trace_bytes?": (int, None),
    **{f"{name}?": _COLLECTOR for name in ("collector", "probes", "rings")},
    "begin?": (None, {"wall?": str}),
    "end?": (None, {"wall?": str}),
    "devices?": [{"dev": int, "name": str, "queues?": (None, [[int]]), "fua?": (bool, None)}],
    "completed_before?": {"*": _COUNTS},
    "completed_after?": {"*": _COUNTS},
    "state?": str,
    "session?": (str, None),
    "gaps?": [_GAP],
    "tracing_ended?": (str, None),
    "write_failed?": (bool, None),
    "block_source?": (str, None),
}

MANIFEST = {
    "model?": {"name": str, "sha256": str},
    "trace?": str,
    "reader?": str,
    "reader_reason?": str,
    "reader_fast_events?": (int, None),
    "recording?": (None, RECORDING),
    "gaps?": [_GAP],
    "losses?": _COUNTS,
    "plugs?": [
        {
            "dev": int,
            "plugs": int,
            "timers": int,
            "ios": int,
            "timer_ios": int,
            "plugged_ns": int,
            "observed_ns": int,
        }
    ],
    "devices?": [{"dev": int, "name": str, "host": str}],
    "core?": {
        "first_ns?": (int, None),
        "devices?": {"*": str},
        "fates?": {"*": _COUNTS},
        "losses?": _COUNTS,
        "hops?": {"*": _COUNTS},
        "points?": [{"name": str, "event": str, "seen": int, "transitions": int}],
        "keys?": [{"space": str, "point": str, "found": int, "missed": int}],
    },
}
AGAIN = "Remove it to correlate the trace again."
