# SPDX-License-Identifier: MIT
"""How a text came here: what mail programs, terminals and logs have put around its lines is taken off again.

The marks and the coding of UTF-16 (PowerShell's `>`), quoted-printable (of a mail that was saved as it came, RFC 2045),
the colours of a terminal, blanks that do not break (of a page), and what stands before each line: the `> ` of a
quotation, the time that journald, syslog, Docker, Kubernetes or `ts` adds. What stands before lines is taken off only
where nearly all of the first lines have it: a tool's own line may begin in such a way. Events on several lines are put
on one again (broken_lines.py). Bytes that are no text stay as they are.
"""

from __future__ import annotations

import binascii
import codecs
import io
import re
from typing import TYPE_CHECKING

from opline.readers.broken_lines import BrokenLines

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import BinaryIO

LOOKED_AT = 1 << 12  # bytes, which show how a text came
_UTF8 = b"\xef\xbb\xbf"
_UTF16 = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
_COLOUR = re.compile(rb"\x1b(?:\[[0-9;:]{0,32}[mK]|\(B)")  # and no other order to a terminal: a name may have it
#: In quoted-printable each `=` is one of these: a byte, or a line's end that is none. A line has at most 76 letters.
_QUOTED = re.compile(rb"=[0-9A-F]{2}|=\r?\n")
_SURELY_QUOTED = re.compile(rb"=3D|^.{71,75}=\r?$|=20\r?$", re.MULTILINE)
_NO_BREAK = b"\xc2\xa0"
_HOST = rb"[\w.-]{1,64} [\w./@-]{1,64}(?:\[\d{1,9}\])?: ?"  # and the program's name
_DAY = rb"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d "
_DATE = rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d"
_QUOTATION = re.compile(rb"(?:[>|] ?){1,8}")
_TIMED = re.compile(rb"\d\.\d{6,9}[:\s]")  # an event's first line: a mail program may not mark what it has broken off
_BEFORE = (
    _QUOTATION,
    *map(
        re.compile,
        (
            _DAY + _HOST,
            _DATE + rb"(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)? " + _HOST,
            _DATE + rb"[.,]\d{6,9}(?:Z|[+-]\d\d:?\d\d) (?:std(?:out|err) [FP] )?",
            _DAY,
        ),
    ),
)
_SHARE = 0.8  # of the lines
_FEWEST = 2


class Carriage:
    """How a text came that begins with ``first``, its first LOOKED_AT bytes or all of it."""

    def __init__(self, first: bytes) -> None:
        first = first[:LOOKED_AT]
        self._coding = _UTF16.get(first[:2], "")
        self._marked = first.startswith(_UTF8)
        self._quoted = _is_quoted(first)
        first = self._decoded(first)
        self._before: re.Pattern[bytes] | None = None
        self._changes = self._no_break = self._coloured = False
        self._broken = BrokenLines([])
        if b"\0" in first:  # no text
            self._coding = ""
            return
        self._coloured = _COLOUR.search(first) is not None
        self._no_break = _NO_BREAK in first
        lines = [line for line in self._line(first).splitlines() if line.strip()]
        timed = [line for line in lines if _TIMED.search(line)]
        for before in _BEFORE:
            asked = timed if before is _QUOTATION and len(timed) >= _FEWEST else lines
            if len(asked) >= _FEWEST and sum(before.match(line) is not None for line in asked) >= _SHARE * len(asked):
                self._before = before
                break
        self._broken = BrokenLines([self._line(line) for line in first.splitlines()])
        self._changes = self._coloured or self._no_break or self._before is not None

    def _decoded(self, data: bytes) -> bytes:
        if self._coding:
            decode = codecs.getincrementaldecoder(self._coding)("replace").decode
            return decode(data[2:]).encode("utf-8", "replace")  # without half a letter at the end
        data = data.removeprefix(_UTF8)
        return binascii.a2b_qp(data) if self._quoted else data

    def _line(self, line: bytes) -> bytes:
        if self._coloured:
            line = _COLOUR.sub(b"", line)
        if self._no_break:
            line = line.replace(_NO_BREAK, b" ")
        if self._before is not None and (found := self._before.match(line)):
            line = line[found.end() :]
        return line

    def plain(self, data: bytes) -> bytes:
        """The text's first bytes as its writer wrote them."""
        data = self._decoded(data)
        if not (self._changes or self._broken):
            return data
        lines = map(self._line, data.splitlines(keepends=True))
        return b"".join(self._broken.whole(lines) if self._broken else lines)

    def opened(self, file: BinaryIO) -> BinaryIO:
        """A file, at its first byte, as its writer wrote it."""
        if self._marked:
            file.read(len(_UTF8))
        if self._coding:
            file.read(2)
            decode = codecs.getincrementaldecoder(self._coding)("replace").decode
            file = io.BufferedReader(_Recoded(file, decode))
        if self._quoted:
            file = io.BufferedReader(_Unquoted(file))
        if self._changes:
            file = io.BufferedReader(_Lines(file, self._line))
        return io.BufferedReader(_Whole(file, self._broken)) if self._broken else file


class _Made(io.RawIOBase):
    """Bytes that are made of another file's."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__()
        self._file = file
        self._left = b""

    def _more(self) -> bytes:
        """Some more, b"" at the end."""
        raise NotImplementedError

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        self._left = self._left or self._more()
        found = self._left[: len(buffer)]
        self._left = self._left[len(found) :]
        buffer[: len(found)] = found
        return len(found)

    def fileno(self) -> int:
        return self._file.fileno()

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


class _Recoded(_Made):
    def __init__(self, file: BinaryIO, decode: Callable[[bytes, bool], str]) -> None:
        super().__init__(file)
        self._decode = decode

    def _more(self) -> bytes:
        found = b""
        while not found and (data := self._file.read1()):  # type: ignore[attr-defined]
            found = self._decode(data, False).encode("utf-8", "replace")
        return found


def _is_quoted(first: bytes) -> bool:
    """Whether a text is in quoted-printable."""
    begun = first[: first.rfind(b"\n") + 1]
    if b"\0" in begun or not _SURELY_QUOTED.search(begun):
        return False
    return len(_QUOTED.findall(begun)) == begun.count(b"=") and max(map(len, begun.splitlines())) <= _QUOTED_LONGEST


class _Unquoted(_Made):
    def _more(self) -> bytes:
        """A line with all that it goes on with, or the first bytes of a long one."""
        found = b""
        while len(found) < _LONGEST and (data := self._file.readline(_LONGEST)):
            found += data
            if not data.rstrip(b"\r\n").endswith(b"="):
                break
        return binascii.a2b_qp(found)


class _Lines(_Made):
    def __init__(self, file: BinaryIO, line: Callable[[bytes], bytes]) -> None:
        super().__init__(file)
        self._line = line

    def _more(self) -> bytes:
        """A line, or the first bytes of a long one."""
        found = b""
        while not found and (data := self._file.readline(_LONGEST)):
            found = self._line(data)
        return found


class _Whole(_Made):
    """Broken lines on one each."""

    def __init__(self, file: BinaryIO, broken: BrokenLines) -> None:
        super().__init__(file)
        self._lines = broken.whole(iter(lambda: file.readline(_LONGEST), b""))

    def _more(self) -> bytes:
        return next(self._lines, b"")


_LONGEST = 1 << 16
_QUOTED_LONGEST = 80  # letters of a line: some programs count otherwise than RFC 2045
