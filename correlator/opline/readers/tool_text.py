# SPDX-License-Identifier: MIT
"""Recordings of other tools, which the tool itself prints as text: it runs in a process of its own, and is read as it
prints. Without the tool one line says which command makes the text.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from opline import _core
from opline.errors import TraceError
from opline.readers import registry
from opline.readers.formats import block_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO, BinaryIO

_BEGIN = 1 << 20  # bytes of a text, of which the events' names are asked


class ToolTextReader(block_text.TextReader):
    """Reads what a command prints of a recording. ``losses`` are known after reading."""

    def __init__(self, path: str, called: str, words: list[str]) -> None:
        """``words``: the command, without the recording, which is its last word. Raises TraceError without the tool."""
        super().__init__(path)
        self._called = called
        self._words = words
        if shutil.which(words[0]) is None or not Path(path).is_file():
            text = f"{shlex.join([*words, path])} > events.txt"
            raise TraceError(f"{path} is {called}: make text of it ({text}), and give that.")

    def read(self, consumer: _core.Core | _core.Printer | _core.Dropper) -> Iterator[float | None]:
        """Push all events, in slices; each ``next()`` gives None."""
        assert not isinstance(consumer, _core.Dropper), "checks leave out events of CTF traces only"
        with self._printed() as (text, process, said):
            refused: TraceError | None = None
            try:
                yield from self._read(text, consumer)
            except TraceError as error:  # no event: the tool may know why
                refused = error
            except ValueError as error:
                raise TraceError(f"Cannot read {self._path}: {error}.") from error
            if process.wait() != 0:
                said.seek(0)
                lines = said.read().decode(errors="replace").split("\n")
                why = next((line.strip() for line in lines if line.strip()), f"it ended with status {process.wait()}")
                raise TraceError(f"{self._words[0]} cannot read {self._path}: {why}")
            if refused is not None:
                raise refused

    def names(self) -> set[str]:
        """Of the block events in the text's begin."""
        with self._printed() as (text, _, _):
            return block_text.names(registry.Head(text.read(_BEGIN), self._path, False))

    @contextmanager
    def _printed(self) -> Iterator[tuple[BinaryIO, subprocess.Popen[bytes], IO[bytes]]]:
        """The text, the process that prints it, and its standard error. The process is ended at the end."""
        with tempfile.TemporaryFile() as said:
            process = subprocess.Popen(
                [*self._words, str(Path(self._path).absolute())],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=said,
            )  # fmt: skip
            assert process.stdout is not None
            try:
                with process.stdout as text:
                    yield text, process, said  # type: ignore[misc]
            finally:
                process.kill()
                process.wait()
