# SPDX-License-Identifier: MIT
"""The base install has DuckDB and numpy: what looks at runs, and what records, works where all other packages are
absent.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.lib.recorded import RunOf

PACKAGES = ("pyarrow", "matplotlib", "networkx", "pandas", "polars", "perfetto", "google", "distributed")
#: Python runs it before all else, in every process of a command.
ABSENT = """
import sys
class Absent:
    def find_spec(self, name, *_):
        if name.partition(".")[0] in {!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())
"""


class Base:
    """The program in an environment without some packages."""

    def __init__(self, folder: Path, absent: tuple[str, ...] = PACKAGES) -> None:
        folder.mkdir()
        (folder / "sitecustomize.py").write_text(ABSENT.format(absent))
        self.folder = folder
        self._environment = {**os.environ, "PYTHONPATH": str(folder)}

    def asked(self, *words: str | Path) -> bytes:
        """What a command writes to standard output, and into the file `out`."""
        out = self.folder / "out"
        out.unlink(missing_ok=True)
        done = subprocess.run(
            [sys.executable, "-m", "opline_analyses", *words], env=self._environment, cwd=self.folder,
            capture_output=True, check=False,
        )  # fmt: skip
        # 3: the kernel ran no BPF program for more than 0.1 % of the completions, which is chance
        assert done.returncode in ((0, 3) if words[0] == "record" else (0,)), (words, done.stderr)
        return done.stdout + (out.read_bytes() if out.is_file() else b"")

    def python(self, code: str) -> str:
        """What a program prints."""
        done = subprocess.run(
            [sys.executable, "-c", code], env=self._environment, capture_output=True, text=True, check=True
        )
        return done.stdout


@pytest.fixture
def base(tmp_path: Path) -> Base:
    return Base(tmp_path / "base")


COMMANDS: tuple[tuple[str, ...], ...] = (
    ("stages",), ("ops", "--slowest", "3"), ("why",), ("why", "--json"), ("coverage",), ("csv",),
    ("csv", "--stages"), ("report", "-o", "out"), ("hist", "--per", "device"), ("heatmap",), ("requests",), ("log",),
    ("export", "--to", "chrome", "-o", "out"), ("pack", "--anonymous", "-o", "packed.opline"),
    ("sql", "--csv", "SELECT * FROM stages"),
)  # fmt: skip


def test_the_packages_are_absent(base: Base) -> None:
    code = "import importlib.util as u"
    for name in PACKAGES:
        code += f"\ntry: u.find_spec({name!r}); print({name!r})\nexcept ModuleNotFoundError: pass"
    assert base.python(code) == ""


def test_commands_answer_the_same(base: Base, run_of: RunOf, tmp_path: Path) -> None:
    run = run_of("demo-qd4").path
    other = Base(tmp_path / "other", ())
    for name, *options in COMMANDS:
        words: list[str | Path] = [name, run, *options] if name != "sql" else [name, *options[:1], run, *options[1:]]
        found = base.asked(*words)
        assert found == other.asked(*words)
        assert found or name == "pack"
    assert base.asked("compare", run, run) == other.asked("compare", run, run)


@pytest.mark.live
@pytest.mark.usefixtures("runtime")
def test_a_recording_of_the_base_install_is_looked_at(base: Base) -> None:
    base.asked("record", "--quiet", "--model", "syscalls", "-o", "recording", "--", "dd", "if=/dev/zero", "of=data",
               "bs=4k", "count=50")  # fmt: skip
    assert b"write" in base.asked("stages", "recording")
    assert b"write" in base.asked("ops", "recording")
