# SPDX-License-Identifier: MIT
"""The babeltrace2 front end: babeltrace2 reads in a process of its own (opline.readers.ctf), which sends the events.

babeltrace2 aborts for some metadata, and goes on for ever for others. Here that ends or interrupts its process alone.
Reads whatever babeltrace2 reads; it is the reference for the native reader.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import signal
import socket
import subprocess
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from opline import _core
from opline.errors import OplineError, TraceError
from opline.interpreter import python
from opline.packages import how_to_install
from opline.readers.metadata import environment, metadata_text
from opline.readers.streams import examine, mend
from opline.readers.trace import is_ctf_2
from opline.scratch import scratch

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence
    from typing import IO, Any, Protocol

    class Consumer(Protocol):
        """What events are pushed into: a Core or a Printer of opline._core."""

        def address(self) -> int:
            """Address of the native object."""


PLUGIN = Path(__file__).parent.parent / "babeltrace-plugin-opline.so"
REFUSED = 3  # exit status of the process: the last line of its standard error says why


def version() -> str:
    """The version of babeltrace2's library. Raises OplineError if it or its Python bindings are missing."""
    if importlib.util.find_spec("bt2") is None:
        raise OplineError(f"babeltrace2's Python bindings are missing: {how_to_install('python3-bt2')}.")
    try:
        library = ctypes.CDLL(str(PLUGIN))
    except OSError as error:
        raise OplineError(f"Cannot load the babeltrace2 plug-in {PLUGIN}: build opline again (make build).") from error
    return ".".join(str(getattr(library, f"bt_version_get_{part}")()) for part in ("major", "minor", "patch"))


def reads_ctf_2() -> bool:
    """CTF 2 came with babeltrace 2.1."""
    major, minor = (int(x) for x in version().split(".")[:2])
    return (major, minor) >= (2, 1)


class Bt2Reader:
    """Reads the traces into a consumer, as NativeReader does."""

    name = "bt2"

    def __init__(self, folders: Sequence[str], unrecognised: str = "") -> None:
        """Looks for damaged files. ``unrecognised``: why the native reader does not read them. Raises TraceError for
        what this babeltrace2 can't read, OplineError without it.
        """
        self._version = version()
        self._unrecognised = f" The native reader does not recognise it: {unrecognised}." if unrecognised else ""
        self.traces = [Path(folder) for folder in folders]
        for trace in self.traces:
            if is_ctf_2(trace) and not reads_ctf_2():
                raise TraceError(
                    f"babeltrace2 {self._version} cannot read CTF 2: {trace}. Install babeltrace2 2.1 or later."
                )
        for trace in self.traces:
            try:
                metadata_text(trace)  # babeltrace 2.0 never comes back from metadata that is cut off
            except ValueError as error:
                raise TraceError(f"Cannot read {trace / 'metadata'}: {error}. Copy the trace again.") from error
            except OSError as error:
                raise TraceError(f"Cannot read {error.filename}: {error.strerror}.") from error
        self._known = examine(self.traces)

    def read(self, consumer: Consumer) -> Generator[None, None, None]:
        """Push all events, in slices: one per ``next()``. Raises TraceError with babeltrace2's own first cause."""
        with scratch("mended") as folder, self._reading(self._request(Path(folder))) as (ours, process, said):
            feed = _core.WireFeed(ours.fileno(), consumer)
            try:
                while feed.run():
                    yield
            except EOFError:
                raise TraceError(self._why(process.wait(), said) + self._unrecognised) from None
            except ValueError as error:
                raise TraceError(self._cannot(" ".join(str(error).split()))) from error

    def _request(self, folder: Path) -> dict[str, Any]:
        """What the process is to read, and what is known of that."""
        places = {}
        for i, trace in enumerate(self.traces):
            places[str(trace)] = trace
            if self._known:  # without LTTng's index, too: babeltrace 2.0 believes it, and aborts for some
                places[str(trace)] = folder / str(i)
                mend(trace, self._known.files, folder / str(i))

        def mended(streams: dict[str, Any]) -> dict[str, Any]:
            return {str(places[str(Path(path).parent)] / Path(path).name): what for path, what in streams.items()}

        request: dict[str, Any] = {"traces": [*places], "folders": [str(place) for place in places.values()]}
        if self._known:
            request |= {"damaged": mended(self._known.damaged), "rests": mended(self._known.rests)}
        return request

    @contextmanager
    def _reading(self, request: dict[str, Any]) -> Iterator[tuple[socket.socket, subprocess.Popen[bytes], IO[bytes]]]:
        """The process while it reads: our end of the socket, itself, its standard error. It is ended at the end."""
        ours, theirs = socket.socketpair()
        with ours, tempfile.TemporaryFile() as said:
            with theirs:
                process = subprocess.Popen(
                    python("-m", "opline.readers.ctf", str(theirs.fileno()), str(os.getpid())),
                    stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=said, pass_fds=[theirs.fileno()],
                )  # fmt: skip
            try:
                assert process.stdin is not None
                with suppress(BrokenPipeError), process.stdin as stdin:
                    stdin.write(json.dumps(request).encode())
                yield ours, process, said
            finally:
                process.kill()
                process.wait()

    def _why(self, status: int, said: IO[bytes]) -> str:
        """Why the process ended before it had finished."""
        said.seek(0)
        lines = said.read().decode(errors="replace").splitlines()
        if status == REFUSED and lines:
            return lines[-1]
        if status < 0:
            how = f"it was ended by {signal.Signals(-status).name}"
            return self._cannot(f"{how}. The metadata is damaged, or of a form that babeltrace2 does not know")
        return self._cannot(lines[-1] if lines else f"it ended with status {status}")

    def _cannot(self, why: str) -> str:
        where = str(self.traces[0]) if len(self.traces) == 1 else f"{self.traces[0]} and {len(self.traces) - 1} more"
        return f"babeltrace2 {self._version} cannot read {where}: {why}."

    def losses(self) -> tuple[dict[str, int], list[str]]:
        """Counts of what was wrong with the bytes, and a line for each of the first."""
        return (self._known.losses, self._known.messages) if self._known else ({}, [])

    def survey(self) -> dict[str, Any]:
        """What the trace says was there and is not."""
        return self._known.survey if self._known else {}

    def plugs(self) -> list[dict[str, Any]]:
        """The events name no device."""
        return []

    def version(self) -> str:
        """babeltrace2's."""
        return self._version

    def environment(self) -> list[dict[str, Any]]:
        """Path, environment and clock of each trace."""
        return [environment(trace) for trace in self.traces]
