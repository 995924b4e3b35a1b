# SPDX-License-Identifier: MIT
"""Damages every kind of file that commands read, one file at a time, and counts what the commands make of it.

    python -m tests.faults.files [--seed N] [--mutants N] [--only KIND] [--keep FOLDER]

A mutant is a run, a recording or a client's report with one file damaged: bytes (bits, cuts, blanks, repeats, junk), or
a value of a JSON document (another type, another number, a key that is gone). A command that reads the file runs in a
process of its own. It may give an output, or say why not and leave with a documented exit status. Faults are internal
errors, tracebacks, signals, an exit status without a word, more than --seconds of CPU time, more than 512 MiB.
Exit status 1 if there is a fault.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import signal
import sys
import tarfile
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opline.correlation import correlate
from opline.model import load_model
from opline.store.schema import TABLES
from opline_analyses.cli import main as opline

TESTS = Path(__file__).resolve().parent.parent
MODEL = TESTS / "models" / "lab.toml"
TRACE = TESTS / "traces" / "app-sync-2m-nvme-split.tar.xz"
EXIT_STATUSES = (0, 1, 2, 3)
MOST_BYTES = 512 << 20

Damage = Callable[[bytes, random.Random], bytes]


# --- what is damaged --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Kind:
    """Files of one kind in the folder of sound ones, and the commands that read them ({} is the folder)."""

    name: str
    files: tuple[str, ...]
    json: bool
    commands: tuple[tuple[str, ...], ...]


RUN_COMMANDS = (
    ("stages", "{}/run"),
    ("losses", "{}/run"),
    ("losses", "{}/run", "--verify"),
    ("csv", "{}/run"),
    ("ops", "{}/run", "--limit", "5"),
    ("requests", "{}/run"),
    ("coverage", "{}/run", "--client", "{}/fio.json"),
)
OLD_COMMANDS = (("stages", "{}/old"), ("csv", "{}/old"), ("losses", "{}/old"))
OF_TRACE = ("stages", "{}/trace", "--model", str(MODEL))
COVERAGE = ("coverage", "{}/run", "--client")
REC_COMMANDS = (("stages", "{}/rec"), ("coverage", "{}/rec"), ("stages", "{}/rec/trace", "--model", str(MODEL)))
WITH_LOG = (*COVERAGE, "{}/fio.json", "--client-log")
LINT = ("model", "lint", "{}/model.toml")
TABLE_FILES = tuple(f"{t.name}.parquet" for t in TABLES)
KINDS = (
    Kind("manifest.json", ("run/manifest.json",), True, RUN_COMMANDS),
    Kind("parquet", tuple(f"run/{name}" for name in TABLE_FILES), False, RUN_COMMANDS),
    Kind("parquet, no checksums", tuple(f"old/{name}" for name in TABLE_FILES), False, OLD_COMMANDS),
    Kind("recording.json", ("rec/recording.json",), True, REC_COMMANDS),
    Kind("extents.json", ("extents.json",), True, ((*OF_TRACE, "--extents", "{}/extents.json"),)),
    Kind("filefrag", ("filefrag",), False, ((*OF_TRACE, "--extents", "{}/filefrag"),)),
    Kind("client log", ("client.csv",), False, ((*WITH_LOG, "{}/client.csv"),)),
    Kind("fio log", ("x_lat.1.log", "x_clat.1.log"), False, ((*WITH_LOG, "{}/x_lat.1.log"),)),
    Kind("fio JSON", ("fio.json",), True, ((*COVERAGE, "{}/fio.json"),)),
    Kind("demo JSON", ("demo.json",), True, ((*COVERAGE, "{}/demo.json"),)),
    Kind("rados text", ("rados.txt",), False, ((*COVERAGE, "{}/rados.txt"),)),
    Kind("model", ("model.toml",), False, (LINT, (*OF_TRACE[:-1], "{}/model.toml"))),
)


def prepare(folder: Path) -> None:
    """The sound files."""
    with tarfile.open(TRACE) as tar:
        tar.extractall(folder / "trace")
    correlate(folder / "trace", load_model(str(MODEL)), folder / "run", progress=False)
    shutil.copytree(folder / "run", folder / "old")
    manifest = json.loads((folder / "old" / "manifest.json").read_text())
    del manifest["checksums"]
    (folder / "old" / "manifest.json").write_text(json.dumps(manifest))
    shutil.copytree(folder / "trace", folder / "rec" / "trace")
    recording = {
        "schema": "opline-recording",
        "schema_version": 1,
        "state": "complete",
        "model": {"name": "lab", "argument": str(MODEL), "sha256": ""},
        "command": {"argv": ["true", "--json", "x.json", "--log", "log.csv"], "cwd": "/", "begin_monotonic_ns": 1},
        "begin": {"wall": "2026-01-01T00:00:00+00:00", "monotonic_ns": 1},
        "end": {"wall": "2026-01-01T00:01:00+00:00", "monotonic_ns": 60_000_000_001},
        "devices": [{"dev": 265289728, "name": "nvme0n1"}],
        "gaps": [{"loss": "collector_died", "why": "the collector died", "from_ns": 2**61, "to_ns": None, "count": 1}],
        "tracing_ended": None,
        "write_failed": False,
        "block_source": "lttng",
        "collector": None,
    }  # fmt: skip
    (folder / "rec" / "recording.json").write_text(json.dumps(recording))
    extent = {"logical_sector": 0, "physical_sector": 671744, "sectors": 114688, "flags": ["last"]}
    file = {"path": "/mnt/data", "dev": "8:1", "inode": 12, "size_bytes": 67108864, "disk": "8:0", "start_sector": 2048}
    maps = {"version": 1, "files": [{**file, "changed": False, "extents": [extent]}]}
    (folder / "extents.json").write_text(json.dumps(maps))
    (folder / "filefrag").write_bytes((TESTS / "traces" / "fie-direct.filefrag").read_bytes())
    _client_files(folder)
    (folder / "model.toml").write_text(MODEL.read_text())


def _client_files(folder: Path) -> None:
    lines = [f"{n * 1000},{n * 1000 + 900},write,object.{n}" for n in range(1, 200)]
    (folder / "client.csv").write_text("\n".join(["begin_ns,end_ns,class,object", *lines]) + "\n")
    for kind, value in (("lat", 800), ("clat", 700)):
        rows = [f"{n}, {value}, 1, 4096, {n * 4096}, 0, {n * 1000}" for n in range(200)]
        (folder / f"x_{kind}.1.log").write_text("\n".join(rows) + "\n")
    lat = {"N": 199, "mean": 900.5, "min": 1, "max": 2000}
    write = {"lat_ns": lat, "clat_ns": lat, "runtime": 1000, "io_bytes": 815104}
    job = {"jobname": "j", "job options": {"iodepth": "4"}, "read": {}, "write": write, "trim": {}}
    (folder / "fio.json").write_text(json.dumps({"fio version": "fio-3.33", "jobs": [job]}))
    ours = {"count": 199, "mean": 900.5, "min": 1, "max": 2000}
    demo = {"tool": "demo-bench", "latency_ns": ours, "write_latency_ns": ours, "read_latency_ns": {"count": 0}}
    times = {"begin_ns": 1, "end_ns": 1_000_000_001, "op_size_bytes": 4096, "queue_depth": 4}
    (folder / "demo.json").write_text(json.dumps(demo | times))
    (folder / "rados.txt").write_bytes((TESTS / "traces" / "ctf-mem-qd1.bench.txt").read_bytes())


# --- how --------------------------------------------------------------------------------------------------------------


def bits(data: bytes, chance: random.Random) -> bytes:
    """Flip one to twenty."""
    out = bytearray(data)
    for _ in range(chance.choice((1, 1, 3, 20))):
        out[chance.randrange(len(out))] ^= 1 << chance.randrange(8)
    return bytes(out)


def cut(data: bytes, chance: random.Random) -> bytes:
    """The rest is gone."""
    return data[: chance.randrange(len(data))]


def blank(data: bytes, chance: random.Random) -> bytes:
    """A part is zeros."""
    at = chance.randrange(len(data))
    return data[:at] + bytes(len(data[at : at + 999])) + data[at + 999 :]


def repeat(data: bytes, chance: random.Random) -> bytes:
    """A part is there twice."""
    at, size = chance.randrange(len(data)), chance.randint(1, 500)
    return data[: at + size] + data[at:]


def junk(data: bytes, chance: random.Random) -> bytes:
    """A part is text that is none in UTF-8, or numbers beyond all."""
    at = chance.randrange(len(data))
    words = (b"\xff\xfe\x80", b"abc", b"-1", b"9" * 30, b"1e999", b"\0", b",,,", b"NaN", "é".encode("latin-1"))
    return data[:at] + chance.choice(words) + data[at + chance.randrange(8) :]


VALUES: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    1.5,
    2**63,
    2**70,
    "",
    "text",
    "\0",
    "\ud800",
    [],
    [1],
    {},
    {"a": 1},
    [[[]]],
)


def value(data: bytes, chance: random.Random) -> bytes:
    """A value of a JSON document is another one, or gone."""
    document = json.loads(data)
    places: list[tuple[Any, Any]] = []

    def walk(node: Any) -> None:
        items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
        for key, inner in items:
            places.append((node, key))
            walk(inner)

    walk(document)
    if chance.random() < 0.03:
        return json.dumps(chance.choice(VALUES)).encode()
    if chance.random() < 0.02:
        return b"[" * 100_000
    for _ in range(chance.choice((1, 1, 1, 3))):
        node, key = chance.choice(places)
        if chance.random() < 0.2 and isinstance(node, dict):
            node.pop(key, None)
        elif isinstance(node, dict) or key < len(node):
            node[key] = chance.choice(VALUES)
    return json.dumps(document).encode()


BYTES: tuple[Damage, ...] = (bits, cut, blank, repeat, junk)


# --- what comes of it -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of one command: its exit status, and what is wrong with what it did; None: nothing."""

    status: int
    fault: str | None
    said: str


def judged(command: Sequence[str], seconds: float) -> Outcome:
    """Run the command in a process of its own."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        began = time.monotonic()
        child = os.fork()
        if child == 0:
            signal.alarm(int(seconds * 4))
            os.dup2(out.fileno(), 1)
            os.dup2(err.fileno(), 2)
            sys.stdout = os.fdopen(1, "w", closefd=False)
            sys.stderr = os.fdopen(2, "w", closefd=False)
            try:
                status = opline(list(command))
                sys.stdout.flush()
                sys.stderr.flush()
            except BaseException as error:
                os.write(2, f"Traceback {error!r}".encode())
                status = 99
            os._exit(status)
        _, raw, used = os.wait4(child, 0)
        took = time.monotonic() - began
        err.seek(0)
        said = err.read().decode(errors="replace")
    status = os.waitstatus_to_exitcode(raw)
    slow = took if used.ru_utime + used.ru_stime > seconds else 0.0
    return Outcome(status, _fault(status, said, slow, used), said.strip()[-300:])


def _fault(status: int, said: str, took: float, used: resource.struct_rusage) -> str | None:
    if status < 0:
        return f"signal {-status}"
    if "internal error" in said or "Traceback" in said:
        return said.strip().splitlines()[-1][:300]
    if status not in EXIT_STATUSES:
        return f"exit status {status}"
    if took:
        return f"{took:.1f} s"
    if used.ru_maxrss * 1024 > MOST_BYTES:
        return f"{used.ru_maxrss >> 10} MiB"
    if status in (1, 2) and not said.strip():
        return f"exit status {status} without a word"
    return None


@contextmanager
def damaged(file: Path, content: bytes) -> Iterator[None]:
    """The file has this content, inside."""
    sound = file.read_bytes()
    file.write_bytes(content)
    try:
        yield
    finally:
        file.write_bytes(sound)


def unmade(folder: Path) -> None:
    """The recording is no run any more."""
    for file in [folder / "rec" / "manifest.json", *(folder / "rec").glob("*.parquet")]:
        file.unlink(missing_ok=True)


def mutants(kind: Kind, folder: Path, count: int, chance: random.Random) -> Iterator[tuple[Path, str, bytes]]:
    """(file, how, content) of so many."""
    for _ in range(count):
        file = folder / chance.choice(kind.files)
        ways: tuple[Damage, ...] = (value, value, value, *BYTES) if kind.json else BYTES
        way = chance.choice(ways)
        yield file, way.__name__, way(file.read_bytes(), chance)


def run(seed: int, count: int, only: str | None = None, seconds: float = 5.0, keep: Path | None = None) -> Counter[str]:
    """``count`` mutants of each kind; prints a line per kind; gives the faults with how often they were seen."""
    faults: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="opline-faults-") as name:
        folder = Path(name)
        prepare(folder)
        for kind in KINDS:
            if only and only not in kind.name:
                continue
            for words in kind.commands:
                outcome = judged([word.format(folder) for word in words], seconds)
                if outcome.status != 0:
                    faults[f"{kind.name}, sound, opline {' '.join(words)}: {outcome.said}"] += 1
            unmade(folder)
            chance = random.Random(f"{seed} {kind.name}")
            statuses: Counter[int] = Counter()
            before = faults.total()
            for number, (file, how, content) in enumerate(mutants(kind, folder, count, chance)):
                with damaged(file, content):
                    command = [word.format(folder) for word in chance.choice(kind.commands)]
                    outcome = judged(command, seconds)
                    unmade(folder)
                statuses[outcome.status] += 1
                if outcome.fault:
                    faults[f"{kind.name}, {how}, opline {command[0]}: {outcome.fault}"] += 1
                    if keep:
                        keep.mkdir(parents=True, exist_ok=True)
                        (keep / f"{kind.name.replace(' ', '-')}-{number}-{file.name}").write_bytes(content)
            read = f"{statuses[0]} read, {statuses.total() - statuses[0]} refused"
            print(f"{kind.name:22} {statuses.total():5} mutants: {read}, {faults.total() - before} faults", flush=True)
    return faults


def main() -> int:
    """Says what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mutants", type=int, default=100, help="of each kind (100)")
    parser.add_argument("--only", metavar="KIND", help="kinds with this in their name")
    parser.add_argument("--seconds", type=float, default=5.0, help="of CPU time that a command may take (5)")
    parser.add_argument("--keep", metavar="FOLDER", type=Path, help="put files there that led to a fault")
    args = parser.parse_args()
    faults = run(args.seed, args.mutants, args.only, args.seconds, args.keep)
    for fault, count in faults.most_common():
        print(f"{count:5}  {fault}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
