# SPDX-License-Identifier: MIT
"""Why slow ops of many recordings are slow, as a result: a row per stage, sentences and tables for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opline.talk import shown
from opline.values import Value
from opline_analyses.base.result_table import ResultTable, of_items
from opline_analyses.base.text import count_of, fitted, wrapped
from opline_analyses.why.answer import answer
from opline_analyses.why.result import columns_of, notes_of, row_of, waits_document
from opline_analyses.why.text import command_lines, sentence, set_lines, table_lines
from opline_analyses.why.waits_text import cpu_sentence, wait_lines, wait_sentence

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opline_analyses.base.result_table import Part
    from opline_analyses.why.waits import Waits
    from opline_analyses.why.why import Why

NAMED = 5  # recordings in a line


class WhyOfMany(Value):
    """The slow ops of all recordings. ``example``: the path of the recording of the op in the middle of the slow ones;
    ``has_request``: a block request serves it; ``recordings``: (name, ops, slow ones), those with the most slow ones
    first.
    """

    why: Why
    waits: Waits | None
    example: str
    has_request: bool
    recordings: list[tuple[str, int, int]]


def result(
    found: WhyOfMany, source: Sequence[str], filters: Sequence[str], *, tainted: bool = False, everything: bool = False
) -> ResultTable:
    """The slow ops against the typical ones; a `Why` was found. ``source``, ``filters``: the words that open the
    recording of the example and choose the ops; ``everything``: what the threads waited for, too.
    """
    w = found.why
    commands = command_lines(w, source, filters, found.has_request)
    rows = [row_of(s, w) for s in (*w.stages, w.latency)]
    return of_items(
        columns_of(), rows, totals=1, found=w, text=lambda _: fitted(_lines(found, commands, everything)),
        document=lambda _: _document(found, commands), notes=notes_of(w, tainted),
    )  # fmt: skip


def _recording_line(found: WhyOfMany) -> str:
    told = [f"{name} {count_of(ops, 'op')}, {slow} slow" for name, ops, slow in found.recordings[:NAMED]]
    if more := found.recordings[NAMED:]:
        told.append(f"{len(more)} more {sum(ops for _, ops, _ in more)}, {sum(slow for *_, slow in more)} slow")
    return f"of {count_of(len(found.recordings), 'recording')}: {'; '.join(told)}"


def _lines(found: WhyOfMany, commands: Sequence[str], everything: bool) -> Iterator[Part]:
    w = found.why
    yield from wrapped(answer(w, found.waits, None), 0)
    yield ""
    yield from set_lines(w)
    yield from wrapped(shown(_recording_line(found)), 2)
    yield ""
    yield from table_lines(w)
    if everything and found.waits is not None:
        yield ""
        yield from wait_lines(w, found.waits)
    yield ""
    yield "to look further:"
    for command in commands:
        yield f"  {command}"


def _document(found: WhyOfMany, commands: Sequence[str]) -> dict[str, Any]:
    w = found.why
    return {
        "schema": "opline why of many 1",
        "sentence": sentence(w),
        "wait_sentence": wait_sentence(w, found.waits),
        "cpu_sentence": cpu_sentence(w, found.waits),
        "sets": {**vars(w.sets), "example_recording": found.example},
        "recordings": [{"recording": name, "ops": ops, "slow": slow} for name, ops, slow in found.recordings],
        "sums": w.sums,
        "stages": [row_of(s, w) for s in w.stages],
        "latency": row_of(w.latency, w),
        "waits": waits_document(found.waits),
        "commands": list(commands),
    }
