# SPDX-License-Identifier: MIT
"""What ``tests/faults/files.py`` damages: files of every kind that commands read, and the commands that read them."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

from tests.io.test_counts import BIOLATENCY, BPFTRACE, HIST_LOG, QUANTIZE, netapp, records, waits
from tests.lib.perf_text import LAYOUTS, text_of

from opline.correlation import correlate
from opline.model import load_model
from opline.store.schema import TABLES
from opline_analyses.cli import main as opline

TESTS = Path(__file__).resolve().parent.parent
PROGRAM = (sys.executable, "-m", "opline_analyses")
MODEL = TESTS / "models" / "lab.toml"
TRACE = TESTS / "traces" / "app-sync-2m-nvme-split.tar.xz"
BLOCK_TRACE = TESTS / "traces" / "blktrace-loop-6.18.tar.xz"


@dataclass(frozen=True, slots=True)
class Kind:
    """Files of one kind in the folder of sound ones, and the commands that read them: {} is the folder, {file}
    the damaged one.
    """

    name: str
    files: tuple[str, ...]
    json: bool
    commands: tuple[tuple[str, ...], ...]


FORMATS = ("perfetto", "chrome", "otlp", "jaeger", "arrow", "speedscope", "folded", "openmetrics", "lami")
RUN_COMMANDS = (
    ("stages", "{}/run"),
    ("losses", "{}/run"),
    ("losses", "{}/run", "--verify"),
    ("csv", "{}/run"),
    ("ops", "{}/run", "--limit", "5"),
    ("requests", "{}/run"),
    ("coverage", "{}/run", "--client", "{}/fio.json"),
    ("hist", "{}/run", "--per", "device"),
    ("iostat", "{}/run", "0.01"),
    ("heatmap", "{}/run", "-o", "{}/out/x.svg"),
    ("outliers", "{}/run"),
    ("log", "{}/run"),
    ("bitesize", "{}/run"),
    ("burst", "{}/run"),
    ("why", "{}/run"),
    ("btt", "{}/run"),
    ("interference", "{}/run", "--slowest", "3"),
    ("graph", "{}/run", "-o", "{}/out/x.svg"),
    ("plot", "{}/run", "-o", "{}/out/x.png"),
    ("report", "{}/run", "-o", "{}/out/x.html"),
    ("compare", "{}/run", "{}/other"),
    ("sql", "{}/run", "SELECT count(*), max(end_ns) FROM ops"),
    *(("export", "{}/run", "--to", form, "-o", "{}/out/x") for form in FORMATS),
)
OLD_COMMANDS = (("stages", "{}/old"), ("csv", "{}/old"), ("losses", "{}/old"))
OF_TRACE = ("stages", "{}/trace", "--model", str(MODEL))
COVERAGE = ("coverage", "{}/run", "--client")
REC_COMMANDS = (("stages", "{}/rec"), ("coverage", "{}/rec"), ("stages", "{}/rec/trace", "--model", str(MODEL)))
WITH_LOG = (*COVERAGE, "{}/fio.json", "--client-log")
LINT = ("model", "lint", "{}/model.toml")
TABLE_FILES = tuple(f"{t.name}.parquet" for t in TABLES)
COUNTS = (
    records("64,0\n128,7\n", "64,3\n1024,2\n128,9\n", "64,9\n1024,8\n128,9\n"),
    HIST_LOG.format(n=9) + HIST_LOG.format(n=2),
    QUANTIZE.format(name="read") + QUANTIZE.format(name="write"),
    "Tracing block device I/O... Hit Ctrl-C to end.\n" + BIOLATENCY.format(time="10:00:00"),
    BPFTRACE,
    netapp({"<400us": 1, "<600us": 5, "<1ms": 0, "<2s": 2, "<120s": 1, ">120s": 3}),
    waits(*((10**6 * n, 977 + n, "db file sequential read") for n in range(1, 20))),
    "1000 5\n2000 7.5\n3000 9.5\n",
    json.dumps({"ts": "10:00:00", "val_type": "usecs", "data": [{"interval-start": 4, "interval-end": 7, "count": 9}]}),
)
TEXT_COMMANDS = (
    ("hist", "{file}"),
    ("iostat", "{file}", "0.01"),
    ("requests", "{file}"),
    ("log", "{file}"),
    ("heatmap", "{file}", "--json"),
    ("burst", "{file}"),
    ("losses", "{file}"),
)
COUNT_COMMANDS = (("hist", "{file}"), ("hist", "{file}", "1"), ("heatmap", "{file}"))
BLOCK_COMMANDS = (("hist", "{}/block"), ("requests", "{}/block"), ("iostat", "{}/block"), ("hist", "{}/block/loop0"))


KINDS = (
    Kind("manifest.json", ("run/manifest.json",), True, RUN_COMMANDS),
    Kind("parquet", tuple(f"run/{name}" for name in TABLE_FILES), False, RUN_COMMANDS),
    Kind("parquet, no checksums", tuple(f"old/{name}" for name in TABLE_FILES), False, OLD_COMMANDS),
    Kind("recording.json", ("rec/recording.json",), True, REC_COMMANDS),
    Kind("extents.json", ("extents.json",), True, ((*OF_TRACE, "--extents", "{}/extents.json"),)),
    Kind("filefrag", ("filefrag",), False, ((*OF_TRACE, "--extents", "{}/filefrag"),)),
    Kind("client log", ("client.csv",), False, ((*WITH_LOG, "{}/client.csv"),)),
    Kind("fio log", ("x_lat.1.log", "x_clat.1.log"), False, ((*WITH_LOG, "{}/x_lat.1.log"),)),
    Kind("fio JSON", ("fio.json",), True, ((*COVERAGE, "{}/fio.json"),)),
    Kind("demo JSON", ("demo.json",), True, ((*COVERAGE, "{}/demo.json"),)),
    Kind("client text", ("client.txt",), False, ((*COVERAGE, "{}/client.txt"),)),
    Kind("block text", tuple(f"text/{n}" for n in range(len(LAYOUTS))), False, TEXT_COMMANDS),
    Kind("blktrace", ("block/loop0.blktrace.0", "block/loop0.blktrace.1"), False, BLOCK_COMMANDS),
    Kind("counts", tuple(f"counts/{n}" for n in range(len(COUNTS))), False, COUNT_COMMANDS),
    Kind("baseline", ("baseline.json",), True, (("compare", "{}/baseline.json", "--", "{}/run"),)),
    Kind("model", ("model.toml",), False, (LINT, (*OF_TRACE[:-1], "{}/model.toml"))),
)


def prepare(folder: Path) -> None:
    """The sound files."""
    with tarfile.open(TRACE) as tar:
        tar.extractall(folder / "trace")
    correlate(folder / "trace", load_model(str(MODEL)), folder / "run", progress=False)
    shutil.copytree(folder / "run", folder / "old")
    manifest = json.loads((folder / "old" / "manifest.json").read_text())
    del manifest["checksums"]
    (folder / "old" / "manifest.json").write_text(json.dumps(manifest))
    shutil.copytree(folder / "trace", folder / "rec" / "trace")
    recording = {
        "schema": "opline-recording",
        "schema_version": 1,
        "state": "complete",
        "model": {"name": "lab", "argument": str(MODEL), "sha256": ""},
        "command": {"argv": ["true", "--json", "x.json", "--log", "log.csv"], "cwd": "/", "begin_monotonic_ns": 1},
        "begin": {"wall": "2026-01-01T00:00:00+00:00", "monotonic_ns": 1},
        "end": {"wall": "2026-01-01T00:01:00+00:00", "monotonic_ns": 60_000_000_001},
        "devices": [{"dev": 265289728, "name": "nvme0n1"}],
        "gaps": [{"loss": "collector_died", "why": "the collector died", "from_ns": 2**61, "to_ns": None, "count": 1}],
        "tracing_ended": None,
        "write_failed": False,
        "block_source": "lttng",
        "collector": None,
    }  # fmt: skip
    (folder / "rec" / "recording.json").write_text(json.dumps(recording))
    extent = {"logical_sector": 0, "physical_sector": 671744, "sectors": 114688, "flags": ["last"]}
    file = {"path": "/mnt/data", "dev": "8:1", "inode": 12, "size_bytes": 67108864, "disk": "8:0", "start_sector": 2048}
    maps = {"version": 1, "files": [{**file, "changed": False, "extents": [extent]}]}
    (folder / "extents.json").write_text(json.dumps(maps))
    (folder / "filefrag").write_bytes((TESTS / "traces" / "fie-direct.filefrag").read_bytes())
    _client_files(folder)
    (folder / "model.toml").write_text(MODEL.read_text())
    shutil.copytree(folder / "run", folder / "other")
    save = ["compare", str(folder / "run"), "--save", str(folder / "baseline.json")]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as said:
        if opline(save) != 0:
            raise SystemExit(said.getvalue())
    _foreign_files(folder)
    (folder / "out").mkdir()


def _foreign_files(folder: Path) -> None:
    with tarfile.open(BLOCK_TRACE) as tar:
        tar.extractall(folder / "unpacked")
    (folder / "block").mkdir()
    for file in folder.glob("unpacked/*/*.blktrace.*"):
        (folder / "block" / file.name).write_bytes(file.read_bytes()[:20_000])
    events = subprocess.run(
        [*PROGRAM, "events", str(folder / "trace"), "--names", "block_*", "--limit", "800"],
        check=True, capture_output=True, text=True,
    ).stdout.splitlines()  # fmt: skip
    texts = {"text": ["\n".join(text_of(events, layout)) + "\n" for layout in LAYOUTS], "counts": COUNTS}
    for name, contents in texts.items():
        (folder / name).mkdir()
        for number, content in enumerate(contents):
            (folder / name / str(number)).write_text(content)


def _client_files(folder: Path) -> None:
    lines = [f"{n * 1000},{n * 1000 + 900},write,object.{n}" for n in range(1, 200)]
    (folder / "client.csv").write_text("\n".join(["begin_ns,end_ns,class,object", *lines]) + "\n")
    for kind, value in (("lat", 800), ("clat", 700)):
        rows = [f"{n}, {value}, 1, 4096, {n * 4096}, 0, {n * 1000}" for n in range(200)]
        (folder / f"x_{kind}.1.log").write_text("\n".join(rows) + "\n")
    lat = {"N": 199, "mean": 900.5, "min": 1, "max": 2000}
    write = {"lat_ns": lat, "clat_ns": lat, "runtime": 1000, "io_bytes": 815104}
    job = {"jobname": "j", "job options": {"iodepth": "4"}, "read": {}, "write": write, "trim": {}}
    (folder / "fio.json").write_text(json.dumps({"fio version": "fio-3.33", "jobs": [job]}))
    ours = {"count": 199, "mean": 900.5, "min": 1, "max": 2000}
    demo = {"tool": "demo-bench", "latency_ns": ours, "write_latency_ns": ours, "read_latency_ns": {"count": 0}}
    times = {"begin_ns": 1, "end_ns": 1_000_000_001, "op_size_bytes": 4096, "queue_depth": 4}
    (folder / "demo.json").write_text(json.dumps(demo | times))
    (folder / "client.txt").write_bytes((TESTS / "traces" / "ctf-mem-qd1.bench.txt").read_bytes())
