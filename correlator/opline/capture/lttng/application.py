# SPDX-License-Identifier: MIT
"""What keeps LTTng-UST right in a program that forks, closes all descriptors, or has another clock.

A library of opline's, ``libopline-ust.so`` (tracepoints/ust_process.c), is preloaded into the command and all that it
starts, where events of applications are recorded. It does nothing in a program without LTTng-UST. Where it can't be
preloaded, ``warnings`` says what follows.
"""

from __future__ import annotations

import fnmatch
import os
import re
import shutil
import stat
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from opline.capture.directory.runtime import open_runtime, runtime_dir
from opline.capture.machine.clocks import clock_offset_ns

LIBRARY = Path(__file__).parent.with_name("libopline-ust.so")
_TRACER = re.compile(r"/liblttng-ust\.so[.0-9]*( \(deleted\))?$", re.MULTILINE)
_TOLD_OF_FORKS = re.compile(r"/(liblttng-ust-fork\.so[.0-9]*|libopline-ust\.so)( \(deleted\))?$", re.MULTILINE)
_OF_LIBRARIES = "lttng_ust_statedump:bin_info"
_HINT = "if it forks without exec, its children's events carry its own ids, and their ops have no block requests"


def environment(env: Mapping[str, str], events: Collection[str]) -> dict[str, str]:
    """The environment ``env`` with the library in it: preloaded first, and as the clock of other time namespaces, where
    it is built. Unless ``events`` (globs) ask for it, LTTng-UST does not tell where libraries lie in memory: it would
    read their files, in the program's threads, with several hundred calls that would count as the program's.
    """
    told = any(fnmatch.fnmatchcase(_OF_LIBRARIES, glob) for glob in events)
    env = dict(env) if told else {"LTTNG_UST_WITHOUT_BADDR_STATEDUMP": "1", **env}  # lttng-ust(3)
    library = for_all_users(LIBRARY)
    if library is None:
        return env
    clock = {"LTTNG_UST_CLOCK_PLUGIN": str(library), "OPLINE_CLOCK_OFFSET_NS": str(clock_offset_ns())}
    return preloaded([library], {**clock, **env})


def preloaded(libraries: Iterable[Path], env: Mapping[str, str]) -> dict[str, str]:
    """The environment ``env`` with the libraries preloaded, before what it preloads already."""
    before = env.get("LD_PRELOAD", "")
    value = ":".join([*map(str, libraries), *([before] if before else [])])
    return {**env, "LD_PRELOAD": value} if value else dict(env)


def for_all_users(library: Path) -> Path | None:
    """A path at which every user can read it: programs may change their user, and the dynamic linker complains of what
    it can't read. Below a folder that others may not enter it is copied into the runtime directory, where it stays:
    what the command leaves running may start programs later. None where there is none, or ``LD_PRELOAD`` can't name it.
    """
    if not library.is_file():
        return None
    entered = all(folder.stat().st_mode & stat.S_IXOTH for folder in library.parents)
    if not entered or not library.stat().st_mode & stat.S_IROTH or set(str(library)) & set(" :"):
        runtime = open_runtime(make=True)
        if runtime is None:
            return None
        runtime.close()
        copy = runtime_dir() / library.name
        beside = copy.with_name(f"{copy.name}.{os.getpid()}")
        shutil.copyfile(library, beside)
        beside.chmod(0o755)
        beside.replace(copy)
        return copy
    return library


def warnings(events: Collection[str], program: str | None, pids: Iterable[int]) -> list[str]:
    """What is said before it begins: of a command whose privileges keep the library out (ld.so(8), secure-execution
    mode), and of processes that run already with LTTng-UST, without what tells LTTng-UST of forks, or with another
    clock. ``events``: of applications that are recorded; without any nothing is said.
    """
    found: list[str] = []
    if not events:
        return found
    if program is not None and _gains_privileges(Path(program)):
        found.append(f"{program} is set-user-ID or set-group-ID: nothing can be preloaded into it; {_HINT}")
    for pid in pids:
        try:
            maps = Path(f"/proc/{pid}/maps").read_text()
            name = Path(f"/proc/{pid}/comm").read_text().strip()
        except OSError:
            continue
        if not _TRACER.search(maps):
            continue
        if LIBRARY.name not in maps and _has_another_clock(pid):
            found.append(
                f"process {pid} ({name}) runs in another time namespace: the times of its events are wrong here, and "
                "its ops have no block requests; start it with opline record"
            )
        if not _TOLD_OF_FORKS.search(maps):
            found.append(
                f"process {pid} ({name}) runs without liblttng-ust-fork: {_HINT}; start it with opline record, or with "
                "LD_PRELOAD=liblttng-ust-fork.so.1"
            )
    return found


def _has_another_clock(pid: int) -> bool:
    """Whether CLOCK_MONOTONIC of a process and of this one differ: time_namespaces(7)."""
    process = Path(f"/proc/{pid}")
    try:
        if (process / "ns/time").readlink() == Path("/proc/self/ns/time").readlink():
            return False
    except OSError:
        return False
    return clock_offset_ns(process / "timens_offsets") != clock_offset_ns()


def _gains_privileges(program: Path) -> bool:
    try:
        about = program.stat()
    except OSError:
        return False
    return bool(
        (about.st_mode & stat.S_ISUID and about.st_uid != os.getuid())
        or (about.st_mode & stat.S_ISGID and about.st_gid != os.getgid())
    )
