# SPDX-License-Identifier: MIT
"""Writes what the fuzz targets begin with, from a recorded trace and what was found so far:
`fuzz_seeds.py TRACE.tar.xz CORPUS.tar.xz FOLDER`.

FOLDER gets `ust.metadata`, `kernel.metadata` and the same as CTF 2 (for fuzz_packets), `stream` (for fuzz_metadata),
and the corpora `metadata/` and `packets/`: the metadata of both versions as it is and in part; the first events of
each stream, whole packets and cut. CORPUS has a folder for each target, of inputs that together take every way that has
been found (`-merge=1` of libFuzzer).
"""

from __future__ import annotations

import sys
import tarfile
from pathlib import Path

from tests.lib.ctf2_of import Converter

EVENTS = 8  # of a metadata text that is cut short
BYTES = 1000  # of a stream
VERSION = b"/* CTF 1.8 */"


def texts(data: bytes) -> bytes:
    """The text of metadata in packets (header of 37 bytes; sizes in bits at 24 and 28, little-endian).

    A text that is not in packets begins with its version; one in packets may be without (CTF 1.8.3, 7.1.1 and 7.1.2).
    """
    out, at = b"", 0
    while at < len(data):
        content, packet = (int.from_bytes(data[at + i : at + i + 4], "little") // 8 for i in (24, 28))
        out += data[at + 37 : at + content]
        at += packet
    return out if out.startswith(VERSION) else VERSION + b"\n" + out


def shortened(text: bytes) -> bytes:
    """The same with its first events only."""
    parts = text.split(b"\nevent {")
    return b"\nevent {".join(parts[: EVENTS + 1])


def shortened_2(text: str) -> str:
    """The same of CTF 2: without most of the fragments of event record classes."""
    head, *events = text.split('\x1e{"type": "event-record-class"')
    if not events:
        parts = text.split("\x1e")
        return "\x1e".join(p for i, p in enumerate(parts) if i < EVENTS + 8 or "event-record-class" not in p[:40])
    return '\x1e{"type": "event-record-class"'.join([head, *events[:EVENTS]])


def closed_early(stream: bytes, header: int) -> bytes:
    """The first packet, its content and packet size set to BYTES (64 bits each, 16 bytes into the context)."""
    bits = (BYTES * 8).to_bytes(8, "little")
    return stream[: header + 16] + bits + bits + stream[header + 32 : BYTES]


def main(archive: str, corpus: str, target: str) -> None:
    """Writes the files."""
    folder = Path(target)
    with tarfile.open(corpus) as tar:
        tar.extractall(folder)
    for part in ("metadata", "packets"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    with tarfile.open(archive) as tar:
        traces = {Path(name).parent for name in tar.getnames() if Path(name).name == "metadata"}
        for member in tar:
            path = Path(member.name)
            file = tar.extractfile(member) if member.isfile() and path.parent in traces else None
            if file is None or member.size == 0:
                continue
            kernel = "kernel" in path.parts
            kind = "kernel" if kernel else "ust"
            data = file.read()
            if path.name == "metadata":
                text = texts(data)
                (folder / f"{kind}.metadata").write_bytes(text)
                (folder / "metadata" / kind).write_bytes(shortened(text))
                new = Converter(text.decode()).convert()
                (folder / f"{kind}-2.metadata").write_text(new)
                (folder / "metadata" / f"{kind}-2").write_text(shortened_2(new))
                if not kernel:
                    (folder / "metadata" / "packets").write_bytes(data)
                continue
            header = 32  # magic, uuid, stream_id, stream_instance_id
            begin = closed_early(data, header)
            choice = bytes([kernel, 0, 0])  # in the order of OPLINE_FUZZ_METADATA; 2 more are the same as CTF 2
            (folder / "packets" / f"{kind}-{path.name}").write_bytes(choice + begin)
            (folder / "packets" / f"{kind}-2-{path.name}").write_bytes(bytes([kernel + 2, 0, 0]) + begin)
            (folder / "packets" / f"{kind}-{path.name}-two").write_bytes(choice + begin + begin)
            (folder / "packets" / f"{kind}-{path.name}-cut").write_bytes(choice + data[: BYTES // 2])
            (folder / "packets" / f"{kind}-{path.name}-files").write_bytes(
                bytes([kernel]) + BYTES.to_bytes(2, "little") + begin + begin
            )
            if not kernel:
                (folder / "stream").write_bytes(begin)


main(*sys.argv[1:])
