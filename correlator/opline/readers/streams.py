# SPDX-License-Identifier: MIT
"""What babeltrace2 is given of a damaged trace: a folder in which each file has what the native reader reads of it.

babeltrace2 gives up on a whole trace for one file that ends inside a packet, and aborts for some headers. What is wrong
with a trace's files is found in one place for both readers (correlator/native/src/ctf/survey.hpp, and decoding itself);
here it is carried out: files end where they are readable, packets are in the order of their times and there once, and
the content of a packet ends before what can't be decoded.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from opline import _core
from opline.readers.trace import cpus_recorded, first_kept, stream_files
from opline.values import Value

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from typing import Any


class Mending(Value):
    """What is to be done to one file. ``keep``: so many of its bytes, 0: it is left out. ``patches``: byte, number, its
    size in bytes, big-endian. ``order``: where its packets lie, (begin, end) in the order of reading, if that is not
    how they follow each other.
    """

    keep: int
    patches: Sequence[tuple[int, int, int, bool]] = ()
    order: Sequence[tuple[int, int]] = ()


class Examination(Value):
    """What both readers know of some traces before their events are used. ``damaged``: why a stream ends too early, and
    ``rests``: which of its packets (from 0) end too early, by the path of its first file.
    """

    files: dict[str, Mending]
    damaged: dict[str, str]
    rests: dict[str, list[int]]
    survey: dict[str, Any]
    losses: dict[str, int]
    messages: list[str]


def examine(traces: Sequence[Path]) -> Examination | None:
    """Reads the traces for nobody; None where only babeltrace2 may understand them."""
    try:
        paths = [str(trace) for trace in traces]
        reader = _core.NativeReader(paths, cpus_recorded(paths[0]), [], first_kept(paths))
        found = json.loads(reader.mendings())
    except (_core.Unsupported, ValueError):
        return None
    files = {
        path: Mending(
            keep=file["keep"],
            patches=[tuple(patch) for patch in file["patches"]],
            order=[tuple(place) for place in file["order"]],
        )
        for path, file in found["files"].items()
    }
    counts: dict[str, Any] = reader.losses()
    messages = counts.pop("messages")
    return Examination(files, found["damaged"], found["rests"], json.loads(reader.survey()), counts, messages)


def mend(folder: Path, files: dict[str, Mending], into: Path) -> None:
    """Make ``into`` a trace: links to the sound files, and mended copies of the others.

    LTTng's indexes are left out: babeltrace2 makes its own. Raises OSError.
    """
    from pathlib import Path

    into.mkdir(parents=True)
    for path in [folder / "metadata", *map(Path, stream_files(folder))]:
        mending, target = files.get(str(path)), into / path.name
        if mending is None:
            target.symlink_to(path.absolute())
        elif mending.keep > 0:
            _copy(path, target, mending)


def _copy(path: Path, target: Path, mending: Mending) -> None:
    whole = target.with_name(f".{target.name}")
    with path.open("rb") as source, whole.open("wb") as out:
        _transfer(source, out, 0, mending.keep)
        for at, value, size, big_endian in mending.patches:
            out.seek(at)
            out.write(value.to_bytes(size, "big" if big_endian else "little"))
    if mending.order:
        with whole.open("rb") as source, target.open("wb") as out:
            for begin, end in mending.order:
                _transfer(source, out, begin, end)
        whole.unlink()
    else:
        whole.replace(target)


def _transfer(source: Any, out: Any, begin: int, end: int) -> None:
    source.seek(begin)
    left = end - begin
    while left > 0 and (piece := source.read(min(left, 1 << 20))):
        out.write(piece)
        left -= len(piece)
