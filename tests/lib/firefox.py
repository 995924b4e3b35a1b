# SPDX-License-Identifier: MIT
"""A headless Firefox for tests of the page, by WebDriver BiDi over its own port: a page, expressions, keys.

Its messages are JSON in frames of a WebSocket (RFC 6455), of which this knows what Firefox sends: whole texts.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

PROGRAM = shutil.which("firefox-esr") or shutil.which("firefox")
PATIENCE = 60.0


class Firefox:
    """The process, with one page. What the page says on its console is in ``errors``."""

    def __init__(self) -> None:
        assert PROGRAM is not None
        self._profile = tempfile.mkdtemp(prefix="oplfirefox-")
        self._process = subprocess.Popen(
            [PROGRAM, "--headless", "--no-remote", "--profile", self._profile, "--remote-debugging-port", "0"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={**os.environ, "HOME": self._profile},
        )
        assert self._process.stderr is not None
        self._connect(self._address(self._process.stderr))
        self._number = 0
        self.errors: list[str] = []
        self.call("session.new", capabilities={})
        self.call("session.subscribe", events=["log.entryAdded"])
        self._context = self.call("browsingContext.getTree")["contexts"][0]["context"]

    def __enter__(self) -> Firefox:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        self._socket.close()
        self._process.terminate()
        self._process.wait(PATIENCE)
        assert self._process.stderr is not None
        self._process.stderr.close()
        shutil.rmtree(self._profile, ignore_errors=True)

    @staticmethod
    def _address(said: Any) -> int:
        """The port, which it says on its standard error."""
        for line in said:
            if found := re.search(rb"ws://127\.0\.0\.1:(\d+)", line):
                return int(found[1])
        raise RuntimeError("Firefox has ended")

    def _connect(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        key = base64.b64encode(os.urandom(16)).decode()
        self._socket.sendall(
            f"GET /session HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        self._file: BinaryIO = self._socket.makefile("rb")
        assert b" 101 " in self._file.readline()
        while self._file.readline().strip():
            pass

    def _send(self, text: bytes) -> None:
        length = len(text)
        size = bytes([0x80 | length]) if length < 126 else struct.pack(">BH", 0x80 | 126, length)
        mask = os.urandom(3) + b"\1"  # none of zeros: Firefox ends the connection for it
        masked = bytes(byte ^ mask[k % 4] for k, byte in enumerate(text))
        self._socket.sendall(b"\x81" + size + mask + masked)

    def _receive(self) -> dict[str, Any]:
        parts = b""
        while True:
            first, second = self._file.read(2)
            length = second & 127
            if length > 125:
                (length,) = struct.unpack(">H" if length == 126 else ">Q", self._file.read(2 if length == 126 else 8))
            parts += self._file.read(length)
            if first & 0x80:
                return dict(json.loads(parts))

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """A command's result."""
        self._number += 1
        self._send(json.dumps({"id": self._number, "method": method, "params": parameters}).encode())
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                if answer["type"] == "error":
                    raise RuntimeError(f"{method}: {answer['message']}")
                return dict(answer["result"])
            if answer.get("method") == "log.entryAdded":
                self.errors.append(str(answer["params"].get("text")))

    def open(self, path: Path) -> None:
        """A file's page, once it has drawn itself."""
        self.call("browsingContext.setViewport", context=self._context, viewport={"width": 1500, "height": 1300})
        self.call("browsingContext.navigate", context=self._context, url=path.as_uri(), wait="complete")
        until = time.monotonic() + PATIENCE
        while self.ask("document.documentElement.dataset.ready") != "1":
            assert time.monotonic() < until, self.errors
            time.sleep(0.02)

    def ask(self, expression: str) -> Any:
        """The value of an expression, awaited."""
        text = f"Promise.resolve({expression}).then((value) => JSON.stringify(value) ?? 'null')"
        target = {"context": self._context}
        answer = self.call("script.evaluate", expression=text, target=target, awaitPromise=True)
        if answer["type"] != "success":
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']['text']}")
        return json.loads(answer["result"]["value"])

    def press(self, key: str) -> None:
        """A key, and the picture after it."""
        keys = [{"type": kind, "value": key} for kind in ("keyDown", "keyUp")]
        actions = [{"type": "key", "id": "keyboard", "actions": keys}]
        self.call("input.performActions", context=self._context, actions=actions)
        self.ask("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")
