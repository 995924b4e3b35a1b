# SPDX-License-Identifier: MIT
"""The lab application in containers, forked, and beside another one, in the kernel domain: the same ops, stages and
links as everywhere (tests/lib/shapes.py).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.lib.shapes import CONTAINER, SHAPES, Shape, check, name_of

OUT = Path(os.environ["OPLINE_VM_OUT"])
SUITES = sorted(path.name for path in OUT.iterdir() if (path / "doctor.json").exists())
DISKS = ("vdc", "vdd")
RECORDED = {name_of(shape): what for shape, what in SHAPES.items()}
RECORDED["shape-begun-before"] = Shape(program_in=CONTAINER)  # the recording began later than the program


def opline(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name("opline")
    return subprocess.run([program, *arguments], capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.parametrize("suite", SUITES)
@pytest.mark.parametrize("name", RECORDED)
def test_the_same_ops_stages_and_links(suite: str, name: str) -> None:
    run = OUT / suite / name
    said = (OUT / suite / f"{name}.stderr").read_text()
    assert (OUT / suite / f"{name}.status").read_text() == "0\n", said
    counted = opline("losses", run, "--json")  # makes the tables
    assert counted.returncode == 0, counted.stderr
    recording = json.loads((run / "recording.json").read_text())
    assert (recording["block_source"], recording["state"]) == ("kernel", "complete")
    devs = {device["name"]: device["dev"] for device in recording["devices"]}
    check(opline, run, RECORDED[name], [devs[disk] for disk in DISKS])
