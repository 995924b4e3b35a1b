# SPDX-License-Identifier: MIT
"""Which offset an op is at, as fio's log has it, where the op itself has none (libaio: it is in the caller's memory).

Takes a run; makes the temporary table `fio_places` (op_id, place, basis). An op's first sector says the offset

    file    in a file whose place on the disk the recording knows (extents.json), and of which no sector moved
    disk    in the whole disk, if no recorded file lies there
    part    in the partition that has the sector, if no recorded file lies in it

A sector among files, but in none that is known, says nothing: a file's offsets and the disk's are alike by chance.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from opline.readers.extents import SECTOR_BYTES, read_extents
from opline_analyses.runs.devices import partitions

if TYPE_CHECKING:
    from opline.readers.extents import FileMap
    from opline_analyses.runs.run import Run

OWN, FILE, DISK, PART = "own", "file", "disk", "part"
_BEYOND = 1 << 62


def _maps(run: Run) -> list[FileMap]:
    """Maps of the run's files; a moved recording has its own file beside the run."""
    named = [Path(str(entry["file"])) for entry in run.manifest.get("extents") or ()]
    beside = [place / "extents.json" for place in run.places()]
    found = [path for path in named if path.is_file()] or [path for path in beside if path.is_file()][:1]
    return [file for path in found for file in read_extents(path)]


def make_places(run: Run) -> None:
    """Makes `fio_places`. Raises OplineError for an unreadable extents.json."""
    parts = partitions(run)
    maps = _maps(run)
    pieces = [
        (f.disk, f.start_sector + e.physical_sector, f.start_sector + e.physical_sector + e.sectors, e.logical_sector)
        for f in maps
        if not f.changed
        for e in f.extents
    ]
    ends = {(p.dev, p.first): p.end for p in parts}
    held = {(f.disk, f.start_sector): ends.get((f.disk or 0, f.start_sector), _BEYOND) for f in maps}
    for name, columns, rows in (
        ("fio_pieces", "dev BIGINT, first BIGINT, past BIGINT, logical BIGINT", pieces),
        ("fio_held", "dev BIGINT, first BIGINT, past BIGINT", [(*place, past) for place, past in held.items()]),
        ("fio_parts", "dev BIGINT, first BIGINT, past BIGINT", [(p.dev, p.first, p.end) for p in parts]),
    ):
        run.con.execute(f"CREATE OR REPLACE TEMP TABLE {name} ({columns})")
        if rows:
            marks = ", ".join(f"({', '.join('?' * len(rows[0]))})" for _ in rows)
            run.con.execute(f"INSERT INTO {name} VALUES {marks}", [value for row in rows for value in row])
    run.con.execute(_PLACES)


_INSIDE = "coalesce(x.dev = o.dev, true) AND o.sector >= x.first AND o.sector < x.past"
_PLACES = f"""
CREATE OR REPLACE TEMP TABLE fio_places AS
WITH o AS (SELECT op_id, dev::BIGINT AS dev, sector::BIGINT AS sector FROM ops
           WHERE complete AND offset_bytes IS NULL AND dev IS NOT NULL AND sector IS NOT NULL),
     f AS (SELECT op_id, any_value(place) AS place
           FROM (SELECT DISTINCT op_id, o.sector - x.first + x.logical AS place FROM o JOIN fio_pieces x ON {_INSIDE})
           GROUP BY op_id HAVING count(*) = 1),
     among AS (SELECT DISTINCT op_id FROM o JOIN fio_held x ON {_INSIDE}),
     bare AS (SELECT * FROM o ANTI JOIN among USING (op_id))
SELECT op_id, offset_bytes AS place, '{OWN}' AS basis FROM ops WHERE complete AND offset_bytes IS NOT NULL
UNION ALL SELECT op_id, place * {SECTOR_BYTES}, '{FILE}' FROM f
UNION ALL SELECT op_id, sector * {SECTOR_BYTES}, '{DISK}' FROM bare
UNION ALL SELECT op_id, (o.sector - x.first) * {SECTOR_BYTES}, '{PART}' FROM bare o JOIN fio_parts x ON {_INSIDE}
"""
