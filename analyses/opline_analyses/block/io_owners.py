# SPDX-License-Identifier: MIT
"""The owner of a source's rows, if not in the row itself: the object (a file) of the op, the process.

A block request or a bio may belong to ops on several objects (a write-back of two files): then the object is `several`.
Block events name a thread; the application's points tell the thread's process.
"""

from __future__ import annotations

from opline_analyses.block.io_sources import Source

SEVERAL = "(several)"
#: The tables needed for each owner.
TABLES = {"object": ("ops", "links", "deferred"), "process": ("ops", "transitions")}
_NUMBERS = {"requests": "request_id", "bios": "bio_id"}
_OBJECT_OF_IO = """
    SELECT id, CASE WHEN count(DISTINCT object) > 1 THEN '{several}' ELSE any_value(object) END AS object FROM (
        SELECT {number} AS id, op_id FROM links UNION ALL SELECT {number}, op_id FROM deferred)
    JOIN (SELECT op_id, object::VARCHAR AS object FROM ops) USING (op_id) GROUP BY id"""
_OBJECT_OF_OP = "SELECT op_id, object::VARCHAR AS object FROM ops"
# A process has the name of its first thread, or of a known thread.
_PROCESS = """
    SELECT tid, concat(name, ':', pid) AS process FROM (
        SELECT tid, any_value(pid) AS pid FROM transitions WHERE pid IS NOT NULL GROUP BY tid)
    JOIN (SELECT pid, coalesce(min(comm::VARCHAR) FILTER (tid = pid), min(comm::VARCHAR), '?') AS name
          FROM transitions WHERE pid IS NOT NULL GROUP BY pid) USING (pid)"""


def with_owner(source: Source, per: str | None) -> Source:
    """The same rows with the column ``per``, for a key of TABLES; else the source itself."""
    if per == "object":
        number = _NUMBERS.get(source.name)
        more = _OBJECT_OF_OP if number is None else _OBJECT_OF_IO.format(several=SEVERAL, number=number)
        key = "op_id" if number is None else "id"
    elif per == "process":
        more, key = _PROCESS, "tid"
    else:
        return source
    return Source(**vars(source) | {"sql": f"SELECT * FROM ({source.sql}) LEFT JOIN ({more}) USING ({key})"})
