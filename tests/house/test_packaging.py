# SPDX-License-Identifier: MIT
"""What a user installs: the wheel has all that the program needs; a build that can't work says why in plain words."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from urllib.request import urlopen

import opline
from opline.capture.sources.shims import shims
from opline_analyses.command_map import GROUPS
from opline_analyses.export.formats import FORMATS

ROOT = Path(__file__).resolve().parents[2]


def test_missing_tools_are_named(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "setup.py", "-q", "build_ext", "--build-lib", tmp_path, "--build-temp", tmp_path],
        cwd=ROOT,
        env={"PATH": str(tmp_path), "HOME": str(tmp_path)},
        text=True,
        capture_output=True,
        check=False,
    )
    assert done.returncode != 0
    for tool in ("g++", "make", "pkg-config"):
        assert f"the program {tool} (Debian package {tool})" in done.stderr
    assert "Traceback" not in done.stderr


def test_install_has_everything(tmp_path: Path) -> None:
    """`pip install .` into a folder of its own; the program there works without the checkout."""
    # A copy with its times and objects: what is tested is the packaging, not the compiler.
    copy = tmp_path / "copy"
    for folder in ("correlator", "analyses", "tracepoints", "docs", "examples"):
        shutil.copytree(ROOT / folder, copy / folder, ignore=shutil.ignore_patterns("*.so", "__pycache__", "asan"))
    for name in ("setup.py", "setup.cfg", "pyproject.toml", "MANIFEST.in", "README.md", "CHANGELOG.md", "LICENSE"):
        shutil.copy2(ROOT / name, copy / name)
    target = tmp_path / "site"
    # not compiled: what the commands below load is, when they load it
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
    done = subprocess.run(
        [*pip, "--no-build-isolation", "--no-deps", "--no-index", "--target", target, copy],
        env=os.environ | {"CFLAGS": "-O0"},  # of the bridge and the shims, which keep no objects
        text=True,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    ask = "import opline._core, pathlib; print(pathlib.Path(opline._core.__file__).parent)"
    where = subprocess.run(
        [sys.executable, "-c", ask], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(target)}, text=True,
        capture_output=True, check=True,
    ).stdout.strip()  # fmt: skip
    assert where == str(target / "opline")
    have = {str(p.relative_to(target)) for p in target.rglob("*")}
    assert "opline/babeltrace-plugin-opline.so" in have
    assert {f"opline/capture/{name}.so" for name in ("_bridge", "libopline-ust", "libopline-sessiond")} <= have
    check_shims(target)
    package = ROOT / "correlator" / "opline"
    models = [path for folder in ("models", "applications") for path in (package / folder).rglob("*.toml")]
    assert len(models) >= 6
    for model in models:
        assert f"opline/{model.relative_to(package)}" in have
    for asset in (ROOT / "analyses" / "opline_analyses" / "report" / "assets").iterdir():
        assert f"opline_analyses/report/assets/{asset.name}" in have
    check_shared(target / "share", have)
    check_commands(target, tmp_path)
    packages = {p.parent.relative_to(target) for p in target.rglob("__init__.py")}
    assert all(str(p).split("/")[0] in ("opline", "opline_analyses") for p in packages), "nothing generic is installed"


def check_shims(target: Path) -> None:
    """The libraries and the collector of each shim are where the table of applications finds them."""
    package = Path(opline.__file__).parent
    libraries = [shim.library.relative_to(package) for shim in shims().values()]
    assert libraries and all((target / "opline" / library).is_file() for library in libraries)
    for library in libraries:
        collectors = list((target / "opline" / library).parent.glob("*-collector"))
        assert collectors and all(os.access(collector, os.X_OK) for collector in collectors)


def written(path: Path) -> int:
    """Bytes of a file, or of all files of a folder: a folder's own size depends on the file system."""
    return sum(file.stat().st_size for file in (path.rglob("*") if path.is_dir() else [path]) if file.is_file())


def check_commands(target: Path, folder: Path) -> None:
    """What takes a run elsewhere works from what is installed."""
    subprocess.run(["tar", "-xJf", ROOT / "tests" / "traces" / "demo-qd4.tar.xz", "-C", folder], check=True)
    program = [sys.executable, "-m", "opline_analyses"]
    environment = {**os.environ, "PYTHONPATH": str(target), "PYTHONDONTWRITEBYTECODE": ""}
    for words in (
        ["report", "demo-qd4", "-o", "page.html"],
        *(["export", "demo-qd4", "--to", form, "-o", f"out.{form}"] for form in FORMATS),
        ["record", "--no-block", "--model", "generic", "-o", "rec", "--", "true"],
    ):
        done = subprocess.run(
            [*program, *words], cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=120
        )
        assert done.returncode == 0, (words, done.stderr)
    assert (folder / "page.html").read_bytes().startswith(b"<!DOCTYPE html>")
    of_waits = ("pprof", "waits-folded", "waits-speedscope")  # the trace has none
    with_ops = [form for form in FORMATS if form not in of_waits]
    assert all(written(folder / f"out.{form}") > 1000 for form in with_ops)
    assert (folder / "out.pprof").read_bytes().startswith(b"\x1f\x8b")  # gzip's
    serve = [*program, "view", "demo-qd4"]
    with subprocess.Popen(serve, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True) as serving:
        assert serving.stdout is not None
        with urlopen(serving.stdout.readline().strip(), timeout=60) as page:
            assert page.read().startswith(b"<!DOCTYPE html>")
        serving.terminate()


def check_shared(share: Path, have: set[str]) -> None:
    """What texts of the program point to is installed, and what the shells read."""
    pointed = set()
    for module in (*ROOT.glob("analyses/**/*.py"), *ROOT.glob("correlator/opline/**/*.py")):
        pointed |= set(re.findall(r"\b(?:docs|examples)/[\w./-]*\.(?:md|c|py|toml)\b", module.read_text()))
    assert len(pointed) >= 8
    for name in pointed:
        assert (share / "doc" / "opline" / name).exists(), f"{name} is not installed"
    assert {f"share/doc/opline/{n}" for n in ("tracepoints/opline_tp.h", "tracepoints/opline_tp.c")} <= have
    runs = [p.relative_to(ROOT) for p in ROOT.glob("examples/*/run")]
    assert runs and all(os.access(share / "doc" / "opline" / run, os.X_OK) for run in runs)
    commands = {name for _, group in GROUPS for name, _, _ in group}
    assert {f"share/man/man1/opline-{name}.1" for name in commands} | {"share/man/man1/opline.1"} <= have
    assert {"share/bash-completion/completions/opline", "share/zsh/site-functions/_opline"} <= have


def test_metadata_is_in_setup_cfg_only() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "project" not in project
    assert "setuptools.build_meta" in project["build-system"]["build-backend"]


def test_python_packages_are_pinned() -> None:
    for name in ("requirements.txt", "requirements-dev.txt"):
        for line in (ROOT / name).read_text().splitlines():
            if line and not line.startswith(("#", "-r ")):
                assert "==" in line, f"{name}: {line}"
