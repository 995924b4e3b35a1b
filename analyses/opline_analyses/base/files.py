# SPDX-License-Identifier: MIT
"""Where output goes: files that appear only when they are complete; what is not a regular file is written through."""

from __future__ import annotations

import os
import stat
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from opline.errors import OplineError, UsageError
from opline.folder import PART, Folder
from opline.talk import shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path
    from typing import BinaryIO


STDOUT = "/dev/stdout"
_PICTURES = (".svg", ".png", ".pdf", ".jpg", ".jpeg")
_escaped = False
#: Of a run or a recording, besides its tables and its trace.
_OWN = ("manifest.json", "recording.json", "extents.json", "stacks.json", "stdout.txt", "stderr.txt", "metadata")


def output_path(text: str) -> Path:
    """The argument of -o FILE, looked at before any work is done; - is standard output. Raises OplineError for one that
    can't be a file.
    """
    from pathlib import Path  # 5 ms to import: only where there is one

    if text == "-":
        return Path(STDOUT)
    path = Path(text)
    if path.is_dir():
        raise UsageError(f"Cannot write {path}: it is a directory. Name a file in it.")
    if not path.parent.is_dir():
        raise _failed(path, f"{path.parent} is not there" if not path.parent.exists() else "Not a directory")
    return path


def refuse_picture(path: object, command: str) -> None:
    """Raises UsageError where a command that writes text is told a picture's name."""
    if str(path or "").lower().endswith(_PICTURES):
        raise UsageError(
            f"-o {path}: `opline {command}` writes text, and no picture. `opline plot` and `opline heatmap` draw."
        )


def refuse_inside(read: Iterable[str | Path], written: Iterable[Path]) -> None:
    """Raises UsageError for a file that is to be written and is part of what is read: a run's table, a trace's stream.
    Others may lie in a run's folder.
    """
    from pathlib import Path

    for path in written:
        for given in read:
            source, target = Path(given).resolve(), path.resolve()
            if target == source and source.is_file():
                raise UsageError(f"Cannot write {path}: it is what is read. Name another file.")
            if not target.is_relative_to(source):
                continue
            own = target.name in _OWN or target.suffix == ".parquet"
            traces = [folder for folder in target.parents if folder.is_relative_to(source)]
            if own or any((folder / "metadata").is_file() for folder in traces):
                raise UsageError(f"Cannot write {path}: it is part of {given}, which is read. Name another file.")


def _failed(path: Path, why: str) -> OplineError:
    return OplineError(f"Cannot write {path}: {why}.")


@contextmanager
def complete_file(path: Path) -> Iterator[BinaryIO]:
    """Where to write what PATH shall have.

    A regular file, or a name that is free, gets it when it is complete: it is written beside, as PATH.part, and
    renamed. A device, a FIFO and a symbolic link stay what they are: it is written through, as it comes. Standard
    output is written on from where it is.
    """
    if str(path) == STDOUT:
        with standard_output() as out:
            yield out
        return
    try:
        before = _there(path)
        beside = before is None or stat.S_ISREG(before.st_mode)
        with _beside(path, before) if beside else _through(path) as out:
            yield out
    except OSError as error:
        raise _failed(path, os.strerror(error.errno or 0)) from error


@contextmanager
def complete_folder(path: Path) -> Iterator[Path]:
    """A folder in which to write what the new folder PATH shall have when it is complete. Raises OplineError."""
    from opline.scratch import new_folder

    if str(path) == STDOUT or path.exists() or path.is_symlink():
        raise UsageError(f"Cannot write {path}: a new folder is wanted.")
    try:
        with new_folder(path) as beside:
            yield beside
    except OSError as error:
        raise _failed(path, os.strerror(error.errno or 0)) from error


@contextmanager
def escaped_on_terminals(on: bool) -> Iterator[None]:
    """Whether a terminal gets standard output escaped: CSV is exact elsewhere, and a terminal would obey it."""
    global _escaped
    before, _escaped = _escaped, on
    try:
        yield
    finally:
        _escaped = before


@contextmanager
def standard_output() -> Iterator[BinaryIO]:
    """Where to write what goes to standard output. Raises BrokenPipeError where the reader has gone by the end, even if
    the pipe took all: what a command says after its output is for a reader.
    """
    sys.stdout.flush()
    if _escaped and sys.stdout.isatty():
        with _terminal() as out:
            yield out
    else:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        with suppress(ValueError):  # a caller's own stream, which is no file
            _refuse_closed(sys.stdout.fileno())


def _refuse_closed(descriptor: int) -> None:
    """Raises BrokenPipeError for a pipe or a socket that has no reader any more (poll(2): POLLERR)."""
    import select

    look = select.poll()
    look.register(descriptor, 0)
    if any(event & select.POLLERR for _, event in look.poll(0)):
        raise BrokenPipeError


@contextmanager
def _terminal() -> Iterator[BinaryIO]:
    """Where to write lines that a terminal shows and does not obey. It has a descriptor, for native code."""
    import threading

    read, write = os.pipe()

    def copy() -> None:
        with os.fdopen(read, encoding="utf-8", errors="backslashreplace", newline="\n") as lines:
            for line in lines:
                text, end = (line[:-1], "\n") if line.endswith("\n") else (line, "")
                with suppress(OSError):  # the terminal has gone: what is written is read on
                    sys.stdout.write(shown(text) + end)

    copier = threading.Thread(target=copy)
    copier.start()
    try:
        with os.fdopen(write, "wb") as out:
            yield out
    finally:
        copier.join()
        sys.stdout.flush()


def _there(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except FileNotFoundError:
        return None


@contextmanager
def _beside(path: Path, before: os.stat_result | None) -> Iterator[BinaryIO]:
    from opline.scratch import unfinished  # 10 ms to import

    with Folder(path.parent) as folder:
        part = path.name + PART
        try:
            with unfinished(lambda: folder.remove(part)), os.fdopen(folder.create(part), "wb") as out:
                if before is not None:
                    os.fchmod(out.fileno(), stat.S_IMODE(before.st_mode))
                yield out
            folder.rename(part, path.name)
        except BaseException:
            with suppress(OSError):
                folder.remove(part)
            raise


@contextmanager
def _through(path: Path) -> Iterator[BinaryIO]:
    """By open(2), so that the kernel's say on links in /tmp holds (fs.protected_symlinks, proc_sys_fs(5))."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
    try:
        with os.fdopen(descriptor, "wb", closefd=False) as out:
            yield out
    except BaseException:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.ftruncate(descriptor, 0)  # a part of the output would look like all of it
        raise
    finally:
        os.close(descriptor)
