# SPDX-License-Identifier: MIT
"""`opline record` in a process of its own, and what it leaves."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
APP_SOURCES = ROOT / "tests" / "ust_app"
PROGRAM = [sys.executable, "-m", "opline_analyses", "record"]
# Without block events the application alone is traced: these tests are about the session.
APP_ONLY = ["--no-block", "--events", "opltest:*", "--sessiond", "private"]
SMALL = ["--subbuf-size", "64K", "--subbufs", "4"]


#: What a recorder says of completions for which the kernel ran no BPF program: which test meets them is chance.
UNSEEN = "more than 0.1 % of the completions were not seen"


def status(done: subprocess.CompletedProcess[str]) -> int:
    """The recorder's exit status; 0 also where nothing else is missing than completions that no program saw."""
    only = f"warning: the recording is not whole: {UNSEEN} ("
    return 0 if done.returncode == 3 and only in done.stderr else done.returncode


def record_well(argv: Sequence[object], **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a recorder that must end well."""
    done = subprocess.run([*map(str, argv)], text=True, stderr=subprocess.PIPE, check=False, **options)
    assert status(done) == 0, done.stderr
    return done


def start(*arguments: object) -> subprocess.Popen[str]:
    """Start the recorder in a process group of its own, SIGINT as in a terminal."""
    return subprocess.Popen(
        [*PROGRAM, *map(str, arguments)],
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def finish(process: subprocess.Popen[str]) -> subprocess.CompletedProcess[str]:
    """Wait for a recorder, whatever it says, and close its pipes. Its exit status as ``status`` has it."""
    out, err = process.communicate(timeout=120)
    done = subprocess.CompletedProcess(process.args, process.returncode, out, err)
    done.returncode = status(done)
    return done


def record(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Record to the end."""
    return finish(start(*arguments))


def manifest(directory: Path) -> dict[str, Any]:
    document = json.loads((directory / "recording.json").read_text())
    assert isinstance(document, dict)
    broken = [promise["why"] for promise in document.get("promises", ()) if promise["kept"] is False]
    if document["state"] == "incomplete" and broken == [UNSEEN]:
        document["state"] = "complete"  # as ``status``
    return document


def events(directory: Path) -> list[str]:
    argv = ["babeltrace2", str(directory / "trace")]
    return subprocess.run(argv, capture_output=True, text=True, check=True, timeout=120).stdout.splitlines()


def daemons(runtime: Path) -> list[str]:
    """Live processes whose command line names the runtime directory: the private daemon of a recording."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if str(runtime) in line:
                found.append(line)
    return found


def wait_for(condition: Callable[[], object], patience_s: float = 60.0) -> None:
    until = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.05)


def wait_for_ticks(directory: Path) -> None:
    """Return when the traced program has begun (it has registered by then) and has had time to emit."""
    said = directory / "stderr.txt"
    wait_for(lambda: said.exists() and "begin" in said.read_text())
    time.sleep(0.2)


# In a chroot that is no mount point there is no propagation to change.
PROPAGATION = "unchanged" if subprocess.run(["mountpoint", "-q", "/"], check=False).returncode else "slave"


OWN_RUN_LTTNG = ["unshare", "--mount", "--propagation", PROPAGATION, "sh", "-c"]
