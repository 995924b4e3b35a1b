# SPDX-License-Identifier: MIT
"""A headless Chromium for tests of the page, by the DevTools protocol over two pipes: no port, no library.

    with Browser() as browser:
        page = browser.open(path)
        page.ask("1 + 1")

Messages are JSON that ends in a NUL byte, on file descriptors 3 and 4 (--remote-debugging-pipe).
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any

PROGRAM = shutil.which("chromium-headless-shell") or shutil.which("chromium")
PATIENCE = 60.0


def end_group(leader: int) -> None:
    """Ends what is left of a process's group: a browser's services outlive the browser, and write into its profile."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            os.killpg(leader, signal.SIGKILL)
        except ProcessLookupError:
            return
        assert time.monotonic() < until, "the browser's services do not end"
        time.sleep(0.01)


class Browser:
    """The process. What a page says on its console, and every address that it asks for, is kept by page."""

    def __init__(self) -> None:
        assert PROGRAM is not None
        self._profile = tempfile.mkdtemp(prefix="oplbrowser-")
        ours_read, theirs_write = os.pipe()
        theirs_read, ours_write = os.pipe()
        arguments = [
            PROGRAM, "--headless", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu",
            "--disable-dev-shm-usage",
            f"--user-data-dir={self._profile}", "--hide-scrollbars", "--force-device-scale-factor=1", "--lang=en",
        ]  # fmt: skip
        # the shell puts the pipes where the browser expects them
        command = f'exec "$@" 3<&{theirs_read} 4>&{theirs_write}'
        self._process = subprocess.Popen(
            ["bash", "-c", command, "browser", *arguments],
            pass_fds=(theirs_read, theirs_write),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(theirs_read)
        os.close(theirs_write)
        self.pid = self._process.pid
        self._read, self._write = ours_read, ours_write
        self._rest = b""
        self._number = 0
        self._pages: dict[str, Page] = {}

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._write)
        os.close(self._read)
        self._process.terminate()
        self._process.wait(PATIENCE)
        end_group(self._process.pid)
        shutil.rmtree(self._profile)

    def call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """A command's result."""
        self._number += 1
        number = self._number
        message = {"id": number, "method": method, "params": parameters}
        os.write(self._write, json.dumps(message | ({"sessionId": session} if session else {})).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return dict(answer["result"])
            self._event(answer)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            if not select.select([self._read], [], [], PATIENCE)[0]:
                raise TimeoutError("the browser says nothing")
            got = os.read(self._read, 1 << 20)
            if not got:
                raise RuntimeError("the browser has ended")
            self._rest += got
        one, self._rest = self._rest.split(b"\0", 1)
        return dict(json.loads(one))

    def _event(self, event: dict[str, Any]) -> None:
        page = self._pages.get(event.get("sessionId", ""))
        if page is None:
            return
        details = event.get("params", {})
        if event["method"] == "Network.requestWillBeSent":
            page.requests.append(str(details["request"]["url"]))
        elif event["method"] == "Runtime.exceptionThrown":
            page.errors.append(json.dumps(details["exceptionDetails"]))
        elif event["method"] == "Runtime.consoleAPICalled" or event["method"] == "Log.entryAdded":
            page.errors.append(json.dumps(details))
        elif event["method"] == "Page.javascriptDialogOpening":
            page.errors.append(f"dialog: {details['message']}")
            self.call("Page.handleJavaScriptDialog", event["sessionId"], accept=False)

    def open(
        self,
        path: Path | str,
        part: str = "",
        width: int = 1500,
        height: int = 1300,
        dark: bool = False,
        ready: str = "document.documentElement?.dataset.ready === '1'",
    ) -> Page:
        """A page, once it has drawn itself. ``path``: a file, or an address; ``part``: from # on; ``ready``: what then
        holds.
        """
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = self._pages[session] = Page(self, session)
        for domain in ("Runtime", "Log", "Network", "Page"):
            self.call(f"{domain}.enable", session)
        self.call(
            "Emulation.setDeviceMetricsOverride", session, width=width, height=height, deviceScaleFactor=1, mobile=False
        )
        self.call(
            "Emulation.setEmulatedMedia",
            session,
            features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}],
        )
        self.call("Page.navigate", session, url=(path if isinstance(path, str) else path.resolve().as_uri()) + part)
        page.wait(ready)
        return page


class Page:
    """One page. ``errors``: whatever it said; ``requests``: whatever it asked for."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser = browser
        self._session = session
        self.errors: list[str] = []
        self.requests: list[str] = []

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """A command for this page."""
        return self._browser.call(method, self._session, **parameters)

    def ask(self, expression: str) -> Any:
        """The value of an expression, awaited."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def wait(self, condition: str) -> None:
        """Until it holds."""
        until = time.monotonic() + PATIENCE
        while not self.ask(condition):
            if time.monotonic() > until or self.errors:
                raise AssertionError(f"never: {condition}; {self.errors}")
            time.sleep(0.01)

    def frame(self) -> None:
        """Until what was asked for is drawn."""
        self.ask("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")

    def press(self, key: str, shift: bool = False) -> None:
        """A key."""
        text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, modifiers=8 if shift else 0, **text)
        self.frame()

    def mouse(self, kind: str, x: float, y: float, buttons: int = 0) -> None:
        """mousePressed, mouseMoved, mouseReleased."""
        self.call(
            "Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left" if kind != "mouseMoved" else "none",
            buttons=buttons, clickCount=1,
        )  # fmt: skip

    def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """With the left button."""
        self.mouse("mouseMoved", *start)
        self.mouse("mousePressed", *start, 1)
        for k in range(1, 5):
            x, y = (a + (b - a) * k / 4 for a, b in zip(start, end, strict=True))
            self.mouse("mouseMoved", x, y, 1)
        self.mouse("mouseReleased", *end)
        self.frame()

    def picture(self, path: Path) -> None:
        """The whole page as a PNG."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 4000), "scale": 1}
        data = self.call("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)["data"]
        path.write_bytes(base64.b64decode(data))
