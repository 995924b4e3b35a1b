# SPDX-License-Identifier: MIT
"""Damages every kind of file that commands read, one file at a time, and counts what the commands make of it.

    python -m tests.faults.files [--seed N] [--mutants N] [--only KIND] [--no-sound] [--keep FOLDER]

A mutant is a run, a recording or a client's report with one file damaged: bytes (bits, cuts, blanks, repeats, junk), or
a value of a JSON document (another type, another number, a key that is gone). A command that reads the file runs in a
process of its own. It may give an output, or say why not and leave with a documented exit status. Faults are internal
errors, tracebacks, signals, an exit status without a word, more than --seconds of CPU time, more than --mib of memory.
The sound files are tried first, unless --no-sound. Exit status 1 if there is a fault.

Under the sanitizers (tests/native/check_native.py does it): `make -C correlator/native asan-python`, then with
PYTHONPATH=correlator/native/build/asan/room, LD_PRELOAD of clang's shared run-time library, and a larger --mib.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from tests.faults.kinds import KINDS, Kind, prepare

import opline as correlator
import opline_analyses as analyses
from opline_analyses.cli import main as opline

EXIT_STATUSES = (0, 1, 2, 3)

Damage = Callable[[bytes, random.Random], bytes]


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
    float("inf"),
    float("nan"),
    1e308,
    "http://[::1",  # an address that is none
    "file://host:port/%zz",
)
DEEP = 5000  # lists in lists


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
        return chance.choice((b"[" * 100_000, b"[" * DEEP + b"]" * DEEP, b'{"a":' * DEEP + b"1" + b"}" * DEEP))
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


@dataclass(frozen=True, slots=True)
class Limits:
    """What a command may take: CPU time and memory."""

    seconds: float = 5.0
    mib: int = 512


def load_modules() -> None:
    """Loads every module of opline, with the libraries that they import. The processes of the commands inherit them:
    loading took most of the time of a command.
    """
    for package in (correlator, analyses):
        root = Path(str(package.__file__)).parent
        for file in sorted(root.rglob("[!_]*.py")):
            importlib.import_module(".".join((package.__name__, *file.relative_to(root).with_suffix("").parts)))


def judged(command: Sequence[str], limits: Limits) -> Outcome:
    """Run the command in a process of its own."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        began = time.monotonic()
        child = os.fork()
        if child == 0:
            signal.alarm(int(limits.seconds * 4))
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
    slow = took if used.ru_utime + used.ru_stime > limits.seconds else 0.0
    return Outcome(status, _fault(status, said, slow, used.ru_maxrss >> 10, limits.mib), said.strip()[-300:])


def _fault(status: int, said: str, took: float, mib: int, most_mib: int) -> str | None:
    if status < 0:
        return f"signal {-status}"
    if "internal error" in said or "Traceback" in said:
        return said.strip().splitlines()[-1][:300]
    if status not in EXIT_STATUSES:
        return f"exit status {status}"
    if took:
        return f"{took:.1f} s"
    if mib > most_mib:
        return f"{mib} MiB"
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


def command_of(words: Sequence[str], folder: Path, file: Path) -> list[str]:
    """The command's words, of this file in this folder."""
    return [word.format(folder, file=file) for word in words]


def clear(folder: Path) -> None:
    """The recording is no run any more, and no output is there."""
    for file in (*(folder / "out").iterdir(), *(folder / "rec").glob("*.parquet"), folder / "rec" / "manifest.json"):
        file.unlink(missing_ok=True)
    for file in [folder / "rec" / "manifest.json", *(folder / "rec").glob("*.parquet")]:
        file.unlink(missing_ok=True)


def mutants(kind: Kind, folder: Path, count: int, chance: random.Random) -> Iterator[tuple[Path, str, bytes]]:
    """(file, how, content) of so many."""
    for _ in range(count):
        file = folder / chance.choice(kind.files)
        ways: tuple[Damage, ...] = (value, value, value, *BYTES) if kind.json else BYTES
        way = chance.choice(ways)
        yield file, way.__name__, way(file.read_bytes(), chance)


def sound_faults(kind: Kind, folder: Path, limits: Limits, tried: set[tuple[str, ...]]) -> Counter[str]:
    """What the commands do not do right with sound files of a kind. ``tried``: commands that another kind ran already;
    the commands of this kind join them.
    """
    faults: Counter[str] = Counter()
    files = kind.files if "{file}" in str(kind.commands) else kind.files[:1]
    for words, name in product(kind.commands, files):
        command = command_of(words, folder, folder / name)
        if tuple(command) in tried:
            continue
        tried.add(tuple(command))
        outcome = judged(command, limits)
        if outcome.status != 0 or outcome.fault:
            faults[f"{kind.name}, sound, opline {' '.join(words)}: {outcome.fault or outcome.said}"] += 1
        clear(folder)
    return faults


def run(
    seed: int,
    count: int,
    only: str | None = None,
    limits: Limits = Limits(),
    keep: Path | None = None,
    sound: bool = True,
) -> Counter[str]:
    """``count`` mutants of each kind; prints a line per kind; gives the faults with how often they were seen."""
    faults: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="opline-faults-") as where:
        folder = Path(where)
        prepare(folder)
        load_modules()
        tried: set[tuple[str, ...]] = set()
        for kind in KINDS:
            if only and only not in kind.name:
                continue
            if sound:
                faults += sound_faults(kind, folder, limits, tried)
            chance = random.Random(f"{seed} {kind.name}")
            statuses: Counter[int] = Counter()
            before = faults.total()
            for number, (file, how, content) in enumerate(mutants(kind, folder, count, chance)):
                with damaged(file, content):
                    command = command_of(chance.choice(kind.commands), folder, file)
                    outcome = judged(command, limits)
                    left = [f.name for f in (folder / "out").iterdir()]
                    fault = outcome.fault or (f"{left} left behind" if left and outcome.status in (1, 2) else None)
                    clear(folder)
                statuses[outcome.status] += 1
                if fault:
                    said = " ".join(command).replace(str(folder), "")
                    faults[f"{kind.name}, {how}, opline {said}: {fault}"] += 1
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
    parser.add_argument("--mib", type=int, default=512, help="of memory that a command may take (512)")
    parser.add_argument("--no-sound", action="store_true", help="do not try the sound files first")
    parser.add_argument("--keep", metavar="FOLDER", type=Path, help="put files there that led to a fault")
    args = parser.parse_args()
    limits = Limits(args.seconds, args.mib)
    faults = run(args.seed, args.mutants, args.only, limits, args.keep, not args.no_sound)
    for fault, count in faults.most_common():
        print(f"{count:5}  {fault}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
