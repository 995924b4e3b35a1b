# SPDX-License-Identifier: MIT
"""`source.opline.lttng` in anybody's graph: the same text as source.ctf.fs, and the same tables before our own sink."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import bt2
import pytest
from tests.lib.recorded import RunOf, model_of
from tests.readers.test_readers import plain

import opline
from opline import _core
from opline.correlation import correlate
from opline.readers.babeltrace import PLUGIN, Bt2Reader
from opline.readers.trace import find_traces
from opline.store.schema import TABLES

PLUGINS = Path(opline.__path__[0])


def babeltrace2(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["babeltrace2", *args], text=True, capture_output=True, check=False)


def ours(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    inputs = f'inputs=["{folder}"]'
    return babeltrace2(f"--plugin-path={PLUGINS}", "-c", "source.opline.lttng", "-p", inputs, *args)


@pytest.mark.parametrize("name", ["app-sync-qd4-nvme", "demo-qd4", "ctf-merged", "fio-psync-qd1-nvme"])
def test_babeltrace2_prints_the_same(name: str, trace: Callable[[str], Path]) -> None:
    want, have = babeltrace2(str(trace(name))), ours(trace(name))
    assert have.returncode == 0
    assert have.stdout == want.stdout
    assert len(want.stdout) > 100_000


def test_discarded_events_are_the_same(trace: Callable[[str], Path]) -> None:
    want, have = babeltrace2(str(trace("discard-tiny-buffers"))), ours(trace("discard-tiny-buffers"))
    assert have.stderr == want.stderr
    assert "Tracer discarded" in want.stderr


def test_classes_clocks_packets_and_messages_are_the_same(trace: Callable[[str], Path]) -> None:
    """The details sink prints all of it: metadata, every message with its clock snapshot, every field."""
    folder = trace("app-sync-2m-nvme-split")
    want, have = babeltrace2(str(folder), "-c", "sink.text.details"), ours(folder, "-c", "sink.text.details")
    assert have.stdout == want.stdout
    for line in ("Packet beginning", "Discarded events have default clock snapshots"):
        assert line in want.stdout


def test_seeking(trace: Callable[[str], Path]) -> None:
    folder = trace("app-sync-2m-nvme-split")
    lines = babeltrace2("--clock-seconds", str(folder)).stdout.splitlines()
    begin = f"--begin={lines[len(lines) // 2][1:].split(']')[0]}"
    want, have = babeltrace2(begin, str(folder)), ours(folder, begin)
    assert have.stdout == want.stdout
    assert 0 < len(have.stdout.splitlines()) < len(lines)


def test_ctf_2(trace: Callable[[str], Path]) -> None:
    """What LTTng 2.16 wrote, and what babeltrace 2.1.1 made of it: one text."""
    lttng, rewritten = (ours(trace("kinds-ctf2") / who) for who in ("lttng", "babeltrace"))
    assert lttng.stdout == rewritten.stdout
    assert len(lttng.stdout.splitlines()) == 482
    assert 'colour = ( "green" : container = 3 ), _odd = 6 }' in lttng.stdout


class Unfused(Bt2Reader):
    """Our source and our sink in a graph of this process, message by message."""

    def read(self, consumer: Any) -> Generator[None, None, None]:
        plugin = bt2.find_plugins_in_path(str(PLUGIN))[0]
        graph = bt2.Graph()
        params = {"core": consumer.address(), "cookie": _core.COOKIE}
        sink = graph.add_component(plugin.sink_component_classes["ops"], "ops", params)
        inputs = {"inputs": [str(folder) for folder in self.traces]}
        source = graph.add_component(plugin.source_component_classes["lttng"], "lttng", inputs)
        for i, port in enumerate(list(source.output_ports.values())):
            graph.connect_ports(port, sink.input_ports[f"in{i}"])
        while True:
            try:
                graph.run_once()
            except bt2.Stop:
                return
            except bt2.TryAgain:
                pass
            yield


@pytest.mark.parametrize("name", ["app-uring-qd16-nvme", "demo-qd4", "discard-tiny-buffers"])
def test_the_pair_gives_what_the_native_reader_gives(
    name: str, trace: Callable[[str], Path], run_of: RunOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The native reader is the pair without messages between them: opline runs that one."""
    monkeypatch.setattr("opline.readers.babeltrace.Bt2Reader", Unfused)
    correlate(trace(name), model_of(name), tmp_path, reader="bt2", progress=False)
    fused = run_of(name)
    for spec in TABLES:
        pair, one = (plain(path / f"{spec.name}.parquet") for path in (tmp_path, fused.path))
        assert pair.equals(one), spec.name


def test_what_it_refuses(trace: Callable[[str], Path], tmp_path: Path) -> None:
    nothing = ours(tmp_path)
    assert nothing.returncode != 0
    assert "is not a CTF trace" in " ".join(nothing.stderr.split())
    wrong = babeltrace2(f"--plugin-path={PLUGINS}", "-c", "source.opline.lttng")
    assert "parameter inputs is wanted" in " ".join(wrong.stderr.split())


def test_a_cut_off_stream_is_an_error_after_its_events(trace: Callable[[str], Path], tmp_path: Path) -> None:
    source = next(p for p in map(Path, find_traces(trace("app-sync-2m-nvme-split"))) if p.name == "64-bit")
    files = [p for p in source.iterdir() if p.name not in ("metadata", "index")]
    biggest = max(files, key=lambda p: p.stat().st_size)
    for path in files:
        (tmp_path / path.name).symlink_to(path)
    (tmp_path / "metadata").symlink_to(source / "metadata")
    data = biggest.read_bytes()
    content = struct.unpack_from("<Q", data, 32 + 16)[0] // 8
    (tmp_path / biggest.name).unlink()
    (tmp_path / biggest.name).write_bytes(data[: content // 2])
    done = ours(tmp_path)
    assert done.returncode != 0
    assert "the file ends before the packet does" in " ".join(done.stderr.split())
    assert len(done.stdout) > 0
