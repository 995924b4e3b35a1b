# SPDX-License-Identifier: MIT
"""A CTF trace's environment and clock, from its metadata file, without babeltrace2: for the manifest, not for decoding.

Formats: CTF 1.8 (TSDL, as plain text or in packets: https://diamon.org/ctf/v1.8.3/, section 7.1), and CTF 2 (JSON text
sequences: https://diamon.org/ctf/, fragments `trace-class` and `clock-class`).
"""

from __future__ import annotations

import json
import os
import re
import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    from opline.paths import StrPath

_PACKET_MAGIC = 0x75D11D57
_PACKET = "I16sIIIBBBBB"  # magic, uuid, checksum, content bits, packet bits, compression, encryption, scheme, version
_STRING = r'"((?:[^"\\]++|\\.)*+)"'


def metadata_text(folder: StrPath) -> str:
    """The text of the metadata: packets' payloads joined. Raises OSError; ValueError if the packets make no sense."""
    with open(os.path.join(folder, "metadata"), "rb") as file:
        data = file.read()
    order = next((o for o in "<>" if data[:4] == struct.pack(o + "I", _PACKET_MAGIC)), None)
    if order is None:
        return data.decode("utf-8", "replace")
    header = struct.Struct(order + _PACKET)
    at, parts = 0, []
    while at + header.size <= len(data):
        fields = header.unpack_from(data, at)
        content, packet = fields[3] // 8, fields[4] // 8
        if fields[0] != _PACKET_MAGIC or not header.size <= content <= packet:
            raise ValueError(f"its packet at byte {at} has a damaged header")
        if at + content > len(data):
            raise ValueError("it is cut off")
        parts.append(data[at + header.size : at + content])
        at += packet
    return b"".join(parts).decode("utf-8", "replace")


def environment(folder: StrPath) -> dict[str, Any]:
    """Path, environment (texts), uuid and clock of a trace; parts that the metadata does not have are empty."""
    try:
        text = metadata_text(folder)
        found = _of_ctf_2(text) if text.startswith("\x1e") else _of_tsdl(text)
    except (OSError, ValueError):  # the reader that decodes it says what is wrong with it
        found = {"env": {}, "uuid": "", "clock": {}}
    return {"path": str(folder), **found}


_EVENT = re.compile(r'\bevent\s*+\{\s*+(?:\w++\s*+=\s*+[^;"{]*+;\s*+)*?name\s*+=\s*+' + _STRING)


def event_names(folder: StrPath) -> set[str]:
    """The names of a trace's event classes; empty where the metadata can't be read."""
    try:
        text = metadata_text(folder)
        if not text.startswith("\x1e"):
            return {found[1] for found in _EVENT.finditer(text)}
        fragments = [json.loads(part) for part in text.split("\x1e") if part.strip()]
        return {str(f["name"]) for f in fragments if f.get("type") == "event-record-class" and "name" in f}
    except (OSError, ValueError, AttributeError, TypeError):
        return set()


_DECLARATION = re.compile(r"\b(?:stream|event)\s*+\{")


def declares_nothing(folder: StrPath) -> bool:
    """Does a trace's metadata declare neither a stream nor an event, or is it empty? LTTng-UST writes such a trace for
    a program that ends before the session daemon has registered it (lttng-sessiond 2.13). Its packets cannot be read.
    """
    try:
        text = metadata_text(folder)
        if not text.startswith("\x1e"):
            return not text or (_DECLARATION.search(text) is None and _block(text, "trace") != "")
        kinds = {json.loads(part).get("type") for part in text.split("\x1e") if part.strip()}
        return "trace-class" in kinds and not kinds & {"data-stream-class", "event-record-class"}
    except (OSError, ValueError, AttributeError):  # the reader says what is wrong with it
        return False


def _block(text: str, name: str) -> str:
    """The text between ``name {`` and ``};`` at the begin of a line; "" if there is none."""
    begin = f"\n{text}".find(f"\n{name} {{")
    if begin < 0:
        return ""
    begin += len(name) + 2
    end = text.find("\n};", begin)
    return text[begin : end + 1] if end >= 0 else ""


def _of_tsdl(text: str) -> dict[str, Any]:
    env = {
        k: s.replace('\\"', '"') or n
        for k, s, n in re.findall(rf"\b(\w++) = (?:{_STRING}|([-\w]++));", _block(text, "env"))
    }
    clock: dict[str, Any] = {}
    body = _block(text, "clock")
    if body:
        values = {k: a or b for k, a, b in re.findall(rf'\b(\w++) = (?:{_STRING}|"?+([-\w]++)"?+);', body)}
        clock = {
            "name": values.get("name", ""),
            "uuid": values.get("uuid", ""),
            "frequency": int(values.get("freq", "1000000000")),
            "offset_s": int(values.get("offset_s", "0")),
            "offset_cycles": int(values.get("offset", "0")),
        }
    trace = re.search(r'uuid = "([^"]*)"', _block(text, "trace"))
    return {"env": env, "uuid": trace.group(1) if trace else "", "clock": clock}


def _of_ctf_2(text: str) -> dict[str, Any]:
    env: dict[str, str] = {}
    uuid = ""
    clock: dict[str, Any] = {}
    for part in text.split("\x1e"):
        if not part.strip():
            continue
        fragment = json.loads(part)
        if fragment.get("type") == "trace-class":
            env = {k: str(v) for k, v in fragment.get("environment", {}).items()}
            uuid = str(fragment.get("uid", ""))
        elif fragment.get("type") == "clock-class" and not clock:
            offset = fragment.get("offset-from-origin", {})
            clock = {
                "name": str(fragment.get("name", "")),
                "uuid": str(fragment.get("uid", "")),
                "frequency": int(fragment.get("frequency", 1_000_000_000)),
                "offset_s": int(offset.get("seconds", 0)),
                "offset_cycles": int(offset.get("cycles", 0)),
            }
    return {"env": env, "uuid": uuid, "clock": clock}
