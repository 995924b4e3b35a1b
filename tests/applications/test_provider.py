# SPDX-License-Identifier: MIT
"""The provider for applications (tracepoints/opline_tp.h): recorded, compiled in C++, compiled away."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.applications.test_demo_store import ROOT, opline

pytestmark = pytest.mark.live


def test_the_provider_for_applications(tmp_path: Path) -> None:
    source, app = ROOT / "tracepoints", tmp_path / "app"
    sources = [source / "example" / "app.c", source / "opline_tp.c"]
    argv = ["gcc", "-Wall", "-Wextra", "-Werror", f"-I{source}", "-o", str(app), *map(str, sources)]
    subprocess.run([*argv, "-llttng-ust", "-ldl", "-lpthread"], check=True, timeout=60)
    run = tmp_path / "run"
    opline(
        "record", "-o", run, "--model", "generic", "--no-block", "--sessiond", "private", "--", app, tmp_path / "data"
    )
    sql = """select count(*), min(transition_count), max(transition_count), sum(unknown_ns), min(class),
             max(offset_bytes), count(distinct "key") from ops where complete"""
    assert opline("sql", run, sql, "--csv").stdout.splitlines()[-1] == f"23,7,7,0,write,{22 * 4096},1"


def test_the_provider_compiles_in_c_plus_plus_and_away(tmp_path: Path) -> None:
    code = tmp_path / "app.cpp"
    code.write_text(
        '#include "opline_tp.h"\n'
        'int main() { int job; OPLINE_BEGIN(&job, "o", "read", 0, 512); OPLINE_IO(&job, "io", 0, 512);\n'
        'OPLINE_SWITCH(7u, "s"); OPLINE_STEP("t"); OPLINE_END(&job, 0); return sizeof job == 0; }\n'
    )
    base = ["g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'tracepoints'}", "-c", str(code)]
    subprocess.run([*base, "-o", str(tmp_path / "with.o")], check=True, timeout=60)
    subprocess.run([*base, "-DOPLINE_DISABLE", "-o", str(tmp_path / "without.o")], check=True, timeout=60)
    symbols = subprocess.run(["nm", tmp_path / "without.o"], capture_output=True, text=True, check=True).stdout
    assert "lttng" not in symbols
