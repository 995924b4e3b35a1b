# SPDX-License-Identifier: MIT
"""One command about many recordings: the same bytes with any number of workers, and never a part as if it were all."""

from __future__ import annotations

import concurrent.futures
import contextlib
import csv
import fcntl
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
from tests.lib.recorded import RunOf

from opline import __version__
from opline_analyses.cli import main
from opline_analyses.engine.interface import REFUSED, Failure, Item, engine_of
from opline_analyses.engine.processes import run_here

NAMES = ("demo-kernel", "app-sync-2m-nvme-split", "app-libaio-qd8-dmlinear")
COMMANDS = (
    ("stages",),
    ("stages", "--exact", "--json"),
    ("why", "--all"),
    ("hist", "0.5", "--csv"),
    ("iostat", "0.5", "--json"),
)
OPTIONS: dict[str, Any] = {"model": None, "reader": None, "all_programs": False, "filters": {}, "tainted": False}
# An idle worker takes 7 % of a CPU to profile itself and to watch the machine.
UNWATCHED = {
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__INTERVAL": "60s",
    "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "5s",
}
T = TypeVar("T")
Opline = Callable[..., subprocess.CompletedProcess[str]]
Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def runs(run_of: RunOf, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of three runs, each its own copy."""
    folder = tmp_path_factory.mktemp("many")
    for name in NAMES:
        shutil.copytree(run_of(name).path, folder / name)
    return folder


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """A recording that has no run yet."""
    (folder := tmp_path / "recorded").mkdir()
    archive = Path(__file__).parents[1] / "hosts" / "two-hosts.tar.xz"
    subprocess.run(["tar", "-xJf", archive, "-C", folder], check=True)
    return folder / "two-hosts" / "client"


class Workers:
    """A scheduler of Dask and its workers, each a process of its own. ``nanny``: what starts a dead one again."""

    def __init__(self, folder: Path, count: int) -> None:
        self.processes: list[subprocess.Popen[bytes]] = []
        self.log = folder / "log"
        self._module("dask_scheduler", "--port", "0", "--host", "127.0.0.1", "--no-dashboard")
        self.address = wait_for(lambda: address_in(self.log))
        for _ in range(count):
            self._module("dask_worker", self.address, "--nthreads", "1", "--no-dashboard", "--local-directory", folder)

    def _module(self, name: str, *arguments: object) -> None:
        argv = [sys.executable, "-m", f"distributed.cli.{name}", *map(str, arguments)]
        with self.log.open("ab") as log:
            self.processes.append(
                subprocess.Popen(
                    argv,
                    env=os.environ | UNWATCHED,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            )

    def close(self) -> None:
        for process in reversed(self.processes):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def address_in(log: Path) -> str | None:
    found = re.search(r"Scheduler at: +(tcp:\S+)", log.read_text())
    return None if found is None else found[1]


@pytest.fixture(scope="module")
def dask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    pytest.importorskip("distributed")
    workers = Workers(tmp_path_factory.mktemp("dask"), 2)
    yield workers.address
    workers.close()


def wait_for(found: Callable[[], T | None], seconds: float = 60) -> T:
    """What ``found`` gives, once it gives something."""
    end = time.monotonic() + seconds
    while (it := found()) is None:
        assert time.monotonic() < end, "nothing in time"
        time.sleep(0.02)
    return it


def said(capfd: Capture, *words: object) -> tuple[int, str, str]:
    status = main([str(word) for word in words])
    out = capfd.readouterr()
    return status, out.out, out.err


def tasks_of(path: Path) -> list[int]:
    """Processes that do a task and have this folder open."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if b"opline_analyses.engine.task" in (process / "cmdline").read_bytes() and any(
                os.path.realpath(fd) == str(path) for fd in (process / "fd").iterdir()
            ):
                found.append(int(process.name))
    return found


@contextlib.contextmanager
def kept(path: Path) -> Iterator[Callable[[], None]]:
    """Whoever would correlate the recording waits, until what this gives is called."""
    held = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(held, fcntl.LOCK_EX)
    try:
        yield lambda: fcntl.flock(held, fcntl.LOCK_UN)
    finally:
        os.close(held)


def test_the_same_bytes_with_one_two_and_four_processes(runs: Path, capfd: Capture) -> None:
    first, *others = [said(capfd, "stages", runs, "--engine", f"processes:{n}") for n in (1, 2, 4)]
    assert first[0] == 0 and first[1]
    assert all(other == first for other in others)


def test_histograms_side_by_side_are_those_of_each_recording(runs: Path, capfd: Capture) -> None:
    def groups(*words: object) -> dict[str, dict[str, Any]]:
        status, out, _ = said(capfd, "hist", *words, "--json")
        assert status == 0
        (interval,) = json.loads(out)["intervals"]
        return {group["group"]: {k: v for k, v in group.items() if k != "group"} for group in interval["groups"]}

    first, *others = (runs / name for name in NAMES)
    of_all = (first, *(word for other in others for word in ("--also", other)), "--per", "recording")
    found = groups(*of_all)
    assert list(found) == list(NAMES) != sorted(NAMES)
    table = csv.DictReader(io.StringIO(said(capfd, "hist", *of_all, "--csv")[1]))
    assert list(dict.fromkeys(row["group"] for row in table)) == list(NAMES)
    idle = groups(*of_all, "--of", "ops", "--latency", ">10s")
    assert {name: group["count"] for name, group in idle.items()} == dict.fromkeys(NAMES, 0)
    for name in NAMES:
        assert found[name] == groups(runs / name)[""]
    status, out, err = said(capfd, "hist", first, "--per", "recording")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert "--also" in err
    status, out, err = said(capfd, "live", "hist", "--per", "recording", "--", "true")
    assert (status, out, err.count("\n")) == (2, "", 1)  # before anything is traced
    assert "invalid choice: 'recording'" in err


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_the_same_bytes_with_workers_of_dask(words: tuple[str, ...], runs: Path, dask: str, capfd: Capture) -> None:
    command, *rest = words
    first = said(capfd, command, runs, *rest, "--engine", "processes:2")
    assert said(capfd, command, runs, *rest, "--engine", f"dask:{dask}") == first


def test_stages_of_several_runs_are_the_sums_of_each(runs: Path, capfd: Capture) -> None:
    documents = [json.loads(said(capfd, "stages", runs / name, "--json")[1]) for name in NAMES]
    whole = json.loads(said(capfd, "stages", runs, "--engine", "processes", "--json")[1])
    assert whole["ops"] == sum(d["ops"] for d in documents)
    rows: dict[str, list[dict[str, Any]]] = {}
    for document in documents:
        for row in document["stages"]:
            rows.setdefault(row["stage"], []).append(row)
    assert {row["stage"] for row in whole["stages"]} == set(rows)
    for row in whole["stages"]:
        each = rows[row["stage"]]
        assert row["count"] == sum(r["count"] for r in each)
        assert row["total_ns"] == sum(r["total_ns"] for r in each)
        assert row["max_ns"] == max(r["max_ns"] for r in each)
        for name in ("p50_ns", "p90_ns", "p99_ns", "p999_ns"):
            assert min(r[name] for r in each) * 0.998 <= row[name] <= max(r[name] for r in each) * 1.002


def test_one_run_by_an_engine_has_its_own_figures_in_its_own_order(runs: Path, capfd: Capture) -> None:
    own = json.loads(said(capfd, "stages", runs / NAMES[2], "--json")[1])
    by_engine = json.loads(said(capfd, "stages", runs / NAMES[2], "--engine", "processes:1", "--json")[1])
    assert [row["stage"] for row in by_engine["stages"]] == [row["stage"] for row in own["stages"]]
    for mine, other in zip(by_engine["stages"], own["stages"], strict=True):
        for name in ("count", "kind", "mean_ns", "max_ns", "total_ns", "share"):
            assert mine[name] == other[name], (mine["stage"], name)
        for name in ("p50_ns", "p90_ns", "p99_ns", "p999_ns"):
            assert abs(mine[name] - other[name]) <= other[name] / 500 + 1
    assert by_engine["programs"] == own["programs"]


@pytest.mark.parametrize("words", [("--per", "io"), ("--beside", "queue")])
def test_histograms_of_several_runs_are_the_sums_of_each(words: tuple[str, ...], runs: Path, capfd: Capture) -> None:
    def counts(*paths: object) -> dict[tuple[str, str, str, str], tuple[int, int]]:
        text = said(capfd, "hist", *paths, "1", "--csv", *words)[1]
        rows = [r for r in csv.DictReader(io.StringIO(text)) if int(r["count"])]
        return {
            (r["begin_ns"], r["group"], r["low_ns"], r["high_ns"]): (int(r["count"]), int(r["sum_ns"])) for r in rows
        }

    each = [counts(runs / name) for name in NAMES]
    whole = counts(runs, "--engine", "processes")
    assert set(whole) == {key for one in each for key in one}
    for key, found in whole.items():
        assert found == tuple(sum(one.get(key, (0, 0))[n] for one in each) for n in (0, 1))


def test_rows_of_iostat_are_those_of_each_run_with_its_name(runs: Path, capfd: Capture) -> None:
    whole = json.loads(said(capfd, "iostat", runs, "1", "-x", "--engine", "processes", "--json")[1])["rows"]
    each = []
    for name in NAMES:
        for row in json.loads(said(capfd, "iostat", runs / name, "1", "-x", "--json")[1])["rows"]:
            each.append({**row, "device": f"{name}:{row['device']}"})

    def place(row: dict[str, Any]) -> tuple[int, str]:
        return row["begin_ns"], row["device"]

    assert sorted(whole, key=place) == sorted(each, key=place)
    dtrace = ("1", "--style", "dtrace", "--json")
    each = [row for name in NAMES for row in json.loads(said(capfd, "iostat", runs / name, *dtrace)[1])["rows"]]
    together = json.loads(said(capfd, "iostat", runs, *dtrace, "--engine", "processes")[1])["rows"]
    for of in ("read_count", "write_count", "write_bytes", "write_sum_ns"):
        assert sum(row[of] for row in together) == sum(row[of] for row in each) > 0


@pytest.mark.parametrize(("damage", "table"), [("flipped", "stages"), ("cut", "ops"), ("removed", "stages")])
def test_a_damaged_run_is_named_and_not_counted(
    damage: str, table: str, runs: Path, tmp_path: Path, capfd: Capture
) -> None:
    folder = tmp_path / "runs"
    shutil.copytree(runs, folder)
    file = folder / NAMES[1] / f"{table}.parquet"
    whole = file.read_bytes()
    middle = len(whole) // 2
    if damage == "removed":
        file.unlink()
    else:
        file.write_bytes(
            whole[:middle] + (b"" if damage == "cut" else bytes([whole[middle] ^ 1]) + whole[middle + 1 :])
        )
    status, out, err = said(capfd, "stages", folder, "--engine", "processes", "--json")
    assert status == 3
    assert f"opline: {NAMES[1]}: " in err and f"{table}.parquet" in err
    assert f"1 of 3 recordings are not in the figures below: {NAMES[1]}." in err
    others = ("stages", folder / NAMES[2], "--also", folder / NAMES[0], "--json")
    assert said(capfd, *others)[:2] == (0, out)


def test_a_host_of_a_cluster_that_is_gone_is_named(recorded: Path, tmp_path: Path, capfd: Capture) -> None:
    out = tmp_path / "cluster"
    assert main(["join", "-o", str(out), f"client={recorded}", f"server={recorded.parent}/server"]) == 0
    capfd.readouterr()
    status, whole, err = said(capfd, "stages", out, "--engine", "processes", "--json")
    assert (status, err) == (0, "")
    assert json.loads(whole)["ops"] == 2500
    shutil.rmtree(out / "runs" / "host=server")
    status, rest, err = said(capfd, "stages", out, "--engine", "processes", "--json")
    assert status == 3 and rest == whole
    assert "opline: server: " in err and "host=server does not exist." in err
    shutil.rmtree(out / "runs" / "host=client")
    status, rest, err = said(capfd, "stages", out, "--engine", "processes", "--json")
    assert (status, rest) == (3, "") and "None of 2 recordings has an answer" in err


@pytest.mark.parametrize("times", [1, 2])
def test_a_killed_task_is_done_once_more(times: int, recorded: Path, tmp_path: Path) -> None:
    def kill() -> None:
        before: set[int] = set()
        for _ in range(times):
            pid = wait_for(lambda: next((p for p in tasks_of(recorded) if p not in before), None))
            before.add(pid)
            os.kill(pid, signal.SIGKILL)
        release()

    engine = engine_of("processes:1", tmp_path)
    with kept(recorded) as release, contextlib.closing(engine):
        killer = threading.Thread(target=kill)
        killer.start()
        ((_, found),) = engine.map("stages", [Item("client", str(recorded), OPTIONS)])
        killer.join()
    if times == 2:
        assert found == Failure("signal 9 ended its task, twice", -9)
    else:
        assert isinstance(found, Path)
        assert json.loads(found.read_text())["summary"]["ops"] == 2500


def test_a_killed_worker_of_dask_changes_nothing(recorded: Path, runs: Path, dask: str, opline: Opline) -> None:
    words = ("stages", recorded, "--also", runs, "--json", "--exact", "--engine")
    with kept(recorded) as release, concurrent.futures.ThreadPoolExecutor(1) as pool:
        answer = pool.submit(opline, *words, f"dask:{dask}")
        (task,) = wait_for(lambda: tasks_of(recorded) or None)
        worker = int(Path(f"/proc/{task}/stat").read_text().rsplit(")", 1)[1].split()[1])
        os.kill(worker, signal.SIGKILL)
        wait_for(lambda: True if task not in tasks_of(recorded) else None)  # it does not outlive its worker
        release()
        by_dask = answer.result()
    assert (by_dask.returncode, by_dask.stderr) == (0, "")
    assert by_dask.stdout == opline(*words, "processes:2").stdout


def test_tasks_end_with_who_asks(recorded: Path) -> None:
    argv = [sys.executable, "-m", "opline_analyses", "stages", str(recorded), "--engine", "processes:2"]
    with kept(recorded):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            asker = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            wait_for(lambda: tasks_of(recorded) or None)
            asker.send_signal(number)
            assert asker.wait() == (-9 if number == signal.SIGKILL else 128 + number)
            wait_for(lambda: None if tasks_of(recorded) else True)


def test_another_version_refuses(runs: Path) -> None:
    request = json.dumps({"opline": "0.0.1", "path": str(runs / NAMES[0]), "options": OPTIONS}).encode() + b"\n"
    status, wrote, why = run_here("stages", request)
    assert (status, wrote) == (REFUSED, b"")
    assert why.decode() == f"its worker has opline {__version__}, and opline 0.0.1 asks"


def test_what_cannot_be_asked_is_said_in_a_line(
    runs: Path, tmp_path: Path, capfd: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    for words, line in {
        (
            "stages",
            runs,
            "--engine",
            "spark",
        ): "--engine spark: there are processes, dask, and those of other packages.",
        ("stages", runs, "--engine", "processes:0"): "--engine processes:0: a number of processes is wanted",
        ("stages", runs, "--engine", "dask"): "--engine dask: an address is wanted",
        ("stages", runs, "--also", runs): "A recording is named twice",
        ("stages", runs, "--engine", "processes", "--states"): "--states is about one recording",
        ("stages", runs / NAMES[0], "--exact"): "--exact is about many recordings",
        ("why", runs, "--engine", "processes", "--every", "1ms"): "--every is about one recording",
        ("why", runs, "--engine", "processes", "--latency", ">9s"): "No ops of more than 9 s among",
        ("stages", tmp_path / "no", "--engine", "processes"): "does not exist.",
        ("hist", runs, "-T", "--engine", "processes"): "--timestamps is about one recording",
        ("iostat", runs, "--style", "dtrace", "--engine", "processes"): "give INTERVAL.",
        ("stages", runs, "--engine", f"dask:ssh:{tmp_path}/no"): "Cannot read the hosts in",
    }.items():
        status, out, err = said(capfd, *words)
        assert status in (1, 2) and out == "" and line in err and err.count("\n") == 1, err
    monkeypatch.setitem(sys.modules, "dask", None)
    status, out, err = said(capfd, "stages", runs, "--engine", "dask:tcp://127.0.0.1:1")
    assert (status, out) == (1, "")
    assert err == "opline: this needs the Python package dask: pip install 'opline[dask]'\n"


def test_more_losses_than_allowed(runs: Path, capfd: Capture) -> None:
    status, out, _ = said(capfd, "stages", runs, "--engine", "processes", "--max-loss", "0")
    each = [said(capfd, "stages", runs / name, "--max-loss", "0")[0] for name in NAMES]
    assert out and status == max(each)


@pytest.mark.parametrize("language", ["sql", "python"])
def test_queries_of_other_engines_run(language: str, recorded: Path, opline: Opline) -> None:
    """The first query of each language in docs/internals/engine.md."""
    if language == "python":
        pytest.importorskip("dask.dataframe")
    here = recorded.parent
    assert opline("join", "-o", "all", "client=client", "server=server", cwd=here).returncode == 0
    page = (Path(__file__).parents[2] / "docs" / "internals" / "engine.md").read_text()
    text = page.split(f"```{language}\n", 1)[1].split("```", 1)[0]
    program = text if language == "python" else f"import duckdb\nprint(duckdb.sql({text!r}))"
    done = subprocess.run([sys.executable, "-c", program], cwd=here, capture_output=True, text=True, check=True)
    assert "client queue" in done.stdout and "2500" in done.stdout
