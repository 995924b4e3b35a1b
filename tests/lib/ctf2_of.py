# SPDX-License-Identifier: MIT
"""Rewrites the metadata of a CTF 1.8 trace of LTTng as CTF 2, over the same stream files: for tests only.

A parser of its own, so that a mistake in the reader's is not made twice. A kernel trace becomes what lttng-modules
writes (aliases of field classes, relative locations), a user-space trace what lttng-sessiond writes (all in place,
locations from an origin). Unknown TSDL is a KeyError or a ValueError.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from opline.readers.metadata import metadata_text

Json = dict[str, Any]
TOKEN = re.compile(r'/\*.*?\*/|"(?:[^"\\]|\\.)*"|[A-Za-z_]\w*|0x[0-9a-fA-F]+|\d+|\.\.\.|:=|\S', re.DOTALL)
HEADER_ROLES = {
    "magic": "packet-magic-number",
    "uuid": "metadata-stream-uuid",
    "stream_id": "data-stream-class-id",
    "stream_instance_id": "data-stream-id",
}
CONTEXT_ROLES = {
    "timestamp_begin": "default-clock-timestamp",
    "timestamp_end": "packet-end-default-clock-timestamp",
    "content_size": "packet-content-length",
    "packet_size": "packet-total-length",
    "packet_seq_num": "packet-sequence-number",
    "events_discarded": "discarded-event-record-counter-snapshot",
}
EVENT_ROLES = {"id": "event-record-class-id", "timestamp": "default-clock-timestamp"}
LEVELS = [
    "emergency",
    "alert",
    "critical",
    "error",
    "warning",
    "notice",
    "info",
    "debug:system",
    "debug:program",
    "debug:process",
    "debug:module",
    "debug:unit",
    "debug:function",
    "debug:line",
    "debug",
]


def plain(name: str) -> str:
    """LTTng's names in CTF 1.8 begin with an underscore that is no part of them."""
    return name.removeprefix("_")


class Tsdl:
    """The blocks of a TSDL text: ``blocks`` is a list of (kind, attributes, scopes)."""

    def __init__(self, text: str) -> None:
        self.tokens: list[str] = [t for t in TOKEN.findall(text) if not t.startswith("/*")]
        self.at = 0
        self.named: dict[str, Json] = {}
        self.order = re.search(r"byte_order = (\w+)", text)
        self.blocks: list[tuple[str, dict[str, str], dict[str, Json]]] = []
        while self.at < len(self.tokens):
            self.top_level()

    def take(self, expected: str | None = None) -> str:
        token = self.tokens[self.at]
        if expected is not None and token != expected:
            raise ValueError(f"{expected!r} expected, not {token!r}")
        self.at += 1
        return token

    def accept(self, token: str) -> bool:
        if self.tokens[self.at] != token:
            return False
        self.at += 1
        return True

    def words(self, end: str) -> str:
        """Tokens up to ``end``, joined."""
        out = []
        while self.tokens[self.at] != end:
            out.append(self.take())
        return " ".join(out)

    def top_level(self) -> None:
        if self.tokens[self.at] in ("typealias", "struct", "enum"):
            self.declaration()
            return
        kind, attributes, scopes = self.take(), {}, {}
        self.take("{")
        while not self.accept("}"):
            name = self.take()
            while self.accept("."):
                name += "." + self.take()
            if self.accept(":="):
                scopes[name] = self.type()
            else:
                self.take("=")
                attributes[name] = self.words(";")
            self.take(";")
        self.accept(";")
        self.blocks.append((kind, attributes, scopes))

    def declaration(self) -> None:
        if self.accept("typealias"):
            type_ = self.type()
            self.take(":=")
            self.named[self.words(";")] = type_
        else:
            self.type()
        self.take(";")

    def type(self) -> Json:
        word = self.take()
        if word == "integer":
            return self.integer()
        if word == "floating_point":
            a = self.attributes()
            length = int(a["exp_dig"]) + int(a["mant_dig"])
            return {"type": "fixed-length-floating-point-number", "length": length, **self.placed(a, 8)}
        if word == "string":
            if self.tokens[self.at] == "{":
                self.attributes()
            return {"type": "null-terminated-string"}
        if word == "enum":
            return self.enum()
        if word == "struct":
            return self.struct()
        if word == "variant":
            return self.variant()
        while word not in self.named:
            word += " " + self.take()
        return self.named[word]

    def attributes(self) -> dict[str, str]:
        out = {}
        self.take("{")
        while not self.accept("}"):
            name = self.take()
            self.take("=")
            out[name] = self.words(";")
            self.take(";")
        return out

    def placed(self, a: dict[str, str], usual: int) -> Json:
        order = a.get("byte_order", self.order[1] if self.order else "le")
        big = order in ("be", "network")
        return {"byte-order": "big-endian" if big else "little-endian", "alignment": int(a.get("align", usual))}

    def integer(self) -> Json:
        a = self.attributes()
        size = int(a["size"])
        kind = "signed" if a.get("signed", "0") in ("1", "true") else "unsigned"
        base = a.get("base", "10")
        base = {"decimal": "10", "hexadecimal": "16", "octal": "8", "binary": "2"}.get(base, base)
        out = {"type": f"fixed-length-{kind}-integer", "length": size, "preferred-display-base": int(base)}
        if a.get("encoding", "none") not in ("none",):
            out["text"] = True
        return {**out, **self.placed(a, 8 if size % 8 == 0 else 1)}

    def enum(self) -> Json:
        name = "" if self.tokens[self.at] in (":", "{") else self.take()
        if self.tokens[self.at] not in (":", "{"):
            return self.named["enum " + name]
        self.take(":")
        out = dict(self.type())
        mappings: dict[str, list[list[int]]] = {}
        self.take("{")
        following = 0
        while not self.accept("}"):
            label = plain(self.take().strip('"'))
            low = high = following
            if self.accept("="):
                low = high = self.number()
                if self.accept("..."):
                    high = self.number()
            mappings.setdefault(label, []).append([low, high])
            following = high + 1
            self.accept(",")
        out["mappings"] = mappings
        if name:
            self.named["enum " + name] = out
        return out

    def number(self) -> int:
        sign = -1 if self.accept("-") else 1
        return sign * int(self.take(), 0)

    def struct(self) -> Json:
        name = "" if self.tokens[self.at] in ("{",) else self.take()
        if self.tokens[self.at] != "{":
            return self.named["struct " + name]
        out: Json = {"type": "structure", "member-classes": self.members()}
        if self.accept("align"):
            self.take("(")
            out["minimum-alignment"] = int(self.take())
            self.take(")")
        if name:
            self.named["struct " + name] = out
            out["alias"] = name
        return out

    def members(self) -> list[Json]:
        out = []
        self.take("{")
        while not self.accept("}"):
            if self.tokens[self.at] == "typealias":
                self.declaration()
                continue
            type_ = self.type()
            name = plain(self.take())
            while self.accept("["):
                length = self.take()
                self.take("]")
                text = type_.get("text") and type_["length"] == 8
                array: Json = {} if text else {"element-field-class": type_}
                if length.isdigit():
                    array["type"] = "static-length-string" if text else "static-length-array"
                    array["length"] = int(length)
                else:
                    array["type"] = "dynamic-length-string" if text else "dynamic-length-array"
                    array["length-field-location"] = {"path": [plain(length)]}
                type_ = array
            out.append({"name": name, "field-class": type_})
            self.take(";")
        return out

    def variant(self) -> Json:
        if self.tokens[self.at] != "<":
            self.take()
        self.take("<")
        tag = plain(self.take())
        self.take(">")
        return {"type": "variant", "selector-field-location": {"path": [tag]}, "options": self.members()}


class Converter:
    """One trace's metadata."""

    def __init__(self, text: str) -> None:
        self.tsdl = Tsdl(text)
        self.fragments: list[Json] = []
        self.aliases: set[str] = set()
        env = next(a for kind, a, _ in self.tsdl.blocks if kind == "env")
        self.kernel = env["domain"] == '"kernel"'

    def field_class(self, fc: Json, roles: dict[str, str], origin: str, path: tuple[str, ...], inside: Json) -> Any:
        """What is written for a field class; ``inside``: the mappings of the structure's members so far."""
        out = {k: v for k, v in fc.items() if k not in ("text", "alias")}
        if out["type"] == "structure":
            known: Json = {}
            out["member-classes"] = []
            for m in fc["member-classes"]:
                name, sub = m["name"], m["field-class"]
                written = self.field_class(sub, roles, origin, (*path, name), known)
                known[name] = sub
                if name in roles and "type" in written and name != "uuid" and "integer" in written["type"]:
                    written["roles"] = [roles[name]]
                if name == "uuid" and roles is HEADER_ROLES:
                    written = {"type": "static-length-blob", "length": 16, "roles": [roles[name]]}
                out["member-classes"].append({"name": name, "field-class": written})
            return out
        if "element-field-class" in out:
            out["element-field-class"] = self.field_class(fc["element-field-class"], {}, origin, path, inside)
        for key in ("length-field-location", "selector-field-location"):
            if key in out and not self.kernel:
                out[key] = {"origin": origin, "path": [*path[:-1], *out[key]["path"]]}
        if out["type"] == "variant":
            ranges = inside[fc["selector-field-location"]["path"][0]]["mappings"]
            out["options"] = [
                {
                    "name": o["name"],
                    "selector-field-ranges": ranges[o["name"]],
                    "field-class": self.field_class(o["field-class"], roles, origin, path, inside),
                }
                for o in fc["options"]
            ]
        return out

    def scope(self, fragment: Json, key: str, fc: Json | None, roles: dict[str, str], origin: str) -> None:
        if fc is None:
            return
        written = self.field_class(fc, roles, origin, (), {})
        name = fc.get("alias", "packet-header" if roles is HEADER_ROLES else "")
        if not (self.kernel and name):
            fragment[key] = written
            return
        if name not in self.aliases:
            self.aliases.add(name)
            self.fragments.append({"type": "field-class-alias", "name": name + "-itself", "field-class": written})
            self.fragments.append({"type": "field-class-alias", "name": name, "field-class": name + "-itself"})
        fragment[key] = name

    def convert(self) -> str:
        clocks: list[str] = []
        env = {}
        for kind, attributes, scopes in self.tsdl.blocks:
            a = {k: v.strip('"') for k, v in attributes.items()}
            if kind == "env":
                env.update({k: v.strip('"') if v[0] == '"' else int(v, 0) for k, v in attributes.items()})
            elif kind == "trace":
                uuid = a["uuid"]
                self.fragments.append(
                    {"type": "preamble", "version": 2, "uuid": list(bytes.fromhex(uuid.replace("-", "")))}
                )
                trace = {
                    "type": "trace-class",
                    "namespace": "lttng.org,2009",
                    "name": "",
                    "uid": uuid,
                    "environment": env,
                }
                self.scope(trace, "packet-header-field-class", scopes["packet.header"], HEADER_ROLES, "packet-header")
                self.fragments.append(trace)
            elif kind == "clock":
                clocks.append(a["name"])
                total = int(a.get("offset", "0").replace(" ", "")) + int(a.get("offset_s", "0")) * int(a["freq"])
                self.fragments.append(
                    {
                        "type": "clock-class",
                        "id": a["name"],
                        "name": a["name"],
                        **({"uid": a["uuid"]} if "uuid" in a else {}),
                        "description": a["description"],
                        "frequency": int(a["freq"]),
                        "origin": "unix-epoch",
                        "offset-from-origin": dict(
                            zip(("seconds", "cycles"), divmod(total, int(a["freq"])), strict=True)
                        ),
                    }
                )
            elif kind == "stream":
                stream = {"type": "data-stream-class", "id": int(a.get("id", "0")), "default-clock-class-id": clocks[0]}
                self.scope(
                    stream, "packet-context-field-class", scopes.get("packet.context"), CONTEXT_ROLES, "packet-context"
                )
                self.scope(
                    stream,
                    "event-record-header-field-class",
                    scopes.get("event.header"),
                    EVENT_ROLES,
                    "event-record-header",
                )
                self.scope(
                    stream,
                    "event-record-common-context-field-class",
                    scopes.get("event.context"),
                    {},
                    "event-record-common-context",
                )
                self.fragments.append(stream)
            elif kind == "event":
                event: Json = {
                    "type": "event-record-class",
                    "id": int(a["id"]),
                    "data-stream-class-id": int(a["stream_id"]),
                }
                event["name"] = a["name"]
                if "loglevel" in a:
                    event["attributes"] = {"lttng.org,2009": {"log-level": LEVELS[int(a["loglevel"])]}}
                self.scope(
                    event, "specific-context-field-class", scopes.get("context"), {}, "event-record-specific-context"
                )
                self.scope(event, "payload-field-class", scopes.get("fields"), {}, "event-record-payload")
                self.fragments.append(event)
        ordered = sorted(self.fragments, key=lambda f: ("event" in f["type"], f["type"] == "data-stream-class"))
        indent = None if self.kernel else 2
        return "".join(f"\x1e{json.dumps(f, indent=indent)}\n" for f in ordered)


def convert(source: Path, target: Path) -> None:
    """Make ``target`` a copy of the trace folder(s) at or below ``source``: links to the streams, metadata in CTF 2."""
    for metadata in sorted(source.rglob("metadata")):
        folder = metadata.parent
        into = target / folder.relative_to(source)
        into.mkdir(parents=True, exist_ok=True)
        for path in folder.iterdir():
            if path.name != "metadata":
                (into / path.name).symlink_to(path.absolute())
        (into / "metadata").write_text(Converter(metadata_text(folder)).convert())


if __name__ == "__main__":
    convert(Path(sys.argv[1]), Path(sys.argv[2]))
