# SPDX-License-Identifier: MIT
"""Damaged inputs of every format end in one line or in a result: no internal error."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from tests.io.test_counts_of_others import FIGURES, LIST
from tests.program.test_what import INPUTS

from opline_analyses.cli import main

BINS = {"fio version": "fio-3.33", "jobs": [{"read": {"clat_ns": {"bins": {"129": 3}}}, "job_runtime": 2000}]}
SOUND = {
    **INPUTS,
    **FIGURES,
    "bpftrace_json": json.dumps({"type": "hist", "data": {"@usecs": {"sda": LIST}}}) + "\n",
    "fio_bins": json.dumps(BINS),
}
PUT = (b"-1", b"9" * 25, b"null", b"[]", b"{}", b"1e999", b"\n", b'"', b"\xff", b"true")
EACH = 4  # mutants of a format


def mutant(sound: bytes, chance: random.Random) -> bytes:
    data = bytearray(sound)
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(data) + 1)
        how = chance.randrange(4)
        if how == 0:
            del data[at : at + chance.randint(1, 20)]
        elif how == 1:
            data[at:at] = chance.choice(PUT)
        elif how == 2:
            data[at:at] = data[at : at + 50]
        else:
            del data[at:]
    return bytes(data)


@pytest.mark.parametrize("name", SOUND)
def test_a_damaged_input(name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    chance = random.Random(name)
    path = tmp_path / "a"
    for _ in range(EACH):
        path.write_bytes(mutant(SOUND[name].encode(), chance))
        for command in ("what", "hist"):
            assert main([command, str(path)]) in (0, 1, 2), path.read_bytes()
            assert "internal error" not in capfd.readouterr().err, path.read_bytes()
