# SPDX-License-Identifier: MIT
"""Declared probes in a recording: which files their programs' names mean here, and their collector as a child process.

A name with a slash is a path. One that ends in ``.so`` or has ``.so.`` in it is a library, of the processes that are
attached to or of the system. Any other is a program: one that the user names, else what runs under that name, in
containers too (by ``/proc/PID/root``), else what the shell would find.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from opline.capture.directory.state import State
from opline.capture.machine import processes
from opline.capture.probes.declared import to_json
from opline.capture.sources import blocksource
from opline.capture.sources.childsource import COLLECTOR, ChildSource
from opline.errors import OplineError
from opline.folder import OURS, Folder
from opline.interpreter import python
from opline.model import Probe

FOLDER_NAME = "probes"  # below the trace's
_FILE_NAME = "probes.json"
_LIBRARIES = ("/lib", "/usr/lib", "/lib64", "/usr/lib64", "/usr/local/lib")


def files_of(name: str, given: Iterable[Path] = (), pids: Iterable[int] = ()) -> list[Path]:
    """The files that a program's name stands for, each once; empty if there is none. ``given``: what the user said."""
    if "/" in name:
        return [Path(name)] if Path(name).is_file() else []
    found = [path for path in given if path.name == name]
    if not found and (name.endswith(".so") or ".so." in name):
        found = [path for pid in pids for path in _mapped(pid, name)] or _libraries(name)
    elif not found:
        running = [
            path
            for pid in dict.fromkeys([*pids, *processes.named(name)])
            if (path := program_of(pid)) and path.name == name
        ]
        which = shutil.which(name)
        found = running or ([Path(which)] if which else [])
    once: dict[tuple[int, int], Path] = {}
    for path in found:
        try:
            about = path.stat()
        except OSError:
            continue
        once.setdefault((about.st_dev, about.st_ino), path.resolve() if "/root/" not in str(path) else path)
    return list(once.values())


def _seen_from(pid: int, path: str) -> Path:
    """A path of another process' file system: as it is where it is the same file, else through its root."""
    through = Path(f"/proc/{pid}/root{path}")
    try:
        return Path(path) if Path(path).samefile(through) else through
    except OSError:
        return through


def program_of(pid: int) -> Path | None:
    """The file of the program that a process runs, in containers too; None if it has none, or is gone."""
    try:
        path = str(Path(f"/proc/{pid}/exe").readlink()).removesuffix(" (deleted)")
    except OSError:
        return None
    return _seen_from(pid, path)


def _mapped(pid: int, name: str) -> list[Path]:
    try:
        lines = Path(f"/proc/{pid}/maps").read_text(errors="replace").splitlines()
    except OSError:
        return []
    paths = dict.fromkeys(fields[5] for line in lines if len(fields := line.split(maxsplit=5)) == 6)
    return [_seen_from(pid, path) for path in paths if Path(path).name == name or _alias(pid, path, name)]


def _alias(pid: int, path: str, name: str) -> bool:
    """Is that library the file behind the link of this name (libpq.so.5.15 behind libpq.so.5)?"""
    if not Path(path).name.startswith(name.partition(".so")[0] + ".so"):
        return False
    link = Path(f"/proc/{pid}/root{path}").with_name(name)
    try:
        return link.samefile(f"/proc/{pid}/root{path}")
    except OSError:
        return False


def _libraries(name: str) -> list[Path]:
    folders = [Path(f) for f in (*os.environ.get("LD_LIBRARY_PATH", "").split(":"), *_LIBRARIES) if f]
    folders += [g for f in ("/lib", "/usr/lib") for g in sorted(Path(f).glob("*-linux-gnu*"))]
    return next(([path] for folder in folders if (path := folder / name).is_file()), [])


class ProbeSource(ChildSource):
    """The collector of one recording's declared probes."""

    def __init__(
        self,
        probes: Sequence[Probe],
        given: Sequence[Path] = (),
        pids: Sequence[int] = (),
        budget: float | None = None,
        rotated: bool = False,
    ) -> None:
        """``given``: files of programs that the user named; ``pids``: processes that are attached to; ``budget``: what
        hits may cost, a share of a processor's time; ``rotated``: in chunks. Raises OplineError if
        probes can't be had here.
        """
        super().__init__("probes", "the collector of the model's probes")
        why = blocksource.lacking()
        if why is not None:
            raise OplineError(f"the model's probes: {why}")
        self._probes = tuple(probes)
        # what is attached to is at work already: too hot a probe is gone before the recording begins
        self._more = [] if budget is None else ["--budget", str(budget), *(["--trial"] if pids else [])]
        self._more += ["--rotated"] if rotated else []
        names = dict.fromkeys(probe.program for probe in probes if probe.program)
        self._programs = {name: files_of(name, given, pids) for name in names}

    def start(self, trace: Path, state: State, mask: Iterable[int]) -> None:
        """Start it and wait until the probes are placed. Raises OplineError with its own words if it cannot."""
        with Folder(state.folder, follow=False) as folder:
            folder.write(_FILE_NAME, to_json(self._probes, self._programs), OURS)
        argv = python("-m", COLLECTOR, "--probes", str(state.folder / _FILE_NAME))
        self._start([*argv, "--trace", str(trace / FOLDER_NAME), *self._more], None, state, mask)
        self._await_ready()

    def absent(self) -> list[tuple[int, str, str]]:
        """Probes that are not placed, or not in every file of their program: line in the model, event, why."""
        return [(int(line), str(event), str(why)) for line, event, why in self._ready.get("absent", [])]

    def stepped(self) -> list[str]:
        """Events whose hits are dear: the kernel single-steps the instruction at their place."""
        return [str(event) for event in self._ready.get("stepped", [])]
