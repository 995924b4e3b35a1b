# SPDX-License-Identifier: MIT
"""The native builds; all metadata is in setup.cfg.

Into share/ go what help texts point to: the pages of docs, examples, the header for programs of one's own (below
share/doc/opline, laid out as in the source), man pages and the completion of bash and zsh.

One make (correlator/native/Makefile) builds the extension module `opline._core` and the babeltrace2 plug-in, another
(tracepoints/Makefile) the bridge that carries block events from BPF into an LTTng session. They are put into the
package's folder: the source's for an editable install, the wheel's otherwise.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent
NATIVE = ROOT / "correlator" / "native"
TRACEPOINTS = ROOT / "tracepoints"


def missing_packages() -> list[str]:
    """What the build needs and this machine lacks, one line each with the Debian package that has it."""
    lacks = []
    for tool, package in (("g++", "g++"), ("make", "make"), ("pkg-config", "pkg-config")):
        if shutil.which(tool) is None:
            lacks.append(f"the program {tool} (Debian package {package})")
    includes = [Path("/usr/include"), Path("/usr/local/include"), *Path("/usr/include").glob("*-linux-gnu*")]
    for header, package in (
        ("babeltrace2/babeltrace.h", "libbabeltrace2-dev"),
        ("lttng/tracepoint.h", "liblttng-ust-dev"),
        ("nlohmann/json.hpp", "nlohmann-json3-dev"),
        ("zlib.h", "zlib1g-dev"),
        ("zstd.h", "libzstd-dev"),
    ):
        if not any((folder / header).exists() for folder in includes):
            lacks.append(f"the header {header} (Debian package {package})")
    if not (Path(sysconfig.get_path("include")) / "Python.h").exists():
        lacks.append(f"the header Python.h for {sys.executable} (Debian package python3-dev)")
    # bt2 is an extension module of the system's Python; a build of our own environment can't see it, so ask there
    ask = "import sys, bt2; print(*sys.version_info[:2])"
    asked = subprocess.run(["/usr/bin/python3", "-I", "-c", ask], capture_output=True, text=True, check=False)
    ours = f"{sys.version_info[0]} {sys.version_info[1]}"
    if asked.returncode != 0:
        lacks.append("the Python module bt2 (Debian package python3-bt2)")
    elif asked.stdout.strip() != ours:
        theirs = asked.stdout.strip().replace(" ", ".")
        lacks.append(
            f"bt2 for Python {ours.replace(' ', '.')}: Debian's python3-bt2 is for /usr/bin/python3 ({theirs}). "
            "Install with that one: /usr/bin/python3 -m venv --system-site-packages DIR && DIR/bin/pip install ."
        )
    return lacks


def documents() -> list[Path]:
    """What is installed below share/doc/opline, as paths of the source."""
    found = [ROOT / name for name in ("README.md", "CHANGELOG.md", "LICENSE")]
    for folder, patterns in (
        ("docs", ("*.md", "internals/*.md", "pictures/*.png", "pictures/*.svg")),
        ("examples", ("*/*",)),
        ("tracepoints", ("README.md", "opline_tp.[hc]", "example/*")),
    ):
        found += [path for pattern in patterns for path in sorted((ROOT / folder).glob(pattern))]
    return [path for path in found if path.is_file() and path.suffix not in (".o", ".so")]


def shell_pages(package: Path, share: Path) -> list[Path]:
    """Man pages and completion, made below ``share`` by the program that has been built around ``package``."""
    make = [sys.executable, "-m", "opline_analyses.pages", str(share)]
    path = os.pathsep.join((str(package.parent), *filter(None, sys.path)))  # where pip has put shtab for the build
    subprocess.run(make, check=True, env={**os.environ, "PYTHONPATH": path})
    return [path for path in sorted(share.rglob("*")) if path.is_file()]


def by_folder(root: Path, below: str, files: list[Path]) -> list[tuple[str, list[str]]]:
    """For setuptools: each folder where files go, with their paths, which it wants from here."""
    found: dict[str, list[str]] = {}
    for path in files:
        folder = Path(below) / path.relative_to(root).parent
        found.setdefault(str(folder), []).append(os.path.relpath(path, ROOT))
    return list(found.items())


class NativeBuild(build_ext):
    """Calls make instead of compiling by itself: objects are shared and rebuilt only when their sources change."""

    def run(self) -> None:
        lacks = missing_packages()
        if lacks:
            what = "\n".join(f"  - {lack}" for lack in lacks)
            sys.exit(f"\nopline cannot be built here. Missing:\n{what}\n")
        in_place = self.inplace or getattr(self, "editable_mode", False)
        package = ROOT / "correlator" / "opline" if in_place else Path(self.build_lib).resolve() / "opline"
        jobs = f"-j{os.cpu_count() or 1}"
        make = ["make", jobs, f"PYTHON={sys.executable}"]
        subprocess.run([*make, "-C", str(NATIVE), f"OUT={package}"], check=True)
        if (TRACEPOINTS / "Makefile").exists():
            bridge = package / "capture" / "_bridge.so"
            bridge.parent.mkdir(parents=True, exist_ok=True)
            subprocess.run([*make, "-C", str(TRACEPOINTS), "bridge", f"OUT={bridge}"], check=True)
        if not in_place and (package.parent / "opline_analyses").is_dir():
            share = Path(self.build_temp).resolve() / "share"
            files = self.distribution.data_files = list(self.distribution.data_files or ())
            files += by_folder(ROOT, "share/doc/opline", documents())
            files += by_folder(share, "share", shell_pages(package, share))


setup(ext_modules=[Extension("opline._core", sources=[])], cmdclass={"build_ext": NativeBuild})
