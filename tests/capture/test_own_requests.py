# SPDX-License-Identifier: MIT
"""Requests of the tracer's own processes are left out whole, however many bios they are made of."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.lib.block_capture import capture, dev_of, loop_device

pytestmark = pytest.mark.live

BATCHES, BIOS = 4, 128  # adjacent 4 KiB writes that are submitted at once: bios of one request
TOLD = ("block:watermark", "block:lost")


@pytest.mark.parametrize("scheduler", ["none", "mq-deadline"])
def test_a_request_of_many_own_bios_leaves_no_event(tmp_path: Path, scheduler: str) -> None:
    with loop_device() as path:
        queue = Path(f"/sys/block/{Path(path).name}/queue")
        if scheduler not in (queue / "scheduler").read_text():
            pytest.skip(f"this kernel has no {scheduler}")
        (queue / "scheduler").write_text(scheduler)
        (queue / "max_sectors_kb").write_text(str(BIOS * 4))
        writer = [
            "fio", "--name=own", "--thread", f"--filename={path}", "--direct=1", "--bs=4k", "--rw=write",
            f"--size={BATCHES * BIOS * 4}k", "--ioengine=libaio", f"--iodepth={BIOS}",
            f"--iodepth_batch_submit={BIOS}", f"--iodepth_batch_complete_min={BIOS}",
        ]  # fmt: skip
        waits = ["sh", "-c", 'read -r go && exec "$@"', "sh", *writer]
        with subprocess.Popen(waits, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as own:
            arguments = [f"--exclude-pid={own.pid}", "--requests", str(tmp_path / "whole")]
            with capture(tmp_path, *arguments, enable=TOLD) as running:
                own.communicate(b"go\n", timeout=60)
            assert own.returncode == 0
        running.trace, dev = tmp_path / "whole", dev_of(path)
        events = [(name, fields) for name, _, fields in running.events() if fields.get("dev") == dev]
    writes = [(name, fields["sector"]) for name, fields in events if fields["rwbs"] & 1]
    counts = running.counts["requests"]
    assert counts["own_bios"] >= BATCHES * BIOS
    assert counts["own_bios"] - counts["own_requests"] > BATCHES * BIOS // 2, "the bios were merged"
    assert writes == []
