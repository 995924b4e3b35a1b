# SPDX-License-Identifier: MIT
"""Whatever a command proposes to type works: each hint that the commands print is run, on several kinds of runs."""

from __future__ import annotations

import argparse
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.lib.recorded import RunOf
from tests.readers.test_biosnoop import listing
from tests.readers.test_listings import BLKPARSE, PERF_TRACE

from opline_analyses.cli import main, parser_of
from opline_analyses.command_map import asked, modules

Capture = pytest.CaptureFixture[str]
#: Of tests/traces: ops of an application, of system calls; losses; the kernel's events alone; blktrace's files.
TRACES = ("demo-qd4", "fdatasync-2-queues", "discard-tiny-buffers", "fio-psync-qd1-nvme", "blktrace-loop-6.18")
TEXTS = {
    "blkparse": BLKPARSE,
    "perf trace": PERF_TRACE,
    "biosnoop": listing(True),
    "histogram": "@usecs: \n[2, 4)   7 |@@@@ |\n",
    "fio log": "1, 100, 0, 4096\n2, 300, 0, 4096\n",
    "nothing": "hello\n",
}
COMMANDS = (
    "what", "why", "ops --slowest 1", "stages --states", "disk", "disk hist", "disk outliers", "disk burst", "check",
    "check coverage", "csv", "graph", "events --limit 2", "compare RUN RUN", "stages --class none", "ops --since 5000",
)  # fmt: skip
#: They record, look at what happens now, or serve until they are stopped: only their options are looked at.
LASTING = {"record", "live", "now", "top", "view", "page", "join"}


def hints(text: str) -> Iterator[str]:
    """Command lines in what a command prints: quoted, or to the end of a line. What they write to is left out."""
    yield from (hint.partition(" > ")[0] for hint in re.findall(r"`(opline [^`]*)`", text))
    for line in text.splitlines():
        found = re.match(r"(?:  |\s*(?:try|next:|look at:)\s+)\s*(opline (?!cannot ).*)", line)  # a sentence goes on
        if found:
            yield found[1].partition("   #")[0].rstrip()


def test_hints_are_found() -> None:
    text = "lost. `opline losses x y` says more\nlook at: opline iostat a\n         opline log a\nnext:  opline why b\n"
    assert list(hints(text)) == ["opline losses x y", "opline iostat a", "opline log a", "opline why b"]


def works(hint: str, path: Path, capfd: Capture) -> bool:
    """Whether the line does what it is for; one that leaves out the run means the run at hand."""
    words = shlex.split(re.sub(r"\bRUN\b", shlex.quote(str(path)), hint))[1:]
    if words[0] not in modules():
        return words[0] in ("help", "--help")
    if words[0] in LASTING or "--" in words:
        known = parser_of(words[0]).format_help()
        ours = words[: words.index("--")] if "--" in words else words
        return all(word in known for word in ours[1:] if word.startswith("-"))
    capfd.readouterr()
    status, said = main(words), capfd.readouterr().err
    if status == 2 and ("are required: RUN" in said or "required: TRACE" in said):
        status = main([*words, str(path)])
    return status == 0 or (status == 1 and words[0] in ("doctor", "check"))


def printed(command: str, path: Path, capfd: Capture) -> str:
    capfd.readouterr()
    name, *options = command.split()
    words = [str(path) if word == "RUN" else word for word in options]
    if "RUN" not in options:
        at = 1 if name in ("disk", "check") and options and not options[0].startswith("-") else 0
        words.insert(at, str(path))
    main([name, *words])
    out, err = capfd.readouterr()
    return out + err


def check(path: Path, capfd: Capture) -> None:
    said: dict[str, str] = {}
    for command in COMMANDS:
        for hint in hints(printed(command, path, capfd)):
            said.setdefault(hint, command)
    failed = {hint: command for hint, command in said.items() if not works(hint, path, capfd)}
    assert not failed
    assert said or path.suffix == ".txt"


@pytest.mark.parametrize("name", TRACES)
def test_hints_on_a_trace(name: str, trace: Callable[[str], Path], capfd: Capture) -> None:
    check(trace(name), capfd)


def test_hints_on_a_run(run_of: RunOf, capfd: Capture) -> None:
    check(run_of("demo-kernel").path, capfd)


def test_hints_on_an_applications_events_alone(tmp_path: Path, trace: Callable[[str], Path], capfd: Capture) -> None:
    path = tmp_path / "trace"
    shutil.copytree(trace("demo-qd4"), path, ignore=shutil.ignore_patterns("block_*"))
    check(path, capfd)


def test_hints_on_a_damaged_trace(tmp_path: Path, trace: Callable[[str], Path], capfd: Capture) -> None:
    path = tmp_path / "trace"
    shutil.copytree(trace("demo-qd4"), path)
    (stream,) = path.rglob("64-bit/app_0")
    stream.write_bytes(stream.read_bytes()[: stream.stat().st_size * 2 // 3])
    check(path, capfd)


def test_hints_on_a_cluster(tmp_path: Path, capfd: Capture) -> None:
    packed = Path(__file__).parents[1] / "hosts" / "two-hosts.tar.xz"
    subprocess.run(["tar", "-xJf", packed, "-C", tmp_path], check=True)
    hosts = [f"{name}={tmp_path / 'two-hosts' / name}" for name in ("client", "server")]
    assert main(["join", "-o", str(tmp_path / "all"), *hosts]) == 0
    check(tmp_path / "all", capfd)


def test_hints_on_an_archive(tmp_path: Path, run_of: RunOf, capfd: Capture) -> None:
    path = tmp_path / "run.zip"
    assert main(["pack", str(run_of("demo-kernel").path), "-o", str(path)]) == 0
    check(path, capfd)


@pytest.mark.parametrize("name", TEXTS)
def test_hints_on_a_text(name: str, tmp_path: Path, capfd: Capture) -> None:
    path = tmp_path / "it's here.txt"
    path.write_text(TEXTS[name])
    check(path, capfd)


def test_the_questions_have_options_that_there_are() -> None:
    for _, commands in asked():
        for line in commands:
            words = shlex.split(line)[1:]
            parser: argparse.ArgumentParser = parser_of(words[0])
            known = set(parser._option_string_actions)
            ours = words[: words.index("--")] if "--" in words else words
            assert {word for word in ours if word.startswith("--")} <= known, line
