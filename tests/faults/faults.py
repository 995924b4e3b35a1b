# SPDX-License-Identifier: MIT
"""Recordings that are broken on purpose, at random: which part is killed and when, which disk fills up or vanishes.

A kill comes at a random moment of the start, the run or the end of the recording. The traced program keeps a count of
the truth: a line per op in a file of its own. Each time the test counts

- what was left: processes, folders, files; before anything cleans up, unless the recorder itself was killed;
- whether the trace can be read as far as it had been flushed (each number once, no gap before the kill);
- whether what is missing was said: an op of the program's own file that the trace lacks needs an exit status that is
  not 0, a warning, and ``losses --max-loss 0`` with status 3. A recording of which nothing is missing may say nothing.

Started by ``tests/faults/run``.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from opline.capture.directory import leftovers

ROOT = Path(__file__).resolve().parent.parent.parent
RUNTIME = Path("/tmp/rt")
WORK = Path("/tmp/work")
LOG = Path("/tmp/ticks")  # of the ticker: a line per event
OPLINE = [sys.executable, "-P", "-m", "opline_analyses"]
PARTS = ("consumerd", "sessiond", "collector", "openfiles", "application", "recorder", "everything")
MOMENTS = ("start", "run", "end")
DISKS = ("filled", "filled and freed", "removed")
COUNT, PAUSE_US = 10_000, 200
FLUSHED_S = 1.5  # what is older than this at the kill must be there; docs/capture.md
MODEL = """
[keys]
op = "n"
[points]
tick = { event = "opltest:tick", role = "begin", key = "op", class = "tick" }
tock = { event = "opltest:tock", role = "end", key = "op" }
"""


@dataclass(slots=True)
class Trial:
    """What one broken recording came to: complaints by kind."""

    what: str
    after_s: float
    left: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    unsaid: list[str] = field(default_factory=list)
    seen: int = 0
    status: int | None = None
    hurt: bool = False  # a source was killed while the command ran: that is to be said, also where no event is missing

    def line(self) -> str:
        """As it is printed."""
        bad = [f"{kind}: {'; '.join(lines)}" for kind, lines in self.complaints().items() if lines]
        verdict = " | ".join(bad) or "well"
        return f"{self.what} after {self.after_s:.2f} s: status {self.status}, {self.seen} events; {verdict}"

    def complaints(self) -> dict[str, list[str]]:
        """By kind."""
        return {"left": self.left, "unreadable": self.unreadable, "unsaid": self.unsaid}


def stat_of(pid: int) -> tuple[str, int, str] | None:
    """Name, parent and state of a process."""
    try:
        name, _, rest = Path(f"/proc/{pid}/stat").read_text().partition("(")[2].rpartition(")")
    except OSError:
        return None
    state, parent = rest.split()[:2]
    return name, int(parent), state


def ours() -> dict[int, str]:
    """Processes that are below our mounts: everything that a recording has started, by PID."""
    mine = Path("/proc/self/ns/mnt").readlink()
    found = {}
    for path in Path("/proc").glob("[0-9]*"):
        pid = int(path.name)
        with contextlib.suppress(OSError):
            command = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            about = stat_of(pid)
            here = (path / "ns" / "mnt").readlink() == mine or str(RUNTIME) in command
            if about is not None and about[2] != "Z" and here and pid != os.getpid():
                found[pid] = f"{about[0]} {pid} (state {about[2]}, child of {about[1]}, session {os.getsid(pid)})"
    return found


def children(recorder: int) -> dict[str, int]:
    """PIDs of the parts of a recording."""
    found = {"recorder": recorder}
    states = list(RUNTIME.glob(f"{recorder}-*/state.json"))
    for role, (pid, *_) in json.loads(states[0].read_text())["processes"].items() if states else ():
        found[role] = pid
    for path in Path("/proc").glob("[0-9]*"):
        about = stat_of(int(path.name))
        if about is not None and about[0] == "lttng-consumerd" and about[1] == found.get("sessiond"):
            found["consumerd"] = int(path.name)
        if about is not None and about[0] == "ticker":
            found["application"] = int(path.name)
    return found


def ticks(trace: Path) -> list[tuple[int, int]]:
    """When the ticker ticked, in ns of the monotonic clock, and what it counted, as opline reads it.

    Raises ValueError: the trace can't be read.
    """
    done = subprocess.run([*OPLINE, "events", str(trace)], capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        raise ValueError(done.stderr.strip())
    found = re.finditer(r"^(\d+) .*opltest:tick.*?\bn = (\d+)", done.stdout, re.MULTILINE)
    return [(int(tick[1]), int(tick[2])) for tick in found]


def truth() -> int:
    """How many events the program has made, as it says itself."""
    return LOG.read_text().count("\n") if LOG.is_file() else 0


def check_trace(trial: Trial, run: Path, begun: bool, ran_s: float, fault_ns: int) -> None:
    """Each number once, none missing before the last one that came before ``fault_ns`` (monotonic).

    Of what came after it some may be there: the buffers of a killed daemon are saved one CPU after the other.
    """
    try:
        trace = ticks(run / "trace")
    except (ValueError, subprocess.TimeoutExpired) as error:
        if begun and ran_s > FLUSHED_S:
            trial.unreadable.append(str(error))
        return
    seen = [number for _at_ns, number in trace]
    before = [number for at_ns, number in trace if at_ns < fault_ns]
    trial.seen = len(seen)
    if len(set(seen)) != len(seen):
        trial.unreadable.append(f"{len(seen) - len(set(seen))} events are there twice")
    if begun and ran_s > FLUSHED_S and not seen:
        trial.unreadable.append("no events")
    missing = max(before, default=-1) + 1 - len(set(before))
    if missing:
        trial.unreadable.append(f"{missing} events are missing before the last one before the fault")


def check_said(trial: Trial, run: Path, model: Path, stderr: str, recorder_died: bool) -> None:
    """What is missing of the truth is said by the recorder (unless it was killed), and by the ledger."""
    if "Traceback" in stderr or "internal error" in stderr:
        trial.unsaid.append("traceback")
    if not (run / "recording.json").is_file():
        if trial.status == 0:
            trial.unsaid.append("status 0 without a recording")
        return
    note = json.loads((run / "recording.json").read_text())
    done = subprocess.run(
        [*OPLINE, "losses", str(run), "--model", str(model), "--max-loss", "0"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    told = done.returncode == 3 or (done.returncode == 1 and not trial.seen)  # there is nothing to read
    missing = max(0, truth() - trial.seen)  # the last event may be in the trace and not yet in the file
    blocks = [p for p in note["promises"] if p["source"] == "bpf"]
    if missing or trial.hurt:
        what = f"{missing} of {truth()} events are missing" if missing else f"the {trial.what} died"
        if not recorder_died and trial.status == 0:
            trial.unsaid.append(f"{what}: exit status 0")
        if not recorder_died and note["state"] == "complete":
            trial.unsaid.append(f"{what}: complete")
        if not recorder_died and "warning: the recording is not whole" not in stderr:
            trial.unsaid.append(f"{what}: no warning")
        if not told:
            trial.unsaid.append(f"{what}: losses --max-loss 0: status {done.returncode}: {done.stderr.strip()[-200:]}")
    elif note["state"] == "complete" and not all(p["kept"] for p in blocks):
        trial.unsaid.append("complete, with a promise that was not kept")


def remnants() -> list[str]:
    """What is there of recordings that have ended: processes, folders, files."""
    until = time.monotonic() + 5
    while (alive := ours()) and time.monotonic() < until:
        time.sleep(0.1)
    folders = [*RUNTIME.glob("*"), *Path("/dev/shm").glob("opline-*"), *Path("/tmp").glob("opline-*")]
    folders += [path for name in ("*.part", ".room", ".lock") for path in WORK.rglob(name)]
    return [*alive.values(), *map(str, folders)]


def check_left(trial: Trial, recorder_died: bool) -> None:
    """A recorder that was not killed leaves nothing; after one that was, cleaning up leaves nothing."""
    before = remnants()  # waits for those that end with the recorder: a child that it was starting has its locks
    if not recorder_died:
        trial.left += [f"before cleaning up: {what}" for what in before]
    leftovers.sweep()
    trial.left += remnants()
    for pid in ours():
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    for path in [*RUNTIME.glob("*"), *Path("/dev/shm").glob("opline-*"), *Path("/tmp").glob("opline-*")]:
        shutil.rmtree(path, ignore_errors=True)


def start(run: Path, ticker: Path, *options: str) -> subprocess.Popen[str]:
    """A recording of the ticker, with block events where they can be had."""
    argv = [*OPLINE, "record", "-o", str(run), "--events", "opltest:*", "--sessiond", "private", *options]
    return subprocess.Popen(
        [*argv, "--", str(ticker), str(COUNT), str(PAUSE_US)],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, start_new_session=True,
    )  # fmt: skip


def await_begin(run: Path, process: subprocess.Popen[str]) -> bool:
    """The traced program says that it has begun."""
    until = time.monotonic() + 60
    while time.monotonic() < until and process.poll() is None:
        with contextlib.suppress(OSError):
            if "begin" in (run / "stderr.txt").read_text():
                return True
        time.sleep(0.02)
    return False


def finish(process: subprocess.Popen[str], trial: Trial) -> str:
    """Wait for the recorder; what it said."""
    try:
        _, said = process.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        process.kill()
        _, said = process.communicate()
        trial.left.append("the recorder did not end within 120 s")
    trial.status = process.returncode
    return said


def await_moment(moment: str, chance: random.Random, run: Path, process: subprocess.Popen[str]) -> tuple[bool, float]:
    """Wait for a random moment of the start, the run or the end; whether the program has begun, and for how long it has
    run. The start: from the first trace of the recorder on. The end: from the program's own last word on.
    """
    if moment == "start":
        while not list(RUNTIME.glob("*/state.json")) and process.poll() is None:
            time.sleep(0.01)
        after_s = chance.uniform(0, 2.0)
        time.sleep(after_s)
        return False, after_s
    begun = await_begin(run, process)
    if moment == "run":
        after_s = chance.uniform(0, 3.0)
        time.sleep(after_s)
        return begun, after_s
    said = run / "stderr.txt"
    while process.poll() is None and not (said.is_file() and "done" in said.read_text()):
        time.sleep(0.002)
    time.sleep(chance.uniform(0, 0.5))
    return begun, COUNT * PAUSE_US / 1e6


def kill(part: str, moment: str, chance: random.Random, ticker: Path, model: Path) -> Trial:
    """Kill a part at a random moment."""
    run = WORK / "run"
    LOG.unlink(missing_ok=True)
    needs_block = part in ("collector", "openfiles", "everything")
    process = start(run, ticker, *(() if needs_block else ("--no-block",)), "--subbuf-size", "64K")
    begun, after_s = await_moment(moment, chance, run, process)
    trial = Trial(part, after_s)
    parts = children(process.pid)
    victims = list(parts.values()) if part == "everything" else [parts[part]] if part in parts else []
    if part == "everything" and process.poll() is None:
        os.kill(process.pid, signal.SIGSTOP)  # it shall not see the others go
    how = signal.SIGTERM if part in ("collector", "openfiles") and chance.random() < 0.5 else signal.SIGKILL
    fault_ns = time.monotonic_ns()
    for pid in victims:
        with contextlib.suppress(OSError):
            os.kill(pid, how)
    said = finish(process, trial)
    recorder_died = part in ("recorder", "everything") and process.returncode == -signal.SIGKILL
    check_left(trial, recorder_died)
    if begun:
        check_trace(trial, run, begun, after_s, fault_ns)
    elif (run / "trace").is_dir() and (run / "recording.json").is_file():
        with contextlib.suppress(ValueError):
            trial.seen = len(ticks(run / "trace"))
    ended = json.loads((run / "recording.json").read_text()) if (run / "recording.json").is_file() else {}
    end_ns = (ended.get("command") or {}).get("end_monotonic_ns")
    # a source that dies while the command runs has a gap, whatever the program did
    trial.hurt = bool(victims and ended and part in ("collector", "openfiles") and end_ns and fault_ns < end_ns)
    check_said(trial, run, model, said, recorder_died)
    trial.what = f"{part} ({moment}, {how.name if victims else 'not there'})"
    return trial


def fill(disk: Path) -> None:
    """Nothing is free any more, though somebody else writes meanwhile."""
    with (disk / "ballast").open("wb") as ballast:
        while (free := os.statvfs(disk)).f_bavail:
            with contextlib.suppress(OSError):
                os.posix_fallocate(ballast.fileno(), ballast.tell(), free.f_bavail * free.f_frsize)
                ballast.seek(0, os.SEEK_END)


def break_disk(how: str, _moment: str, chance: random.Random, ticker: Path, model: Path) -> Trial:
    """Fill the disk or remove the directory at a random time."""
    trial = Trial(how, chance.uniform(0, 3))
    disk = WORK / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=40m", "opline-faults", disk], check=True)
    run = disk / "run"
    process = start(run, ticker, "--no-block", "--subbuf-size", "64K", "--subbufs", "4")
    LOG.unlink(missing_ok=True)
    begun = await_begin(run, process)
    time.sleep(trial.after_s)
    if how == "removed":
        shutil.rmtree(run)
    else:
        fill(disk)
        if how == "filled and freed":
            time.sleep(chance.uniform(0, 1))
            (disk / "ballast").unlink()
    said = finish(process, trial)
    check_left(trial, recorder_died=False)
    if how == "removed":
        if trial.status != 3 or "is gone" not in said:
            trial.unsaid.append(f"status {trial.status}: {said[-200:]}")
    else:
        check_trace(trial, run, begun, trial.after_s, 0)  # of what was not written yet any may be missing
        check_said(trial, run, model, said, recorder_died=False)
    subprocess.run(["umount", "-l", disk], check=True)
    return trial


def main() -> int:
    """All of it; the exit status is 1 if anything was left, unreadable or unsaid."""
    parser = argparse.ArgumentParser(prog="tests/faults/run", description=__doc__.split("\n\n")[0] if __doc__ else "")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--disks", type=int, default=12)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--out", type=Path, help="a line per trial goes there, too")
    options = parser.parse_args()
    os.environ["OPLINE_RUNTIME_DIR"] = str(RUNTIME)
    chance = random.Random(options.seed)
    print(f"seed {options.seed}", flush=True)
    source = ROOT / "tests" / "ust_app"
    ticker, model = Path("/tmp/ticker"), Path("/tmp/ticks.toml")
    argv = ["gcc", "-O1", f"-I{source}", "-o", str(ticker), f"{source}/ticker.c", "-llttng-ust", "-ldl"]
    subprocess.run(argv, check=True)
    model.write_text(MODEL)
    os.environ["TICKER_LOG"] = str(LOG)
    which = itertools.islice(itertools.cycle(itertools.product(MOMENTS, PARTS)), options.kills)
    trials: list[tuple[Callable[[str, str, random.Random, Path, Path], Trial], str, str]] = [
        (kill, part, moment) for moment, part in which
    ]
    trials += [(break_disk, how, "run") for how in itertools.islice(itertools.cycle(DISKS), options.disks)]
    counts: Counter[str] = Counter()
    for number, (work, what, moment) in enumerate(trials):
        WORK.mkdir()
        trial = work(what, moment, chance, ticker, model)
        shutil.rmtree(WORK)
        counts += Counter({kind: bool(lines) for kind, lines in trial.complaints().items()})
        print(f"{number + 1}/{len(trials)} {trial.line()}", flush=True)
        if options.out is not None:
            with options.out.open("a") as out:
                out.write(trial.line() + "\n")
    print(f"{len(trials)} recordings: " + ", ".join(f"{counts[kind]} {kind}" for kind in Trial("", 0).complaints()))
    return 1 if counts.total() else 0


if __name__ == "__main__":
    sys.exit(main())
