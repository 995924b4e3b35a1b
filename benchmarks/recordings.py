# SPDX-License-Identifier: MIT
"""What people record, for the benchmarks: a long recording for every model that opline ships.

Two are made of real Ceph's recorded traces and two of fio's in a machine with lttng-modules, by copies
(benchmarks/replicated.py); the others are recorded here by `opline record` itself.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from benchmarks import replicated

ROOT = Path(__file__).resolve().parent.parent
OPLINE = [sys.executable, "-m", "opline_analyses"]
FIO = (
    "fio --name=bench --direct=1 --rw=randwrite --bs=4k --size=256M --filename=FOLDER/data --time_based "
    "--runtime=SECONDS --randrepeat=1 --output-format=json"
)


@dataclass(frozen=True, slots=True)
class Recording:
    """A recording and the model that reads it: either so many copies of a recorded trace of tests/traces, or a command
    that is recorded here, or the one named ``run`` of what an example records. FOLDER in the command is a scratch
    folder.
    """

    name: str
    model: str
    what: str
    of: str = ""
    copies: int = 1
    command: str = ""
    example: str = ""
    run: str = "run"


def _fio(engine: str, seconds: int, depth: int) -> str:
    return f"{FIO} --ioengine={engine} --iodepth={depth}".replace("SECONDS", str(seconds))


RECORDINGS = {
    r.name: r
    for r in (
        Recording(
            "ceph-bluestore", "ceph", "Ceph 19.2.3, BlueStore, rados bench at queue depth 1", "ctf-blue-v2-qd1", 28
        ),
        Recording("ceph-long", "ceph", "Ceph 19.2.3, BlueStore, rados bench at queue depth 1", "ctf-blue-v2-qd1", 280),
        Recording("ceph-memstore", "ceph", "Ceph 19.2.3, memstore, rados bench at queue depth 1", "ctf-mem-qd1", 13),
        Recording(
            "demo",
            "demo",
            "the demo store, 200 000 direct writes at queue depth 16",
            command=f"{ROOT}/examples/demo-store/run --ops 200000 --qd 16 --size 4096",
        ),
        Recording(
            "generic",
            "generic",
            "tracepoints/example, 600 000 jobs with the tracepoints of opline_tp.h",
            command="FOLDER/app FOLDER/data 600000",
        ),
        Recording("syscalls-psync", "syscalls", "fio, psync, one at a time; kernel domain", "fio-psync-qd1-nvme", 17),
        Recording(
            "syscalls-libaio", "syscalls", "fio, libaio, 16 in flight; kernel domain", "fio-libaio-qd16-hdd-bfq", 36
        ),
        Recording("syscalls-uring", "syscalls", "fio, io_uring, 16 in flight; BPF", command=_fio("io_uring", 10, 16)),
        Recording(
            "postgresql",
            "postgresql",
            "PostgreSQL 15, pgbench with 8 clients; probes",
            example="postgresql/run --seconds 20 --rounds 1",
            run="clients-8",
        ),
        Recording(
            "postgresql-server",
            "postgresql-server",
            "PostgreSQL 15, pgbench with 8 clients; probes of the server alone",
            example="postgresql/run --seconds 20 --rounds 1",
            run="server",
        ),
    )
}


def trace_of(folder: Path, recording: Recording) -> Path:
    """The recording's trace; made in ``folder`` at first need. Ends the program where a recording lost events."""
    if recording.of:
        return replicated.trace_of(folder, recording.of, recording.copies)
    place = folder / (recording.example.partition("/")[0] or recording.name)
    if not (place / "complete").exists():
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        if recording.example:
            program, *options = recording.example.split()
            subprocess.run([ROOT / "examples" / program, "-o", place, *options], check=True, stdout=subprocess.DEVNULL)
        else:
            _record(place, recording)
        (place / "complete").touch()
    run = place / recording.run
    discarded = json.loads((run / "recording.json").read_text())["discarded_count"]
    if discarded != 0:
        raise SystemExit(f"{recording.name}: {discarded} events were discarded; nothing is timed")
    return run / "trace"


def _record(place: Path, recording: Recording) -> None:
    example = ROOT / "tracepoints"
    if "FOLDER/app" in recording.command:
        sources = [example / "example" / "app.c", example / "opline_tp.c"]
        libraries = ["-llttng-ust", "-ldl", "-lpthread"]
        subprocess.run(["cc", "-O2", f"-I{example}", "-o", place / "app", *sources, *libraries], check=True)
    command = recording.command.replace("FOLDER", str(place)).split()
    size = ["--subbuf-size", "16M"]
    subprocess.run(
        [*OPLINE, "record", "-o", place / recording.run, "--model", recording.model, *size, "--", *command], check=True
    )
    (place / "data").unlink(missing_ok=True)
    (place / "app").unlink(missing_ok=True)
