# SPDX-License-Identifier: MIT
"""A run without the names of a machine and its people: each name is `comm-1`, `object-2`, ..., the same one throughout.

Which columns have names is declared here, for every column of texts (a test has them all). Addresses of locks are
numbered, too. Times, other numbers, sectors, thread numbers, device names, and the words of the op model (classes,
stages, events) stay.
"""

from __future__ import annotations

import json
import os
import zlib
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

from opline.store.arrow import arrow_schema
from opline.store.checksums import KEY as CHECKSUMS
from opline.store.schema import TABLES
from opline_analyses.ops.waited import ARROW

if TYPE_CHECKING:
    from typing import Any

    from opline.store.schema import TableSpec

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
_INTEGERS = ("i64", "u64", "i32", "u32")
_ROWS = 1 << 16  # of a row group
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


def write_anonymous(run: Path, manifest: dict[str, Any], target: Path) -> None:
    """Writes the run's tables and manifest into the folder ``target``, and of the rest what has no names: the clocks
    and the kernel's stacks. Raises OSError.
    """
    names = Pseudonyms()
    checksums = {}
    for spec in TABLES:
        file = target / f"{spec.name}.parquet"
        _write_table(run / file.name, spec, names, file)
        data = file.read_bytes()
        checksums[file.name] = {"bytes": len(data), "crc32": f"{zlib.crc32(data):08x}"}
    for name in ("clocks.csv", "stacks.json"):
        if (run / name).is_file():
            (target / name).write_bytes((run / name).read_bytes())
    text = json.dumps(anonymous_manifest(manifest, names) | {CHECKSUMS: checksums}, indent=1)
    (target / "manifest.json").write_text(f"{text}\n")


def _write_table(source: Path, spec: TableSpec, names: Pseudonyms, target: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = arrow_schema(spec)
    wanted = [field.name for field in schema]
    with pa.OSFile(os.fsencode(source)) as raw, pq.ParquetFile(raw, pre_buffer=False) as file:
        writer = pq.ParquetWriter(
            target,
            schema,
            compression="zstd",
            compression_level=1,
            write_statistics=False,  # opline.store.checksums reads page headers without them
            write_page_checksum=True,
            data_page_size=1 << 30,  # a page for each column and row group, as opline writes them
            use_dictionary=[column.name for column in spec.columns if column.type == "dict"],
            column_encoding={c.name: "DELTA_BINARY_PACKED" for c in spec.columns if c.type in _INTEGERS},
        )
        with writer:
            for batch in file.iter_batches(_ROWS, columns=[n for n in wanted if n in file.schema_arrow.names]):
                columns = [_column(batch, field, names) for field in schema]
                writer.write_table(pa.Table.from_arrays(columns, schema=schema), row_group_size=_ROWS)


def _column(batch: Any, field: Any, names: Pseudonyms) -> Any:
    import pyarrow as pa

    if field.name not in batch.schema.names:  # of a run by an older opline
        return pa.nulls(batch.num_rows, field.type)
    column = batch.column(field.name)
    if field.name in ADDRESSES:
        encoded = column.dictionary_encode()
        numbers = [names.number(field.name, address) for address in encoded.dictionary.to_pylist()]
        return pa.array(numbers, field.type).take(encoded.indices)
    kind = NAMES.get(field.name)
    if kind is None or not (pa.types.is_dictionary(field.type) or pa.types.is_string(field.type)):
        return column.cast(field.type)
    encoded = column.cast("string").dictionary_encode()
    renamed = [names.of(kind, name) for name in encoded.dictionary.to_pylist()]
    found = pa.DictionaryArray.from_arrays(encoded.indices, pa.array(renamed, pa.string()))
    return found if pa.types.is_dictionary(field.type) else found.cast("string")


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
