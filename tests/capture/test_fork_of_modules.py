# SPDX-License-Identifier: MIT
"""A program that loads LTTng-UST late, and for itself: its child, forked without exec, is traced as well."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path

import bt2
import pytest
from tests.lib.recorder import APP_ONLY, record

pytestmark = pytest.mark.live
SOURCES = Path(__file__).parents[1] / "ust_app"


def built(folder: Path, *argv: str | Path) -> None:
    subprocess.run(["gcc", "-O1", f"-I{SOURCES}", *argv], check=True, timeout=120, cwd=folder)


def test_a_child_of_a_program_with_a_module_that_keeps_its_names(runtime: Path, tmp_path: Path) -> None:
    module: list[str | Path] = ["-shared", "-fPIC", "-Dmain=tick", SOURCES / "ticker.c"]
    built(tmp_path, *module, "-o", "module.so", "-llttng-ust", "-ldl")
    built(tmp_path, SOURCES / "forker.c", "-o", "forker", "-ldl")
    done = record("-o", tmp_path / "run", *APP_ONLY, "--", tmp_path / "forker", tmp_path / "module.so")
    assert done.returncode == 0, done.stderr
    pids: Counter[int] = Counter()
    for message in bt2.TraceCollectionMessageIterator(str(tmp_path / "run" / "trace")):
        if isinstance(message, bt2._EventMessageConst):
            pids[int(message.event["vpid"])] += 1
    assert sorted(pids.values()) == [100, 100]
