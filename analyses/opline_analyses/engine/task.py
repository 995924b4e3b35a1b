# SPDX-License-Identifier: MIT
"""``python -m opline_analyses.engine.task NAME``: one task of one recording, in a process of its own.

Reads one line of JSON from standard input, ``{"opline", "path", "options"}``, and writes one JSON document to standard
output, ``{"said": [lines for people], "summary": ...}``. Exit status 0: the document is whole. 1, 2: the last line of
standard error says why not, and the lines before it say what was lost. 5: another opline asks. Standard input stays
open as long as the answer is wanted: at its end the task ends, too, so no task outlives a worker that was killed.
"""

from __future__ import annotations

import io
import json
import os
import sys
import threading
from contextlib import redirect_stderr

from opline import __version__
from opline.errors import OplineError
from opline.talk import talk
from opline_analyses.engine.interface import REFUSED

MOST_REQUEST = 1 << 20


def main(name: str) -> int:
    """Does the task; the exit status."""
    request = json.loads(_line())
    if request["opline"] != __version__:
        talk(f"its worker has opline {__version__}, and opline {request['opline']} asks")
        return REFUSED
    threading.Thread(target=_end_with_the_asker, daemon=True).start()
    from opline_analyses.engine.summaries import summary_of

    said = io.StringIO()
    try:
        with redirect_stderr(said):
            summary = summary_of(name, request["path"], request["options"])
    except OplineError as error:
        sys.stderr.write(said.getvalue())  # the reason may be what was lost
        talk(error.message)
        return error.exit_code
    lines = [line.removeprefix("opline: ") for line in said.getvalue().splitlines()]
    sys.stdout.write(json.dumps({"said": lines, "summary": summary}))
    sys.stdout.flush()
    return 0


def _line() -> bytes:
    """The first line of standard input, and nothing after it."""
    found = bytearray()
    while not found.endswith(b"\n") and len(found) < MOST_REQUEST:
        if not (byte := os.read(0, 1)):
            os._exit(1)
        found += byte
    return bytes(found)


def _end_with_the_asker() -> None:
    while os.read(0, 1 << 12):
        pass
    from opline.scratch import remove_unfinished

    remove_unfinished()
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
