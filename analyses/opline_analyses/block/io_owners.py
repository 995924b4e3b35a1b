# SPDX-License-Identifier: MIT
"""Whose the rows of a source are, where that is not in the row itself: the object (a file) of its op, its process.

A block request or a bio may belong to ops on several objects (a write-back of two files): then the object is `several`.
Block events name a thread; which process it is of, the application's points tell.
"""

from __future__ import annotations

from opline_analyses.block.io_sources import Source

SEVERAL = "(several)"
#: The tables that each of them needs.
TABLES = {"object": ("ops", "links", "deferred"), "process": ("ops", "transitions")}
_NUMBERS = {"requests": "request_id", "bios": "bio_id"}
_OBJECT_OF_IO = """
    SELECT id, CASE WHEN count(DISTINCT object) > 1 THEN '{several}' ELSE any_value(object) END AS object FROM (
        SELECT {number} AS id, op_id FROM links UNION ALL SELECT {number}, op_id FROM deferred)
    JOIN (SELECT op_id, object::VARCHAR AS object FROM ops) USING (op_id) GROUP BY id"""
_OBJECT_OF_OP = "SELECT op_id, object::VARCHAR AS object FROM ops"
# A process is called as its first thread, or as one of those that are known.
_PROCESS = """
    SELECT tid, concat(name, ':', pid) AS process FROM (
        SELECT tid, any_value(pid) AS pid FROM transitions WHERE pid IS NOT NULL GROUP BY tid)
    JOIN (SELECT pid, coalesce(min(comm::VARCHAR) FILTER (tid = pid), min(comm::VARCHAR), '?') AS name
          FROM transitions WHERE pid IS NOT NULL GROUP BY pid) USING (pid)"""


def with_owner(source: Source, per: str | None) -> Source:
    """The same rows with the column ``per``, if that is one of TABLES; else the source itself."""
    if per == "object":
        number = _NUMBERS.get(source.name)
        more = _OBJECT_OF_OP if number is None else _OBJECT_OF_IO.format(several=SEVERAL, number=number)
        key = "op_id" if number is None else "id"
    elif per == "process":
        more, key = _PROCESS, "tid"
    else:
        return source
    return Source(**vars(source) | {"sql": f"SELECT * FROM ({source.sql}) LEFT JOIN ({more}) USING ({key})"})
