# SPDX-License-Identifier: MIT
"""The server's answers: the list of runs, the page of a run, one op in full, and answers about large runs.

A run whose stages fit into a page is one page, as written by `opline report`. The page of a larger run has cells, and
asks for the visible part (asked.py). A connection serves one request at a time, except for the questions of asked.py.
"""

from __future__ import annotations

import html
import json
import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import nullcontext, suppress
from typing import Any

import numpy as np

from opline.errors import OplineError
from opline.talk import shown
from opline.values import Value
from opline_analyses.report.data import PageData, page_data
from opline_analyses.report.document import document
from opline_analyses.report.one import ops_data
from opline_analyses.runs.run import Run
from opline_analyses.runs.selection import Selection
from opline_analyses.view import asked
from opline_analyses.view.followed import Followed
from opline_analyses.view.tables import Region, Tables

KEPT = 4  # pages: going back is at once
HELD_ROWS = 1_000_000  # limit of rows of stages in one page
_HELD_BYTES = 1 << 40

_WAITING = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>opline view</title><meta http-equiv="refresh" content="1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; base-uri 'none'; form-action 'none'"></head>
<body><h1>{}</h1><p>{}</p></body></html>
"""
_LIST = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>opline view</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; base-uri 'none'; form-action 'none'"></head>
<body><h1>Runs</h1><ol>
{}
</ol></body></html>
"""


class Viewed(Value):
    """A run and the ops chosen by the command's filters. ``followed``: instead of a run, a running recording."""

    run: Run | None
    name: str
    which: Selection
    tainted: bool
    followed: Followed | None = None


class Pages:
    """The pages of some runs."""

    def __init__(self, runs: list[Viewed]) -> None:
        """``runs``: by number, from 0."""
        self._runs = runs
        self._locks = [threading.Lock() for _ in runs]
        self._beside = [None if one.run is None else one.run.beside() for one in runs]  # for ops
        self._kept: OrderedDict[int, bytes] = OrderedDict()
        self._tables: dict[int, Tables] = {}
        self._over: dict[int, Followed | None] = {}  # for pages loaded before the end of a recording

    def __len__(self) -> int:
        return len(self._runs)

    def replace(self, number: int, by: Viewed) -> None:
        """A followed recording has ended: takes the recording's run."""
        with self._locks[number]:
            self._beside[number] = None if by.run is None else by.run.beside()
            self._kept.pop(number, None)
            self._over[number] = self._runs[number].followed
            self._runs[number] = by

    def prepare(self) -> None:
        """Makes the first run's page in advance: the user waits less."""
        if self._runs:
            threading.Thread(target=self._prepared, daemon=True).start()

    def _prepared(self) -> None:
        with suppress(Exception):  # the request for the page reports the error
            self.page(0)

    def listed(self) -> bytes:
        """The list of runs to choose from."""
        lines = [
            f'<li><a href="{n}/">{html.escape(shown(one.name))}</a>{" (being recorded)" if one.followed else ""}</li>'
            for n, one in enumerate(self._runs)
        ]
        return _LIST.format("\n".join(lines)).encode("utf-8", "backslashreplace")

    def page(self, number: int) -> bytes:
        """The page of a run. Raises OplineError where there is none."""
        followed = self._runs[number].followed
        if followed is not None:
            return self._growing(number, followed)
        with self._locks[number]:
            if number not in self._kept:
                self._kept[number] = self._made(number)
                if len(self._kept) > KEPT:
                    self._kept.popitem(last=False)
            self._kept.move_to_end(number)
            return self._kept[number]

    def _growing(self, number: int, followed: Followed) -> bytes:
        """The page of a running recording, as far as known."""
        name = shown(self._runs[number].name)
        with followed.pace.answering():
            found = followed.page_head()
        if found is None:
            why = followed.problem or "Waiting for the first op that is complete."
            return _WAITING.format(html.escape(name), html.escape(shown(why))).encode("utf-8", "backslashreplace")
        head, columns = found
        head |= {"columns": columns.directory, "name": name, "served": True}
        return document(name, [PageData(head, columns.blob(), None)], served=True)

    def _made(self, number: int) -> bytes:
        one = self._runs[number]
        assert one.run is not None
        if one.run.row("SELECT count(*) FROM stages")[0] <= HELD_ROWS:
            page = page_data(one.run, one.which, one.tainted, _HELD_BYTES)
        else:
            tables = self._tables[number] = Tables(one.run, one.which, one.tainted)
            if not len(tables):
                raise OplineError("No complete op is to be shown.")
            head, columns = asked.page_head(tables, Region(t0=tables.first_ns, t1=tables.span_ns + 1))
            page = PageData({**head, "columns": columns.directory}, columns.blob(), None)
        page.head["name"] = shown(one.name)
        page.head["served"] = True
        return document(one.name, [page], served=True)

    def op(self, number: int, op_id: int) -> bytes:
        """One op as the data of a page: {"head", "columns" in base64}. Raises OplineError without such an op."""
        followed = self._runs[number].followed
        if followed is not None:
            if followed.tables is None:
                raise OplineError("There is no op yet.")
            with followed.pace.answering():
                return _json(asked.sent(*ops_data(followed.tables.run, np.array([op_id]), followed.tables.start_ns)))
        with self._locks[number]:
            beside = self._beside[number]
            assert beside is not None
            run = beside.beside()
        return _json(asked.sent(*ops_data(run, np.array([op_id]), run.start_ns())))

    def answer(self, number: int, question: str, region: Region, options: dict[str, int]) -> bytes:
        """The answer to a question of the page about a large run. Raises OplineError."""
        followed = self._runs[number].followed or self._over.get(number)
        if question == "news" and followed is not None:
            return _json(followed.news(options.get("since", 0)))
        tables = self._tables.get(number) or (followed.tables if followed else None)
        ask = _QUESTIONS.get(question)
        if tables is None or ask is None:
            raise OplineError("There is no such question about this run.")
        with followed.pace.answering() if followed else nullcontext():
            return _json(ask(tables, region, options))


_QUESTIONS: dict[str, Callable[[Tables, Region, dict[str, int]], dict[str, Any]]] = {
    "cells": lambda tables, region, options: asked.sent(
        *asked.cells(tables, region, options.get("columns", asked.COLUMNS))
    ),
    "region": lambda tables, region, options: asked.region_answer(tables, region),
    "who": lambda tables, region, options: asked.who_answer(tables, region, bool(options.get("slow"))),
    "checks": lambda tables, region, options: asked.checks_answer(tables),
    "devices": lambda tables, region, options: asked.devices_answer(tables, region),
    "near": lambda tables, region, options: asked.one_op(tables, region, bool(options.get("linear"))),
    "ops": lambda tables, region, options: asked.window_answer(tables, region, options.get("most", 1)),
    "find": lambda tables, region, options: asked.of_id(tables, options.get("op", -1), region),
}


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()
