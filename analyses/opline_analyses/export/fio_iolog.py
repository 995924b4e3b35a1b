# SPDX-License-Identifier: MIT
"""fio's I/O log, version 3 (fio 3.31 and later): the block requests, each at the time when it was queued, for a replay.

    fio --name=again --read_iolog=FILE --ioengine=libaio --direct=1 --iodepth=64

replays them on the devices of the same names; a replay of writes destroys what is there (`--replay_redirect=DEV` takes
another device). Source: fio's manual, "Trace file format v3"; times are microseconds, as fio 3.33 writes them.
"""

from __future__ import annotations

from typing import BinaryIO

from opline_analyses.base.text import device_name
from opline_analyses.runs.columns import fetched
from opline_analyses.runs.run import Run
from opline_analyses.runs.selection import Selection

COUNTED = "request"
_ACTIONS = {"read": "read", "write": "write", "write_zeroes": "trim", "discard": "trim", "flush": "sync"}
_SECTOR = 512
_FETCHED = 10_000
_REQUESTS = """
    SELECT dev, kind, sector, nr_sectors, coalesce(queue_ns, getrq_ns, insert_ns, first_issue_ns) AS at_ns
    FROM requests WHERE at_ns IS NOT NULL AND dev IS NOT NULL AND outcome <> 'absorbed'"""
_OF_OPS = " AND request_id IN (SELECT request_id FROM stages WHERE op_id IN ({}))"


def write(run: Run, which: Selection, out: BinaryIO) -> int:
    """Writes the requests, those of the selected ops if some are selected; gives their number."""
    some = which.where != "true" or which.limit is not None
    query = _REQUESTS + (_OF_OPS.format(which.sql()) if some else "") + " ORDER BY at_ns"
    names = run.device_names()
    (devices,) = run.row(f"SELECT coalesce(list(DISTINCT dev ORDER BY dev), []) FROM ({query})", which.parameters)
    out.write(b"fio version 3 iolog\n")
    for done in ("add", "open"):
        out.writelines(f"0 {_file(names, dev)} {done}\n".encode() for dev in devices)
    number, first_ns, at_us = 0, None, 0
    (whole,) = run.row(f"SELECT count(*) FROM ({query})", which.parameters)
    rows = run.con.execute(query, list(which.parameters))
    for part in fetched(rows, _FETCHED, whole):
        for dev, kind, sector, sectors, at_ns in part:
            action = _ACTIONS.get(kind)
            if action is None:
                continue
            first_ns = at_ns if first_ns is None else first_ns
            at_us = (at_ns - first_ns) // 1000
            place = 0 if action == "sync" else (sector or 0) * _SECTOR
            length = 0 if action == "sync" else sectors * _SECTOR
            out.write(f"{at_us} {_file(names, dev)} {action} {place} {length}\n".encode())
            number += 1
    out.writelines(f"{at_us} {_file(names, dev)} close\n".encode() for dev in devices)
    return number


def _file(names: dict[int, str], dev: int) -> str:
    name = device_name(names, dev)
    return f"/dev/{name}" if ":" not in name else f"/dev/block/{name}"
