# SPDX-License-Identifier: MIT
"""Hosts from one text: ``client,store[1-3]``. ClusterShell's node sets, where installed, know groups (@stores)."""

from __future__ import annotations

import re

from opline.errors import UsageError
from opline.packages import how_to_install

MOST = 10_000
# never an option of ssh: begins without a hyphen
_HOST = re.compile(r"(?:[A-Za-z0-9_.:-]+@)?[A-Za-z0-9][A-Za-z0-9_.:-]*")
_RANGE = re.compile(r"\[([0-9,-]+)\]")


def nodes(text: str) -> list[str]:
    """The hosts, in order, each once. Raises UsageError."""
    found = _of_clustershell(text) if "@" in text and "[" not in text and text.startswith("@") else None
    if found is None:
        found = [host for part in _parts(text) for host in _expanded(part.strip(), text)]
    if not found:
        raise UsageError(f"--hosts {text}: names no host.")
    for host in found:
        if not _HOST.fullmatch(host):
            raise UsageError(f"--hosts {text}: {host!r} is no name of a host, such as store1 or root@store[1-3].")
    if len(set(found)) < len(found):
        raise UsageError(f"--hosts {text}: names a host twice.")
    return found


def _parts(text: str) -> list[str]:
    """The texts between commas outside of brackets."""
    found, within = [""], False
    for piece in re.split(r"([\[\],])", text):
        within = piece == "[" or (within and piece != "]")
        if piece == "," and not within:
            found.append("")
        else:
            found[-1] += piece
    return found


def _expanded(part: str, whole: str) -> list[str]:
    """store[1-3,7] is store1, store2, store3, store7; leading zeros stay."""
    if (found := _RANGE.search(part)) is None:
        return [part] if part else []
    names: list[str] = []
    for one in found[1].split(","):
        first, _, last = one.partition("-")
        last = last or first
        if not (first.isdigit() and last.isdigit()) or not 0 <= int(last) - int(first) < MOST:
            raise UsageError(f"--hosts {whole}: [{found[1]}] is no range, such as [1-3] or [01-16,20].")
        width = len(first) if first.startswith("0") else 0
        for number in range(int(first), int(last) + 1):
            names += _expanded(f"{part[: found.start()]}{number:0{width}d}{part[found.end() :]}", whole)
    return names


def _of_clustershell(text: str) -> list[str]:
    """The hosts of a group. Raises UsageError."""
    try:
        from ClusterShell.NodeSet import NodeSet
    except ImportError as error:
        raise UsageError(
            f"--hosts {text}: groups of hosts need ClusterShell: {how_to_install('clustershell')}."
        ) from error
    try:
        return [str(host) for host in NodeSet(text)]
    except Exception as error:  # several kinds, also from the configuration
        raise UsageError(f"--hosts {text}: {error}") from error


def name_of(host: str) -> str:
    """A host's name in a cluster: without the user."""
    return host.rpartition("@")[2]
