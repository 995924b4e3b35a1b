# SPDX-License-Identifier: MIT
"""How many events each channel of a fresh trace has, counted by babeltrace2's ``sink.utils.counter``.

LTTng's packets don't carry their number of events, so somebody has to decode them: about 0.6 us per event and core.
Channels are counted side by side; what is not finished in time is reported as unknown.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from opline.capture.machine import processes
from opline.readers import chunks
from opline.readers.metadata import declares_nothing
from opline.scratch import scratch

_EVENTS = re.compile(r"^[^\S\n]*+(\d++) Event messages?$", re.MULTILINE)


def _channel_views(trace: Path, place: Path) -> list[tuple[str, str, Path]]:
    """(domain, channel, folder with only that channel's data streams) for every CTF trace below ``trace``; a folder in
    that folder for each chunk of a rotated session.
    """
    views: dict[tuple[tuple[str, ...], str], tuple[str, str, Path]] = {}
    for metadata in sorted(trace.rglob("metadata")):
        folder = metadata.parent
        if declares_nothing(folder):
            continue
        domain = "kernel" if "kernel" in folder.relative_to(trace).parts else "ust"
        streams = [p for p in folder.iterdir() if p.is_file() and p.name != "metadata" and p.stat().st_size]
        for channel in sorted({p.name.rpartition("_")[0] for p in streams}):
            whole = chunks.place_of(folder)[0], channel
            if whole not in views:
                views[whole] = (domain, channel, Path(tempfile.mkdtemp(dir=place)))
            view = Path(tempfile.mkdtemp(dir=views[whole][2]))
            for path in (metadata, folder / "index", *(p for p in streams if p.name.rpartition("_")[0] == channel)):
                if path.exists():
                    (view / path.name).symlink_to(path.resolve())
    return list(views.values())


def count(
    trace: Path, budget_s: float, cancelled: Callable[[], bool] = lambda: False
) -> dict[tuple[str, str], int | None] | None:
    """Events per (domain, channel); None where babeltrace2 failed, was cancelled or out of time, or is not installed.

    A channel that is not in the result has no events.
    """
    if shutil.which("babeltrace2") is None:
        return None
    totals: dict[tuple[str, str], int | None] = {}
    until = time.monotonic() + budget_s
    with scratch("count") as name:
        running = []
        for domain, channel, view in _channel_views(trace, Path(name)):
            # step=0: print once, at the end.
            argv = ["babeltrace2", str(view), "-c", "sink.utils.counter", "-p", "step=+0"]
            out = view.with_suffix(".txt").open("w+")
            child = processes.start(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.DEVNULL)
            running.append((domain, channel, child, out))
        for domain, channel, child, out in running:
            while child.poll() is None and time.monotonic() < until and not cancelled():
                time.sleep(0.02)
            events: int | None = None
            if child.poll() == 0:
                out.seek(0)
                found = _EVENTS.search(out.read())
                events = int(found.group(1)) if found else None
            else:
                processes.end_child(child, patience_s=0.5)
            out.close()
            before = totals.get((domain, channel), 0)
            totals[domain, channel] = None if before is None or events is None else before + events
    return totals
