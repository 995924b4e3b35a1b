# SPDX-License-Identifier: MIT
"""A run without the names of a machine and its people: each name is `comm-1`, `object-2`, ..., the same one throughout.

Which columns have names is declared here, for every column of texts (a test has them all). Addresses of locks are
numbered, too. Times, other numbers, sectors, thread numbers, device names, and the words of the op model (classes,
stages, events) stay.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from opline import _core
from opline.store.arrays import Batch, Codes, Numbers, append
from opline.store.arrow import schema_of
from opline.store.checksums import KEY as CHECKSUMS
from opline.store.schema import TABLES
from opline_analyses.ops.waited import ARROW
from opline_analyses.runs.columns import batches

if TYPE_CHECKING:
    from typing import Any

    from opline.store.schema import Column, TableSpec
    from opline_analyses.runs.run import Run

#: Columns of names, and what a name in them is called instead.
NAMES = {
    "object": "object", "file": "object", "key": "key", "host": "host", "comm": "comm", "program": "comm",
    "woken_by_comm": "comm", "instead_comm": "comm", "holder_comm": "comm", "queue_comm": "comm", "issue_comm": "comm",
    "path": "comm", "cgroup": "cgroup", "stream": "stream", "local": "address", "peer": "address",
}  # fmt: skip
#: Columns of addresses in memory, which tell where a kernel or a program lies: each is a number from 1 on instead.
ADDRESSES = frozenset(("lock",))
#: Columns of words: of opline, of the kernel, or of the op model.
WORDS = frozenset((
    "class", "reason", "no_request", "point", "event", "evidence", "stage", "kind", "from_point", "to_point", "state",
    "cause", "last_cause", "lock_kind", "rwbs", "outcome", "request_evidence", "confidence", "space", "direction",
    "fate", "loss", "severity", "origin",
))  # fmt: skip
_KEPT = (
    "schema", "schema_version", "opline", "created", "reader", "reader_version", "match", "core", "losses", "gaps",
    "plugs", "took_ns",
)  # fmt: skip
_KEPT_OF_RECORDING = (
    "schema", "schema_version", "begin", "end", "event_count", "discarded_count", "completed_before", "completed_after",
    "state", "gaps", "tracing_ended", "write_failed", "block_source", "clocks_before", "clocks_after", "promises",
)  # fmt: skip
_KEPT_OF_DEVICE = (
    "name", "number", "dev", "size_bytes", "scheduler", "rotational", "parent", "start_sector", "logical_block_bytes",
    "zoned", "write_cache", "fua", "queues",
)  # fmt: skip


class Pseudonyms:
    """One for each name, by kind, numbered in the order in which they are met."""

    def __init__(self) -> None:
        self._known: dict[str, dict[object, int]] = defaultdict(dict)

    def number(self, kind: str, name: object) -> int:
        """Which one of its kind it is, from 1 on."""
        known = self._known[kind]
        return known.setdefault(name, len(known) + 1)

    def of(self, kind: str, name: str) -> str:
        """The pseudonym of a name; of a path of threads, those of its names."""
        if ARROW in name:
            return ARROW.join(self.of(kind, one) for one in name.split(ARROW))
        return f"{kind}-{self.number(kind, name)}"


def write_anonymous(run: Run, target: Path) -> None:
    """Writes the run's tables and manifest into the folder ``target``, and of the rest what has no names: the clocks
    and the kernel's stacks. Raises OSError.
    """
    names = Pseudonyms()
    checksums = {}
    for spec in TABLES:
        file = target / f"{spec.name}.parquet"
        size, crc = _write_table(run, spec, names, file)
        checksums[file.name] = {"bytes": size, "crc32": f"{crc:08x}"}
    for name in ("clocks.csv", "stacks.json"):
        if (run.path / name).is_file():
            (target / name).write_bytes((run.path / name).read_bytes())
    text = json.dumps(anonymous_manifest(run.manifest, names) | {CHECKSUMS: checksums}, indent=1)
    (target / "manifest.json").write_text(f"{text}\n")


def _write_table(run: Run, spec: TableSpec, names: Pseudonyms, target: Path) -> tuple[int, int]:
    descriptor = os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    file = _core.TableFile(descriptor, [(c.name, c.type) for c in spec.columns], schema_of(spec.name))
    for batch in batches(run, spec.name, [c.name for c in spec.columns]):
        append(file, spec, Batch(len(batch), {c.name: _column(batch, c, names) for c in spec.columns}))
    size, crc, _ = file.close()
    return size, crc


def _column(batch: Batch, spec: Column, names: Pseudonyms) -> Numbers | Codes:
    if spec.name in ADDRESSES:
        codes, texts = batch.codes(spec.name)
        numbers = [*(names.number(spec.name, address) for address in texts), 0]
        return Numbers(np.array(numbers, np.int64)[codes], codes < 0)
    if (kind := NAMES.get(spec.name)) is not None and spec.type in ("dict", "text"):
        codes, texts = batch.codes(spec.name)
        return Codes(codes, [names.of(kind, name) for name in texts])
    found: Numbers | Codes = batch.column(spec.name)
    return found


def anonymous_manifest(manifest: dict[str, Any], names: Pseudonyms) -> dict[str, Any]:
    """The manifest without names: what is not known to have none is left out."""
    core = dict(manifest.get("core") or {})
    if isinstance(core.get("population"), dict):
        core["population"] = _population(core["population"], names)
    core.pop("damaged", None)  # names of stream files
    recording = manifest.get("recording")
    model = manifest.get("model") or {}
    return {
        **{key: manifest[key] for key in _KEPT if key in manifest},
        "core": core,
        "trace": "",
        "traces": [],
        "extents": [],
        "model": {key: model[key] for key in ("name", "sha256") if key in model},
        "environment": [
            {"clock": one.get("clock"), "env": {"domain": (one.get("env") or {}).get("domain")}}
            for one in manifest.get("environment") or ()
        ],
        "recording": _recording(recording, names) if recording else recording,
    }


def _population(population: dict[str, Any], names: Pseudonyms) -> dict[str, Any]:
    others = [one | {"comm": names.of("comm", str(one.get("comm")))} for one in population.get("others") or ()]
    programs = [names.of("comm", str(name)) for name in population.get("programs") or ()]
    return population | {"others": others, "programs": programs}


def _recording(recording: dict[str, Any], names: Pseudonyms) -> dict[str, Any]:
    command = recording.get("command") or {}
    argv = command.get("argv") or ()
    kept = {key: recording[key] for key in _KEPT_OF_RECORDING if key in recording}
    model = recording.get("model")
    return kept | {
        "model": {"name": model.get("name"), "argument": model.get("name")} if model else None,
        "command": {
            "argv": [names.of("comm", Path(str(argv[0])).name)] if argv else [],
            "begin_monotonic_ns": command.get("begin_monotonic_ns"),
            "exit_code": command.get("exit_code"),
        },
        "devices": [
            {key: device[key] for key in _KEPT_OF_DEVICE if key in device} for device in recording.get("devices") or ()
        ],
    }
