# SPDX-License-Identifier: MIT
"""Files made in a directory that is open: nothing that lies there is followed, and none is seen before it is complete.

A directory may come from somebody (an unpacked archive, a place where others write). A name in it may be a symbolic
link to a file of ours: a file is made anew (O_EXCL, O_NOFOLLOW), relative to the directory's descriptor.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TypeAlias

    from opline.paths import StrPath

    Access: TypeAlias = tuple[int, int | None]

PART = ".part"
#: Who may use a file: the bits of its mode, and the group that they are about (None: whichever it gets).
ANYBODY: Access = (0o666, None)
TRACERS: Access = (0o660, None)  # as LTTng makes a trace's files
OURS: Access = (0o600, None)


def readers_of(paths: Iterable[StrPath]) -> Access:
    """Who may read all of these files and directories: nobody else may read what is derived from them."""
    mode, groups = 0o644, set()
    for path in paths:
        about = os.stat(path)
        groups.add(about.st_gid)
        needed = 0o555 if stat.S_ISDIR(about.st_mode) else 0o444
        for bits in (0o070, 0o007):
            if needed & bits & ~about.st_mode:
                mode &= ~bits
    if len(groups) != 1:
        return (mode if mode & 0o004 else mode & ~0o070), None
    return mode, groups.pop()


class Folder:
    """An open directory; ``close()`` lets go of it. All raise OSError."""

    def __init__(self, path: StrPath, within: Folder | None = None, follow: bool = True) -> None:
        """``within``: where the path begins; not ``follow``: it may not be a symbolic link."""
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
        self.descriptor: int = os.open(path, flags, dir_fd=None if within is None else within.descriptor)

    def __enter__(self) -> Folder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the directory."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def names(self) -> list[str]:
        """What is in it, sorted."""
        with os.scandir(self.descriptor) as entries:
            return sorted(entry.name for entry in entries)

    def create(self, name: str, access: Access = ANYBODY, flags: int = os.O_WRONLY) -> int:
        """The descriptor of a new file, in place of whatever has its name; the umask takes its bits away."""
        self.remove(name)
        return self._open(name, access, flags | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW)

    def _open(self, name: str, access: Access, flags: int) -> int:
        mode, group = access
        descriptor = os.open(name, flags | os.O_CLOEXEC, mode, dir_fd=self.descriptor)
        if group is not None and mode & 0o070 and not mode & 0o004:
            found = os.fstat(descriptor)
            if found.st_gid != group:  # the bits are about another group
                os.fchmod(descriptor, found.st_mode & 0o707)
        return descriptor

    def _unnamed(self, access: Access) -> int | None:
        """The descriptor of a file that is gone if nobody names it; None where the file system has no such files, or
        /proc is not there to name it by (open(2): O_TMPFILE).
        """
        try:
            descriptor = self._open(".", access, os.O_WRONLY | os.O_TMPFILE)
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT):
                raise
            return None
        with suppress(OSError):
            if os.path.samestat(os.stat(f"/proc/self/fd/{descriptor}"), os.fstat(descriptor)):
                return descriptor
        os.close(descriptor)
        return None

    def _name(self, descriptor: int, name: str) -> bool:
        """Give an unnamed file a name; False: another has it."""
        try:
            os.link(f"/proc/self/fd/{descriptor}", name, dst_dir_fd=self.descriptor, follow_symlinks=True)
        except FileExistsError:
            return False
        return True

    def rename(self, name: str, to: str) -> None:
        """Give a file the name of another one, which it replaces."""
        os.replace(name, to, src_dir_fd=self.descriptor, dst_dir_fd=self.descriptor)

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self.descriptor)

    def sync(self, name: str) -> None:
        """Wait until what is in a file is on the disk."""
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self.descriptor)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def sync_names(self) -> None:
        """Wait until the names that were made, changed and removed are on the disk."""
        try:
            os.fsync(self.descriptor)
        except OSError as error:
            if error.errno != errno.EINVAL:  # a file system that can't do that for directories
                raise

    def write(self, name: str, text: str, access: Access = ANYBODY, durable: bool = False) -> None:
        """A file with this text, seen once it is whole; ``durable``: it survives a power cut. Whoever is killed leaves
        nothing of it, but where the file system has no files without a name.
        """
        part, unnamed = name + PART, self._unnamed(access)
        try:
            with os.fdopen(self.create(part, access) if unnamed is None else unnamed, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                if durable:
                    os.fsync(file.fileno())
                if unnamed is None or not self._name(unnamed, name):
                    if unnamed is not None:  # only a name can take another one's place
                        self.remove(part)
                        self._name(unnamed, part)
                    self.rename(part, name)
            if durable:
                self.sync_names()
        except BaseException:
            with suppress(OSError):
                self.remove(part)
            raise


def sync_tree(path: StrPath) -> None:
    """Wait until all files at and below a directory are on the disk, and their names. Raises OSError."""
    with Folder(path, follow=False) as folder:
        with os.scandir(folder.descriptor) as entries:
            found = [(e.name, e.is_dir(follow_symlinks=False), e.is_file(follow_symlinks=False)) for e in entries]
        for name, is_folder, is_file in found:
            if is_folder:
                sync_tree(os.path.join(path, name))
            elif is_file:
                folder.sync(name)
        folder.sync_names()
