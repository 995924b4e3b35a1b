# SPDX-License-Identifier: MIT
"""An HTTP server for one user on this machine: 127.0.0.1 only, GET only, and only with the token.

The address contains the token. A foreign page in the same browser does not know the token; and a foreign name bound to
127.0.0.1 (DNS rebinding) differs from the expected Host.
"""

from __future__ import annotations

import hmac
import re
import secrets
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from opline.errors import OplineError
from opline.talk import shown
from opline_analyses.view.pages import Pages
from opline_analyses.view.tables import Region

HOST = "127.0.0.1"
_PATH = re.compile(r"/([A-Za-z0-9_-]+)/(?:(\d{1,6})/(?:op/(\d{1,18})|([a-z]{1,16}))?)?", re.ASCII)
_NUMBER = re.compile(r"\d{1,19}", re.ASCII)
_HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class Server(ThreadingHTTPServer):
    """The listening server; ``address``: to open in a browser."""

    daemon_threads = True

    def __init__(self, pages: Pages, port: int = 0) -> None:
        """``port``: 0 means any free port. Raises OSError."""
        self.pages = pages
        self.token = secrets.token_urlsafe(24)
        super().__init__((HOST, port), _Handler)
        self.hosts = {f"{name}:{self.server_port}" for name in (HOST, "localhost")}

    @property
    def address(self) -> str:
        """The URL of the list of runs; for a single run, of the run."""
        only = "0/" if len(self.pages) == 1 else ""
        return f"http://{HOST}:{self.server_port}/{self.token}/{only}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A lost connection to a browser is not reported."""


class _Handler(BaseHTTPRequestHandler):
    server: Server
    server_version = "opline"
    sys_version = ""
    timeout = 30

    def do_GET(self) -> None:
        host, origin = self.headers.get("Host", ""), self.headers.get("Origin")
        if host not in self.server.hosts or (origin is not None and origin != f"http://{host}"):
            self._answer(403, b"This server is for one browser on this machine.\n")
            return
        parts = urlsplit(self.path)
        found = _PATH.fullmatch(parts.path)
        if found is None or not hmac.compare_digest(found[1], self.server.token):
            self._answer(404, b"Not found: the address is the one that opline view has printed.\n")
            return
        try:
            self._give(found[2], found[3], found[4], parse_qs(parts.query))
        except OplineError as error:
            self._answer(404, f"{shown(str(error))}\n".encode("utf-8", "backslashreplace"))
        except OSError:
            raise  # the browser has gone
        except Exception as error:
            said = f"Internal error: {type(error).__name__}: {error}"
            self._answer(500, f"{shown(said)}\n".encode("utf-8", "backslashreplace"))

    def _give(self, run: str | None, op: str | None, question: str | None, query: dict[str, list[str]]) -> None:
        pages = self.server.pages
        if run is None:
            self._answer(200, pages.listed(), "text/html; charset=utf-8")
        elif int(run) >= len(pages):
            self._answer(404, b"There is no such run.\n")
        elif op is not None:
            self._answer(200, pages.op(int(run), int(op)), "application/json")
        elif question is not None:
            options = {name: _number(query, name) for name in query}
            self._answer(200, pages.answer(int(run), question, _region(options), options), "application/json")
        else:
            self._answer(200, pages.page(int(run)), "text/html; charset=utf-8")

    def _answer(self, status: int, body: bytes, kind: str = "text/plain; charset=utf-8") -> None:
        self.send_response(status)
        for name, value in {**_HEADERS, "Content-Type": kind, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """A terminal needs no line for each page; the address has the token."""


def _number(query: dict[str, list[str]], name: str) -> int:
    """A number of a question. Raises OplineError."""
    text = query[name][-1]
    if not _NUMBER.fullmatch(text) or int(text) >= 1 << 63:
        raise OplineError(f"{shown(name)} is not a number.")
    return int(text)


def _region(options: dict[str, int]) -> Region:
    """The region of a question. Raises OplineError."""
    t0, t1 = options.get("t0", 0), options.get("t1", 0)
    if t1 <= t0:
        raise OplineError("The question is about no time.")
    only = (options["kind"], options["value"]) if {"kind", "value"} <= options.keys() else None
    return Region(
        t0=t0, t1=t1, v0=options.get("v0", 0), v1=options.get("v1", 1 << 62), stage=options.get("stage"), only=only
    )
