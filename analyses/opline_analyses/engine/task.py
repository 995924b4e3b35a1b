# SPDX-License-Identifier: MIT
"""``python -m opline_analyses.engine.task``: tasks, one after another, of one recording each, in a separate process.

Reads lines of JSON from standard input, ``{"opline", "path", "options", "task", "out"}``. Writes to the file ``out``
one JSON document, ``{"said": [lines for people], "summary": ...}``, then to standard output a line of JSON, ``[status,
said]``. Status 0: the document is whole. 1, 2: the last line of ``said`` is the reason, and the lines before report
losses. 5: asked by another version of opline. At the end of standard input the process ends, too, so no task outlives a
killed worker.
"""

from __future__ import annotations

import io
import json
import os
import sys
import threading
from contextlib import redirect_stderr
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING

from opline import __version__
from opline.errors import OplineError
from opline.talk import talk
from opline_analyses.engine.interface import OURS, REFUSED
from opline_analyses.engine.kept import Kept

if TYPE_CHECKING:
    from typing import Any


def main() -> None:
    """Does tasks, and returns never."""
    requests: SimpleQueue[dict[str, Any]] = SimpleQueue()
    threading.Thread(target=_read, args=(requests,), daemon=True).start()
    kept = Kept()
    with os.fdopen(os.dup(1), "w") as answers:
        os.dup2(2, 1)  # a library's output is no answer
        while True:
            print(json.dumps(_answer(requests.get(), kept)), file=answers, flush=True)


def _answer(request: dict[str, Any], kept: Kept) -> tuple[int, str]:
    """Does the task: the status, and the text without an answer."""
    said = io.StringIO()
    with redirect_stderr(said):
        if request["opline"] != __version__:
            talk(f"its worker has opline {__version__}, and opline {request['opline']} asks")
            return REFUSED, said.getvalue()
        from opline_analyses.engine.summaries import summary_of

        try:
            summary = summary_of(request["task"], request["path"], request["options"], kept)
        except OplineError as error:
            talk(error.message)
            return error.exit_code, said.getvalue()  # the reason may be a loss
    lines = [line.removeprefix(OURS) for line in said.getvalue().splitlines()]
    Path(request["out"]).write_text(json.dumps({"said": lines, "summary": summary}))
    return 0, ""


def _read(requests: SimpleQueue[dict[str, Any]]) -> None:
    for line in sys.stdin.buffer:
        requests.put(json.loads(line))
    from opline.scratch import remove_unfinished

    remove_unfinished()
    os._exit(1)


if __name__ == "__main__":
    main()
