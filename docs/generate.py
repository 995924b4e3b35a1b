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
import pkgutil
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import textwrap
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opline.store.schema import Column

ROOT = Path(__file__).resolve().parent.parent
OPLINE = Path(sys.executable).with_name("opline")
TOLD = {"_ns": "i64", "_count": "u32"}  # types that the end of a column's name tells


def command_modules() -> list[ModuleType]:
    """The modules of the commands, by name."""
    import opline_analyses.commands as package

    names = sorted(info.name for info in pkgutil.iter_modules(package.__path__) if not info.name.startswith("_"))
    modules = [importlib.import_module(f"{package.__name__}.{name}") for name in names]
    return sorted((m for m in modules if hasattr(m, "NAME")), key=lambda m: str(m.NAME))


def item(text: str) -> None:
    """A list's item, in lines of 120 columns."""
    print(textwrap.fill(f"- {text}", 120, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False))


def commands() -> None:
    """The commands, grouped as `opline --help` groups them."""
    from opline_analyses.command_map import GROUPS

    print("| | |\n|---|---|")
    for heading, group in GROUPS:
        print(f"| {heading} | {', '.join(f'[`opline {name}`](commands.md#opline-{name})' for name, _, _ in group)} |")


def tables() -> None:
    """Every table of a run with its columns; a thread and its name share a line. A type that the name tells is left
    out.
    """
    from opline.store.schema import TABLES

    def name_of(column: Column) -> str:
        told = any(column.name.endswith(end) and column.type == kind for end, kind in TOLD.items())
        return f"`{column.name}`" if told else f"`{column.name}` {column.type}"

    for table in TABLES:
        print(f"## {table.name}\n\nA row per {table.row}.\n")
        columns = list(table.columns)
        while columns:
            line = columns[:1]
            if columns[0].name.endswith("tid") and [c.meaning for c in columns[1:2]] == ["Name of that thread."]:
                line = columns[:2]
            del columns[: len(line)]
            item(f"{', '.join(map(name_of, line))}: {line[0].meaning}")
        print()


def losses(severe: bool = True) -> None:
    """The losses that the ledger can hold: those that touch a result, or the others."""
    from opline.losses import LOSSES, Severity

    touching = (Severity.DATA_LOSS, Severity.ERROR)
    shown = [loss for loss in LOSSES if (loss.severity in touching) is severe]
    for origin in dict.fromkeys(loss.origin for loss in shown):
        print(f"### Origin: {origin.value}\n")
        for loss in (loss for loss in shown if loss.origin is origin):
            rare = f" ({loss.severity.value})" if loss.severity in (Severity.ERROR, Severity.INFO) else ""
            item(f"`{loss.name}`{rare}: {loss.advice}")
        print()


def fate_names() -> list[tuple[str, str]]:
    """The fates as the core names them, with the sentence beside each in ledger.hpp."""
    text = (ROOT / "correlator" / "native" / "src" / "event" / "ledger.hpp").read_text()
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

    for name, meaning in NO_REQUEST.items():
        item(f"`{name}`: {meaning}")


def newest_results() -> dict[str, dict[tuple[int, int], list[dict[str, str]]]]:
    """Of benchmarks/results.csv the newest rows, by the trace's name and by its numbers of events and of streams; of
    recordings by their name alone. Rows of traces whose pages were left as recorded are shown nowhere.
    """
    with (ROOT / "benchmarks" / "results.csv").open(newline="") as file:
        rows = [r for r in csv.DictReader(file) if not r["trace"].endswith(" as recorded")]
    newest: dict[str, dict[tuple[int, int], list[dict[str, str]]]] = {}
    for r in rows:
        several = r["trace"] in ("ust", "kernel")
        size = (int(r["events"]), int(r["streams"])) if several else (0, 0)
        kept = newest.setdefault(r["trace"], {}).setdefault(size, [])
        if kept and (kept[0]["date"], kept[0]["commit"]) != (r["date"], r["commit"]):
            kept.clear()
        kept.append(r)
    return {trace: dict(sorted(sizes.items())) for trace, sizes in newest.items()}


def result_table(what: str, shown: list[dict[str, str]]) -> None:
    """The rows of one trace, under what it is and where it was read."""
    r = shown[0]
    size = int(r["bytes"]) / int(r["events"])
    print(f"**{what}: {int(r['events']):,} events, {r['streams']} streams**, {size:.0f} bytes per event on disk.")
    print(f"{r['cpu']}, {r['cpus']} CPUs, kernel {r['kernel']}, babeltrace2 {r['babeltrace2']},")
    print(f"LTTng-UST {r['lttng_ust']}; commit {r['commit']}, {r['date'][:10]};")
    fewer = ", ".join(f"{s['method']}: {s['rounds']}" for s in shown if s["rounds"] != r["rounds"])
    print(f"medians of {r['rounds']} interleaved rounds{f' ({fewer})' if fewer else ''}.\n")
    without = any(s["x_dummy_without_start"] for s in shown)
    titles = ["CPU s", "ns per event", "× dummy, CPU", "× dummy, wall", "peak RSS, MiB"]
    titles[3:3] = ["the same without start-up"] if without else []
    print(f"| | {' | '.join(titles)} |\n|---|{'---|' * len(titles)}")
    for r in shown:
        if r["method"] == "stages native, twice at once":
            continue
        cells = [r["cpu_s"], r["ns_per_event"], r["x_dummy"], r["x_dummy_wall"], r["peak_rss_mib"]]
        cells[3:3] = [r["x_dummy_without_start"]] if without else []
        print(f"| {r['method'].replace('|', chr(92) + '|')} | {' | '.join(cells)} |")
    print()


def recorded_performance() -> None:
    """The newest figures of each recording."""
    sys.path.insert(0, str(ROOT))
    from benchmarks.recordings import RECORDINGS

    newest = newest_results()
    for name, recording in RECORDINGS.items():
        if name in newest:
            of = f" ({recording.copies} copies of a recorded trace)" if recording.of else ""
            result_table(f"{recording.what}{of}, model `{recording.model}`", newest[name][0, 0])


def performance_summary() -> None:
    """The newest figures of each recording: `stages` in one thread beside babeltrace2."""
    sys.path.insert(0, str(ROOT))
    from benchmarks.recordings import RECORDINGS

    newest = newest_results()
    print("| model | events | CPU s | ns per event | × dummy | peak RSS, MiB | two threads, wall |")
    print("|---|---|---|---|---|---|---|")
    for name in (name for name in RECORDINGS if name in newest):
        of = {r["method"]: r for r in newest[name][0, 0]}
        one, two = of["stages native"], of["stages native, 2 threads"]
        ratio = f"{float(one['wall_s']) / float(two['wall_s']):.2f} ×"
        figures = (one[column] for column in ("cpu_s", "ns_per_event", "x_dummy", "peak_rss_mib"))
        cells = (f"{int(one['events']):,}", *figures, ratio)
        print(f"| {RECORDINGS[name].what}, `{RECORDINGS[name].model}` | {' | '.join(cells)} |")
    print()


def performance() -> None:
    """The newest figures of the generated trace, for each size and number of streams."""
    for shown in newest_results().get("ust", {}).values():
        if shown[0]["x_dummy"]:
            result_table("generated trace", shown)


def two_threads() -> None:
    """Wall time of `stages` in one thread and in two; the newest of each size."""
    print("| | one thread, s | two threads, s | | rounds | commit |\n|---|---|---|---|---|---|")
    newest = [(name, size, shown) for name, sizes in newest_results().items() for size, shown in sizes.items()]
    for name, (events, streams), shown in newest:
        of = {r["method"]: r for r in shown}
        if two := of.get("stages native, 2 threads"):
            one = of["stages native"]
            what = f"generated, {events:,} events in {streams} streams" if name == "ust" else f"{name}"
            ratio = float(one["wall_s"]) / float(two["wall_s"])
            cells = (what, one["wall_s"], two["wall_s"], f"{ratio:.2f} ×", two["rounds"], two["commit"])
            print(f"| {' | '.join(cells)} |")
    print()


def least_changes() -> None:
    """Which change so many runs of each side call in four of five comparisons, in SDs of a run."""
    from opline_analyses.compare.compare import HEADLINE
    from opline_analyses.compare.power import least_seen
    from opline_analyses.compare.verdicts import FAMILY

    many = (2, 3, 4, 5, 8, 16, 32)
    print(f"| runs of each side | {' | '.join(map(str, many))} |\n|---|{'---|' * len(many)}")
    for what, judged in (("of the latency (4 figures)", len(HEADLINE)), ("of a stage, 30 figures", 30)):
        seen = [least_seen(1.0, k, FAMILY / judged) for k in many]
        cells = (f"{v:.0f}" if v > 10 else f"{v:.1f}" for v in seen)
        print(f"| {what} | {' | '.join(cells)} |")


@cache
def workplace() -> Path:
    """A folder for this run of cog, removed at its end."""
    folder = Path(tempfile.mkdtemp(prefix="opline-docs-"))
    atexit.register(shutil.rmtree, folder, True)
    return folder


@cache
def recorded(trace: str) -> Path:
    """A recorded trace of the tests, unpacked."""
    (packed,) = (ROOT / "tests").glob(f"*/{trace}.tar.xz")
    subprocess.run(["tar", "-xJf", packed, "-C", workplace()], check=True)
    return workplace() / trace


def example(command: str, trace: str, keep: int = 40) -> None:
    """The same as `answer`, with an empty line after it."""
    answer(command, trace, keep)
    print()


def answer(command: str, trace: str, keep: int = 40) -> None:
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
    print("```")


def of_hosts(command: str, keep: int = 40) -> None:
    """A command and what it prints in the folder of the recordings `client` and `server` of two hosts; `all` is their
    cluster, if the command does not make it.
    """
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        for name in ("client", "server"):
            (here / name).symlink_to(recorded("two-hosts") / name)
        join = "join -o all client=client server=server"
        if not command.startswith("join"):
            subprocess.run([OPLINE, *join.split()], capture_output=True, check=True, cwd=here)
        done = subprocess.run([OPLINE, *shlex.split(command)], text=True, capture_output=True, check=True, cwd=here)
    lines = [line.rstrip() for line in done.stdout.splitlines()]
    if len(lines) > keep:
        lines = [*lines[:keep], f"... ({len(lines) - keep} more lines)"]
    print(f"```text\n$ opline {command}")
    print("\n".join(lines))
    print("```")


def beside_btt(trace: str) -> None:
    """btt's intervals of a trace, as its file btt.txt keeps them, beside ours."""
    row = re.compile(r"^([A-Z0-9]+)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)\s+(\d+)$", re.MULTILINE)
    folder = recorded(trace)
    said = subprocess.run([OPLINE, "btt", folder], text=True, capture_output=True, check=True, cwd=ROOT).stdout
    ours = {found[0]: found[1:] for found in row.findall(said)}
    print("| | btt: min, mean, max (s) | N | `opline btt` | N |\n|---|---|---|---|---|")
    for name, *values, number in row.findall((folder / "btt.txt").read_text()):
        *mine, counted = ours.get(name, ("",))
        print(f"| {name} | {', '.join(values)} | {number} | {', '.join(mine)} | {counted} |")


def main() -> None:
    """Print one part, to look at it: generate.py PART."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument(
        "part",
        choices=[
            "commands",
            "command_pages",
            "tables",
            "losses",
            "fates",
            "recorded_performance",
            "performance",
            "two_threads",
        ],
    )
    globals()[parser.parse_args().part]()


if __name__ == "__main__":
    main()
