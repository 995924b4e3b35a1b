# SPDX-License-Identifier: MIT
"""The directions of imports and of #include (docs/internals/design.md), and the doors to what is foreign: bt2, bcc and
Python.h have one each."""

from __future__ import annotations

import ast
import configparser
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {"opline": ROOT / "correlator" / "opline", "opline_analyses": ROOT / "analyses" / "opline_analyses"}

# Lowest first: a module imports modules of its own layer and of those before it.
LAYERS: tuple[tuple[str, ...], ...] = (
    (
        "opline.errors",
        "opline.talk",
        "opline.values",
        "opline.paths",
        "opline.shapes",
        "opline.folder",
        "opline.locks",
        "opline.packages",
        "opline.scratch",
        "opline.applications.table",
        "opline._core",
    ),
    ("opline.losses", "opline.gaps", "opline.steps", "opline.cost"),
    ("opline.model",),
    ("opline.readers",),
    tuple(f"opline.store.{n}" for n in ("schema", "arrow", "arrays", "checksums", "manifest", "writer")),
    ("opline.reading", "opline.correlation"),
    ("opline.store",),
    ("opline.cluster",),
)
NATIVE = ROOT / "correlator" / "native" / "src"
# Lowest first: a file includes files of its own folder and of those before it.
NATIVE_FOLDERS = (
    "base",
    "event",
    "identity",
    "feed",
    "ctf/metadata",
    "ctf/decode",
    "ctf",
    "block",
    "model",
    "op",
    "sched",
    "waits",
    "binding",
    "stitch",
    "link",
    "stages",
    "statistics",
    "output/csv",
    "output/parquet",
    "output",
    "core",
)
# Folders of a package, lowest first; what is in none of them lies above all.
ROOMS = {
    "opline.capture": (
        "machine",
        "directory",
        "lttng",
        "bpf",
        "probes",
        "collectors",
        "sources",
        "recorder",
    ),
    "opline_analyses": (
        "base",
        "infer",
        "runs",
        "intervals",
        "block",
        "ops",
        "pictures",
        "counts",
        "client",
        "compare",
        "why",
        "report",
        "export",
        "view",
        "hosts",
        "engine",
        "api",
    ),
}
# `opline.open` is what a user types: the package's own file names what is above it, and imports it when it is used.
DOOR = {
    ("opline", f"opline_analyses.{name}")
    for name in (
        "api.heatmap.Heatmap", "api.recorded.Recorded", "api.recorded.record", "api.run.LossWarning", "api.run.Run",
        "api.run.correlate", "api.run.open", "api.table.Table", "api.what.what", "base.result_table.ResultTable",
    )
}  # fmt: skip
CAPTURE_MAY_USE = tuple(
    f"opline.{name}"
    for name in (
        "errors",
        "interpreter",
        "values",
        "paths",
        "folder",
        "locks",
        "packages",
        "scratch",
        "losses",
        "cost",
        "model",
        "readers",
        "applications.table",
        "capture",
    )
)


def module_name(path: Path) -> str:
    for package, folder in PACKAGES.items():
        if folder in path.parents:
            parts = path.relative_to(folder).with_suffix("").parts
            return ".".join((package, *parts)).removesuffix(".__init__")
    raise AssertionError(path)


def sources() -> list[Path]:
    return [path for folder in PACKAGES.values() for path in sorted(folder.rglob("*.py"))]


def imports(path: Path) -> Iterator[str]:
    """Every module that a file imports, at the top or inside a function; `from a import b` gives a.b."""
    here = module_name(path).split(".")
    base = here if path.name == "__init__.py" else here[:-1]
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parent = base[: len(base) - node.level + 1] if node.level else []
            module = ".".join([*parent, *([node.module] if node.module else [])])
            yield from (f"{module}.{alias.name}" for alias in node.names)


def inside(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


def layer(module: str) -> int | None:
    for number, names in enumerate(LAYERS):
        if any(inside(module, name) for name in names):
            return number
    return None


@pytest.mark.parametrize("path", sources(), ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_downwards(path: Path) -> None:
    module = module_name(path)
    for target in imports(path):
        if not (inside(target, "opline") or inside(target, "opline_analyses")):
            continue
        if inside(module, "opline"):
            assert not inside(target, "opline_analyses") or (module, target) in DOOR, f"{module} imports {target}"
        guest = re.match(r"opline\.applications\.(?!table\b)\w+", target)
        assert guest is None or inside(module, guest[0]), f"{module} imports {target}: the table finds applications"
        if inside(module, "opline.capture") or re.match(r"opline\.applications\.(?!table\b)", module):
            allowed = guest is not None or target == "opline.__version__"
            allowed = allowed or any(inside(target, name) for name in CAPTURE_MAY_USE)
            assert allowed, f"{module} imports {target}"
        own, other = layer(module), layer(target)
        if own is not None:
            assert not inside(target, "opline.capture"), f"{module} imports {target}"
            if other is not None:
                assert other <= own, f"{module} imports {target}, which lies above it"


def room(module: str, package: str) -> int:
    """The place of a module's folder among the package's."""
    folder = module.removeprefix(package + ".").split(".")[0]
    return ROOMS[package].index(folder) if folder in ROOMS[package] else len(ROOMS[package])


@pytest.mark.parametrize("package", ROOMS)
def test_rooms_import_downwards(package: str) -> None:
    modules = {module_name(path): path for path in sources() if inside(module_name(path), package)}
    assert {room(module, package) for module in modules} == set(range(len(ROOMS[package]) + 1))
    upwards = [
        f"{module} imports {target}"
        for module, path in modules.items()
        for target in imports(path)
        if inside(target, package)
        and target != package
        and any(inside(target, known) for known in modules)
        and room(target, package) > room(module, package)
    ]
    assert not upwards, "\n".join(upwards)


def test_options_are_texts_above_the_api_alone() -> None:
    """argparse is what the command line is made of: the rooms and the API take values and keyword arguments."""
    above = ("commands", "live", "pages", "cli")
    modules = [path for path in sources() if inside(module_name(path), "opline_analyses")]
    users = {module_name(path) for path in modules if any(inside(target, "argparse") for target in imports(path))}
    below = {m for m in users if m.removeprefix("opline_analyses.").split(".")[0] not in above}
    assert below == set()


#: What commands may call of the rooms below the API. Before a run is open: what an input is, which tables are needed,
#: and what a terminal can show. Of several recordings: the sums of what an engine's workers give.
BESIDE_THE_API = {
    "block.io_filter.tables_needed", "client.client_files.find_log", "counts.collected.collect",
    "counts.formats.oracle_trace", "counts.inputs.kind_as_asked", "counts.inputs.kind_of", "counts.inputs.refuse",
    "pictures.heatmap_text.colours_wanted", "block.hist_result.buckets_of", "block.hist_result.unit_of",
    "export.lami", "block.io_log.listing", "block.io_log.pairs", "client.defaults.narrows",
    "client.defaults.outside_line", "client.defaults.outside_of", "compare.gate",
}  # fmt: skip
OF_MANY = {
    "hist": {
        "block.io_filter", "block.hist_result.counting_buckets", "block.hist_result.summed", "block.hist_result.fitted",
        "block.io_sources.source_of",
    },
    "iostat": {"block.iostat_result.table"},
    "stages": {"ops.stage_text.result", "ops.stages.none_counts", "ops.stages.table_of"},
    "why": {"why.of_many.result", "why.sets.rule_of"},
    "compare": {"compare.figures.figures_in"},
}  # fmt: skip
#: `opline view` serves a run for as long as a page asks: the room `view` does the work.
VIEW = {"client.defaults.default_selection"}
ANALYSES = ("infer", "intervals", "block", "ops", "pictures", "counts", "client", "compare", "why", "report", "export")


def test_commands_call_the_api() -> None:
    """A command has options and prints results: the work is a function of the API, so that Python has it as well.
    Names of classes and constants (help texts list them) are free.
    """
    past: dict[str, set[str]] = {}
    for path in (p for p in sources() if inside(module_name(p), "opline_analyses.commands")):
        called = {target.removeprefix("opline_analyses.") for target in imports(path)}
        of_rooms = {name for name in called if name.split(".")[0] in ANALYSES or name.startswith("runs.selection.")}
        past[path.stem] = {name for name in of_rooms if not name.split(".")[-1][0].isupper()}
    allowed = {name: BESIDE_THE_API | OF_MANY.get(name, set()) for name in past}
    assert {name: found - allowed[name] for name, found in past.items() if found - allowed[name]} == {"view": VIEW}
    used = set().union(*past.values())
    assert BESIDE_THE_API.union(*OF_MANY.values()) <= used, "nothing calls these any more"


@pytest.mark.parametrize("door", ["bt2", "bcc"])
def test_one_file_imports(door: str) -> None:
    users = [path for path in sources() if any(inside(target, door) for target in imports(path))]
    assert len(users) == 1, f"{door} is imported by {[str(p.relative_to(ROOT)) for p in users]}"


def test_one_folder_includes_python() -> None:
    native = [p for suffix in ("*.cpp", "*.hpp", "*.c", "*.h") for p in (ROOT / "correlator").rglob(suffix)]
    users = {str(p.parent.relative_to(ROOT)) for p in native if "Python.h>" in p.read_text()}
    assert users == {"correlator/native/python"}


def test_includes_point_downwards() -> None:
    """Of the native core: a file includes files of its own folder and of those before it; only `ctf` includes `ctf`."""
    files = [path for path in sorted(NATIVE.rglob("*")) if path.suffix in {".cpp", ".hpp"}]
    for path in files:
        folder = str(path.parent.relative_to(NATIVE))
        for name in re.findall(r'^#include "(.+)"$', path.read_text(), re.MULTILINE):
            assert (NATIVE / name).is_file(), f"{path} includes {name}, which is no path from {NATIVE}"
            other = str(Path(name).parent)
            assert NATIVE_FOLDERS.index(other) <= NATIVE_FOLDERS.index(folder), f"{path} includes {name}"
            assert inside_folder(folder, "ctf") or not inside_folder(other, "ctf"), f"{path} includes {name}"
    assert {str(path.parent.relative_to(NATIVE)) for path in files} == set(NATIVE_FOLDERS)


def inside_folder(folder: str, outer: str) -> bool:
    return folder == outer or folder.startswith(outer + "/")


def test_every_package_is_installed() -> None:
    """setup.cfg names the packages one by one: with two roots setuptools can't find them by itself."""
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    named = set(config["options"]["packages"].split())
    found = {module_name(path) for path in sources() if path.name == "__init__.py"}
    assert named == found
