# SPDX-License-Identifier: MIT
"""The generated parts of README.md and docs/: cog calls these functions, each prints Markdown.

`make docs` writes them, `make docs-check` (part of ./check) fails where they differ. Output of commands is real: they
run on the recorded traces of tests/traces, so it is the same everywhere.
"""

from __future__ import annotations

import argparse
import atexit
import csv
import importlib
import os
import pkgutil
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parent.parent
OPLINE = Path(sys.executable).with_name("opline")


def command_modules() -> list[ModuleType]:
    """The modules of the commands, by name."""
    import opline_analyses.commands as package

    names = sorted(info.name for info in pkgutil.iter_modules(package.__path__) if not info.name.startswith("_"))
    modules = [importlib.import_module(f"{package.__name__}.{name}") for name in names]
    return sorted((m for m in modules if hasattr(m, "NAME")), key=lambda m: str(m.NAME))


def commands() -> None:
    """A table of the commands, grouped as `opline --help` groups them."""
    from opline_analyses.cli import GROUPS

    print("| | command | |\n|---|---|---|")
    for heading, group in GROUPS:
        shown = heading
        for name, _module, line in group:
            print(f"| {shown} | [`opline {name}`](docs/commands.md#opline-{name}) | {line} |")
            shown = ""


def command_pages() -> None:
    """The help of every command, as `opline COMMAND --help` prints it."""
    from opline_analyses.cli import parser_of

    os.environ["COLUMNS"] = "100"
    for module in command_modules():
        shown = parser_of(str(module.NAME)).format_help().rstrip()
        print(f"## opline {module.NAME}\n\n```text\n{shown}\n```\n")


def tables() -> None:
    """Every table of a run with its columns."""
    from opline.store.schema import TABLES

    for table in TABLES:
        print(f"## {table.name}\n\nOne row per {table.row}.\n\n| column | type | meaning |\n|---|---|---|")
        for column in table.columns:
            meaning = column.meaning.replace("|", "\\|")
            print(f"| `{column.name}` | {column.type} | {meaning} |")
        print()


def losses() -> None:
    """Every loss that the ledger can hold."""
    from opline.losses import LOSSES

    print("| loss | severity | origin | what it means, what to do |\n|---|---|---|---|")
    for loss in LOSSES:
        print(f"| `{loss.name}` | {loss.severity.value} | {loss.origin.value} | {loss.advice} |")


def fate_names() -> list[tuple[str, str]]:
    """The fates as the core names them, with the sentence beside each in ledger.hpp."""
    text = (ROOT / "correlator" / "native" / "src" / "ledger.hpp").read_text()
    body = text[text.index("enum class Fate") : text.index("kCount")]
    meanings = re.findall(r"^\s*k\w+,\s*// ?(.+)$", body, re.MULTILINE)
    listed = text[text.index("kFateNames = {") : text.index("};", text.index("kFateNames = {"))]
    names = re.findall(r'"([^"]+)"', listed)
    if len(names) != len(meanings):
        raise SystemExit("ledger.hpp: each fate needs a name in kFateNames and a comment on its line")
    return list(zip(names, meanings, strict=True))


def fates() -> None:
    """Every fate that an event can meet."""
    print("| fate | events |\n|---|---|")
    for name, meaning in fate_names():
        print(f"| `{name}` | {meaning} |")


def no_request() -> None:
    """Every reason why an op has no block request."""
    from opline.losses import NO_REQUEST

    print("| reason | meaning |\n|---|---|")
    for name, meaning in NO_REQUEST.items():
        print(f"| `{name}` | {meaning} |")


def newest_results() -> dict[tuple[bool, int, int], list[dict[str, str]]]:
    """Of benchmarks/results.csv the newest rows of each: kernel events or not, number of events, number of streams.
    Traces whose pages were left as recorded are shown nowhere.
    """
    with (ROOT / "benchmarks" / "results.csv").open(newline="") as file:
        rows = [r for r in csv.DictReader(file) if r["trace"] in ("ust", "kernel")]
    newest: dict[tuple[bool, int, int], list[dict[str, str]]] = {}
    for r in rows:
        kept = newest.setdefault((r["trace"] == "kernel", int(r["events"]), int(r["streams"])), [])
        if kept and (kept[0]["date"], kept[0]["commit"]) != (r["date"], r["commit"]):
            kept.clear()
        kept.append(r)
    return dict(sorted(newest.items()))


def performance() -> None:
    """The newest figures of each size and number of streams."""
    for (kernel, events, streams), shown in newest_results().items():
        r = shown[0]
        if not r["x_dummy"]:
            continue
        size = int(r["bytes"]) / events
        what = "kernel events (copies of a recorded trace of fio)" if kernel else "events"
        print(f"**{events:,} {what}, {streams} streams**, {size:.0f} bytes per event on disk.")
        print(f"{r['cpu']}, {r['cpus']} CPUs, kernel {r['kernel']}, babeltrace2 {r['babeltrace2']},")
        print(f"LTTng-UST {r['lttng_ust']}; commit {r['commit']}, {r['date'][:10]};")
        fewer = ", ".join(f"{s['method']}: {s['rounds']}" for s in shown if s["rounds"] != r["rounds"])
        print(f"medians of {r['rounds']} interleaved rounds{f' ({fewer})' if fewer else ''}.\n")
        print("| | CPU s | ns per event | × dummy, CPU | × dummy, wall | peak RSS, MiB |\n|---|---|---|---|---|---|")
        for r in shown:
            if r["method"] == "stages native, twice at once":
                continue
            cells = (r["cpu_s"], r["ns_per_event"], r["x_dummy"], r["x_dummy_wall"], r["peak_rss_mib"])
            print(f"| {r['method'].replace('|', chr(92) + '|')} | {' | '.join(cells)} |")
        print()


def two_threads() -> None:
    """Wall time of `stages` in one thread and in two, and of two such processes at once; the newest of each size."""
    print("| | one thread, s | two threads, s | | two processes | rounds | commit |\n|---|---|---|---|---|---|---|")
    for (kernel, events, streams), shown in newest_results().items():
        of = {r["method"]: r for r in shown}
        if two := of.get("stages native, 2 threads"):
            one = of["stages native"]
            what = f"{'kernel' if kernel else 'applications'}, {events:,} events in {streams} streams"
            ratio = float(one["wall_s"]) / float(two["wall_s"])
            twice = of.get("stages native, twice at once")
            most = f"{2 * float(one['wall_s']) / float(twice['wall_s']):.2f} ×" if twice else ""
            cells = (what, one["wall_s"], two["wall_s"], f"{ratio:.2f} ×", most, two["rounds"], two["commit"])
            print(f"| {' | '.join(cells)} |")
    print()


@cache
def workplace() -> Path:
    """A folder for this run of cog, removed at its end."""
    folder = Path(tempfile.mkdtemp(prefix="opline-docs-"))
    atexit.register(shutil.rmtree, folder, True)
    return folder


@cache
def recorded(trace: str) -> Path:
    """A recorded trace of tests/traces, unpacked."""
    subprocess.run(["tar", "-xJf", ROOT / "tests" / "traces" / f"{trace}.tar.xz", "-C", workplace()], check=True)
    return workplace() / trace


def example(command: str, trace: str, keep: int = 40) -> None:
    """A command and what it prints on a recorded trace; TRACE in it is the trace's folder. Shows `keep` lines."""
    path = str(recorded(trace))
    shown = subprocess.run(
        [OPLINE, *shlex.split(command.replace("TRACE", path))], text=True, capture_output=True, check=True, cwd=ROOT
    ).stdout.splitlines()
    lines = [line.rstrip().replace(path, trace) for line in shown]
    if len(lines) > keep:
        lines = [*lines[:keep], f"... ({len(lines) - keep} more lines)"]
    print(f"```text\n$ opline {command.replace('TRACE', trace)}")
    print("\n".join(lines))
    print("```\n")


def main() -> None:
    """Print one part, to look at it: generate.py PART."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument(
        "part", choices=["commands", "command_pages", "tables", "losses", "fates", "performance", "two_threads"]
    )
    globals()[parser.parse_args().part]()


if __name__ == "__main__":
    main()
