# SPDX-License-Identifier: MIT
"""Damages recorded traces in many ways and compares what the two readers make of them: rows, losses, messages.

``python -m tests.mutants --count 2000 --seed 1 [TRACE …]`` (folders, or names of tests/traces). Each mutant is a trace
with one to three damages: bits flipped, cut, blanked, inserted, taken out in metadata, packet headers, payload, index;
packets and files swapped, doubled, emptied, missing. Each reader reads it in a process of its own. Exit status 0: no
crash, nothing longer than --seconds of processor time, nothing above --mib of memory, and no difference that
docs/internals/losses.md does not explain. ``--keep FOLDER`` keeps what failed, to look at.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.dataset  # noqa: F401 -- read_table loads it, with pandas: here once, not in each process
from tests.lib.damages import DAMAGES, Files
from tests.lib.recorded import HERE, model_of
from tests.readers.test_readers import plain

from opline.correlation import correlate
from opline.errors import OplineError
from opline.store.schema import TABLES

TRACES = ("app-sync-2m-nvme-split", "discard-tiny-buffers", "demo-kernel", "app-libaio-qd8-dmcrypt", "demo-qd4")
READERS = ("native", "bt2")


@dataclass
class Outcome:
    """What a reader made of a mutant. ``refused``: its one line. ``ended``: how its process did, if not by itself."""

    refused: str = ""
    ended: str = ""
    losses: dict[str, int] = field(default_factory=dict)
    tables: dict[str, str] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
    mib: int = 0
    seconds: float = 0


def outcome_of(trace: Path, reader: str, model: Any, room: Path) -> dict[str, Any]:
    """Correlates in this process."""
    out = room / reader
    try:
        manifest = correlate(trace, model, out, reader=reader, progress=False)
    except OplineError as error:
        assert "\n" not in str(error)
        return {"refused": str(error)}
    tables, rows = {}, {}
    for spec in TABLES:
        table = plain(out / f"{spec.name}.parquet")
        rows[spec.name] = table.num_rows
        digest = hashlib.sha256()
        for batch in table.to_batches():
            digest.update(repr(batch.to_pydict()).encode() if table.num_rows < 100 else b"")
            for column in batch.columns:
                for buffer in column.buffers():
                    digest.update(buffer or b"")
        tables[spec.name] = digest.hexdigest()[:16]
    return {"losses": manifest["losses"], "tables": tables, "rows": rows}


def run(trace: Path, reader: str, model: Any, room: Path, seconds: int) -> Outcome:
    """The same in a process of its own, which may crash."""
    answer = room / f"{reader}.json"
    pid = os.fork()
    if pid == 0:
        status = 1
        with contextlib.suppress(BaseException):
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, 1)
            said = os.open(room / f"{reader}.err", os.O_WRONLY | os.O_CREAT)
            os.dup2(said, 2)
            answer.write_text(json.dumps(outcome_of(trace, reader, model, room)))
            status = 0
        os._exit(status)
    _, status, used = os.wait4(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    found = Outcome(mib=used.ru_maxrss // 1024, seconds=used.ru_utime + used.ru_stime)
    if code:
        found.ended = (
            signal.Signals(-code).name if code < 0 else (room / f"{reader}.err").read_text()[-300:] or "status 1"
        )
        return found
    for name, value in json.loads(answer.read_text()).items():
        setattr(found, name, value)
    return found


def differences(native: Outcome, bt2: Outcome) -> list[str]:
    """What the readers do not agree on."""
    if native.refused or bt2.refused:
        return [] if native.refused and bt2.refused else ["refused"]
    out = [f"loss {n}" for n in sorted({*native.losses, *bt2.losses}) if native.losses.get(n) != bt2.losses.get(n)]
    return out + [f"table {n}" for n, digest in native.tables.items() if bt2.tables.get(n) != digest]


def explained(damages: Sequence[str]) -> str:
    """The sentence of docs/internals/losses.md, "Where the readers differ", that says why they do; "" if none does."""
    if any("metadata" in damage for damage in damages):
        return "damaged metadata"
    return ""


@dataclass
class Mutant:
    """One, and what came of it."""

    name: str
    damages: list[str]
    native: Outcome
    bt2: Outcome

    def faults(self, mib: int) -> list[str]:
        """What is never right."""
        out = []
        for reader, found in (("native", self.native), ("bt2", self.bt2)):
            if found.ended:
                out.append(f"{reader} ended by {found.ended.strip().splitlines()[-1]}")
            if found.mib > mib:
                out.append(f"{reader} took {found.mib} MiB")
        return out


def unpacked(traces: Sequence[str], room: Path) -> list[tuple[Path, Any]]:
    """The traces' folders and models."""
    out = []
    for name in traces or TRACES:
        folder = Path(name)
        if not folder.is_dir():
            subprocess.run(["tar", "-xJf", HERE / "traces" / f"{name}.tar.xz", "-C", room], check=True)
            folder = room / name
        out.append((folder, model_of(folder.name)))
    return out


def mutants(
    traces: Sequence[str], count: int, seed: int, seconds: int, keep: Path | None, mib: int
) -> Iterator[Mutant]:
    """Makes them, one after the other."""
    with tempfile.TemporaryDirectory(prefix="opline-mutants-") as folder:
        sound = unpacked(traces, Path(folder))
        for number in range(count):
            chance = random.Random(f"{seed}/{number}")
            source, model = sound[number % len(sound)]
            room = Path(folder) / "one"
            copy = Path(shutil.copytree(source, room / "trace"))
            damages = [DAMAGES[(number // len(sound)) % len(DAMAGES)]]
            damages += chance.choices(DAMAGES, k=chance.choice((0, 0, 0, 1, 2)))
            for damage in damages:
                damage(Files(copy, chance))
            found = [run(copy, reader, model, room, seconds) for reader in READERS]
            names = [damage.__name__ for damage in damages]
            mutant = Mutant(f"{seed}/{number} {source.name}", names, *found)
            if keep and (mutant.faults(mib) or (differences(*found) and not explained(names))):
                shutil.copytree(copy, keep / str(number), dirs_exist_ok=True)
            yield mutant
            shutil.rmtree(room)


def main(argv: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", nargs="*")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--mib", type=int, default=256)
    parser.add_argument("--keep", type=Path)
    args = parser.parse_args(argv)
    tally: Counter[str] = Counter()
    began, bad = time.monotonic(), 0
    for mutant in mutants(args.traces, args.count, args.seed, args.seconds, args.keep, args.mib):
        tally["mutants"] += 1
        tally["refused by both"] += bool(mutant.native.refused and mutant.bt2.refused)
        tally["most MiB"] = max(tally["most MiB"], mutant.native.mib, mutant.bt2.mib)
        faults = mutant.faults(args.mib)
        if different := [] if faults else differences(mutant.native, mutant.bt2):
            tally["differ"] += 1
            if why := explained(mutant.damages):
                tally[f"differ, explained: {why}"] += 1
            else:
                faults = different
        if faults:
            bad += 1
            print(f"{mutant.name}: {' + '.join(mutant.damages)}: {', '.join(faults)}", flush=True)
    for what, number in tally.items():
        print(f"{what}: {number}")
    print(f"not explained: {bad}; {time.monotonic() - began:.0f} s")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
