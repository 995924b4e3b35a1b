# SPDX-License-Identifier: MIT
"""The page: one HTML file with its data, its script and its style, that may load nothing else.

Takes PageData; gives the text of the file. The script is the modules of assets/ one after the other: a page opened from
a disk can't import. A Content-Security-Policy in the file names the script and the style by their SHA-256, so nothing
else runs, whatever a trace's names say. All names are text: in JSON with `<` escaped, and by html.escape in the table
that stands in the file for who has no script.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from importlib import resources
from typing import Any

from opline.talk import shown
from opline_analyses.base.text import percent, table_digits, us
from opline_analyses.ops.stages import StageTable
from opline_analyses.report.data import PageData

#: In this order: a module uses what stands before it.
MODULES = (
    "dom.js", "format.js", "decode.js", "data.js", "state.js", "scales.js", "cells.js", "quantiles.js", "pointer.js",
    "heat.js", "difference.js", "sorting.js", "stages.js", "who.js", "list.js", "served.js", "asked.js", "copy.js",
    "zoom.js", "waterfall.js", "lanes.js", "threads.js", "devices.js", "facts.js", "search.js", "notes.js", "main.js",
)  # fmt: skip
_IMPORT = re.compile(r"^import (\{[^}]*\}) from '\./([a-z]+)\.js';$", re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|const|class) (\w+))", re.MULTILINE)


def asset(name: str) -> str:
    """A file of assets/."""
    return (resources.files("opline_analyses.report") / "assets" / name).read_text(encoding="utf-8")


def script(served: bool = False) -> str:
    """All modules as one: each in a function of its own, which gives what it exports. That of a file can ask nobody for
    anything.
    """
    parts = []
    for name in MODULES:
        text = asset("unserved.js" if name == "served.js" and not served else name)
        exports = ", ".join(_EXPORT.findall(text))
        body = _EXPORT.sub("", _IMPORT.sub(r"const \1 = module_\2;", text))
        parts.append(f"const module_{name.removesuffix('.js')} = (() => {{\n{body}\nreturn {{ {exports} }};\n}})();\n")
    return "".join(parts)


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def policy(code: str, style: str, served: bool = False) -> str:
    """The page's Content-Security-Policy. ``served``: it may ask the server that it comes from."""
    return (
        f"default-src 'none'; script-src '{_hash(code)}'; style-src '{_hash(style)}'; img-src data: blob:; "
        + ("connect-src 'self'; " if served else "")
        + "base-uri 'none'; form-action 'none'"
    )


def summary(table: StageTable) -> str:
    """The stages of the whole run as an HTML table, for who has no script."""
    digits = table_digits(table.latency.mean_ns)
    header = ("stage (us)", "count", "mean", "p50", "p99", "max", "share %")
    lines = ["<table><caption>The stages of all ops that count</caption>"]
    lines.append("<tr>" + "".join(f"<th>{h}</th>" for h in header) + "</tr>")
    for row in (*table.stages, table.unattributed, table.latency):
        times = (us(t, digits) for t in (row.mean_ns, row.p50_ns, row.p99_ns, row.max_ns))
        cells = (shown(row.stage), str(row.count), *times, percent(row.total_ns, table.latency.total_ns))
        lines.append("<tr>" + "".join(f"<td>{html.escape(c)}</td>" for c in cells) + "</tr>")
    return "\n".join((*lines, "</table>"))


def embedded(value: Any) -> str:
    """JSON that can stand in a script element: it holds no `<`."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def document(title: str, pages: list[PageData], comparison: str | None = None, served: bool = False) -> bytes:
    """The file. ``pages``: of one run, or of two; ``comparison``: what `opline compare` says of these; ``served``: by
    `opline view`.
    """
    code, style = script(served), asset("page.css")
    name = shown(title)
    parts = {
        "TITLE": html.escape(name),
        "POLICY": html.escape(policy(code, style, served), quote=True).replace("&#x27;", "'"),
        "STYLE": style,
        "SUMMARY": "\n".join(summary(page.table) for page in pages if page.table is not None),
        "HEAD": embedded({"title": name, "runs": [page.head for page in pages], "comparison": comparison}),
        "DATA": "".join(
            f'<script type="text/plain" class="columns">{base64.b64encode(page.blob).decode()}</script>\n'
            for page in pages
        ),
        "SCRIPT": code,
    }
    text = re.sub(r"\{\{([A-Z]+)\}\}", lambda m: parts[m[1]], asset("page.html"))
    return text.encode("utf-8", "surrogateescape")
