# SPDX-License-Identifier: MIT
"""Prints what opline finds in every recorded trace: for check_arm64.py, which compares two machines' answers.

usage: answers.py [FOLDER]      FOLDER: where the extension module is, if it is not in the package
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import sys
import tempfile
from pathlib import Path

import opline

if len(sys.argv) > 1:
    opline.__path__.insert(0, sys.argv[1])

from tests.lib.recorded import NAMES, model_of, unpack

from opline.correlation import correlate
from opline_analyses.cli import main

COMMANDS = (
    ("stages", "--csv"), ("ops", "--slowest", "3"), ("why",), ("hist", "--json"), ("iostat", "0.1"), ("btt",),
    ("csv",), ("losses",), ("export", "--to", "speedscope", "-o", "-"),
)  # fmt: skip


def answers(name: str, folder: Path) -> dict[str, object]:
    """Of one trace: the checksum of each table of its run, what the core counted, and of what each command prints."""
    correlate(unpack(name, folder), model_of(name), folder / "run", reader="native", progress=False)
    manifest = json.loads((folder / "run" / "manifest.json").read_text())
    found = {"core": manifest["core"], "tables": {p.name: digest(p.read_bytes()) for p in folder.glob("run/*.parquet")}}
    for command in COMMANDS:
        out = io.TextIOWrapper(io.BytesIO())
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
            status = main([command[0], str(folder / "run"), *command[1:]])
        out.flush()
        text = out.buffer.getvalue().replace(str(folder).encode(), b"FOLDER")
        found[" ".join(command)] = [status, digest(text)]
    return found


def digest(what: bytes) -> str:
    return hashlib.sha256(what).hexdigest()


if __name__ == "__main__":
    for name in NAMES:
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps({name: answers(name, Path(folder))}, sort_keys=True), flush=True)
