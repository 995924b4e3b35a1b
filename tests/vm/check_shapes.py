# SPDX-License-Identifier: MIT
"""The lab application in containers, forked, and beside another one, in the kernel domain: the same ops, stages and
links as everywhere (tests/lib/shapes.py).
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.lib.shapes import CONTAINER, SHAPES, Shape, check, name_of
from tests.vm.check_recording import OUT, device, every_suite, run

DISKS = ("vdc", "vdd")
RECORDED = {name_of(shape): what for shape, what in SHAPES.items()}
RECORDED["shape-begun-before"] = Shape(program_in=CONTAINER)  # the recording began later than the program


def opline(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name("opline")
    return subprocess.run([program, *arguments], capture_output=True, text=True, timeout=300, check=False)


@every_suite
@pytest.mark.parametrize("name", RECORDED)
def test_the_same_ops_stages_and_links(suite: str, name: str) -> None:
    said = (OUT / suite / f"{name}.stderr").read_text()
    assert (OUT / suite / f"{name}.status").read_text() == "0\n", said
    of = run(suite, name)
    assert (of.manifest["block_source"], of.manifest["state"]) == ("kernel", "complete")
    check(opline, of.path, RECORDED[name], [device(of, disk) for disk in DISKS])
