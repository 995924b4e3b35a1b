# SPDX-License-Identifier: MIT
"""What the server gives: the list of runs, the page of a run or of a part of it, one op in full.

One at a time: a run's connection is used by one thread.
"""

from __future__ import annotations

import base64
import html
import json
import threading
from collections import OrderedDict

from opline.errors import OplineError
from opline.talk import shown
from opline.values import Value
from opline_analyses.report.data import PageData, page_data
from opline_analyses.report.document import document
from opline_analyses.runs.run import Run
from opline_analyses.runs.selection import Selection

KEPT = 4  # pages: going back is at once

_LIST = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>opline view</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; base-uri 'none'; form-action 'none'"></head>
<body><h1>Runs</h1><ol>
{}
</ol></body></html>
"""


class Viewed(Value):
    """A run and the ops of it that the command's filters choose."""

    run: Run
    name: str
    which: Selection
    tainted: bool


class Pages:
    """The pages of some runs."""

    def __init__(self, runs: list[Viewed]) -> None:
        """``runs``: by number, from 0."""
        self._runs = runs
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[int, int | None, int | None], bytes] = OrderedDict()

    def __len__(self) -> int:
        return len(self._runs)

    def listed(self) -> bytes:
        """The list of runs to choose from."""
        lines = [f'<li><a href="{n}/">{html.escape(shown(one.name))}</a></li>' for n, one in enumerate(self._runs)]
        return _LIST.format("\n".join(lines)).encode("utf-8", "backslashreplace")

    def page(self, number: int, since_ns: int | None, until_ns: int | None) -> bytes:
        """The page of the ops that begin at ``since_ns`` or later and before ``until_ns``, ns of the run's clock.
        Raises OplineError where there is none.
        """
        key = (number, since_ns, until_ns)
        with self._lock:
            if key not in self._kept:
                self._kept[key] = self._made(*key)
                if len(self._kept) > KEPT:
                    self._kept.popitem(last=False)
            self._kept.move_to_end(key)
            return self._kept[key]

    def _made(self, number: int, since_ns: int | None, until_ns: int | None) -> bytes:
        one = self._runs[number]
        which = one.which
        for sign, at in ((">=", since_ns), ("<", until_ns)):
            if at is not None:
                which = which.also(f"o.begin_ns {sign} ?", at)
        page = page_data(one.run, which, one.tainted)
        page.head["name"] = shown(one.name)
        page.head["served"] = True
        page.head["part"] = since_ns is not None or until_ns is not None
        return document(one.name, [page], served=True)

    def op(self, number: int, op_id: int) -> bytes:
        """One op as the data of a page: {"head", "columns" in base64}. Raises OplineError where there is no such op."""
        one = self._runs[number]
        with self._lock:
            if not one.run.rows("SELECT 1 FROM ops WHERE op_id = ? AND complete", [op_id]):
                raise OplineError(f"The run has no complete op {op_id}.")
            page: PageData = page_data(one.run, Selection("o.op_id = ?", (op_id,)), True)
        found = {"head": page.head, "columns": base64.b64encode(page.blob).decode()}
        return json.dumps(found, separators=(",", ":"), allow_nan=False).encode()
