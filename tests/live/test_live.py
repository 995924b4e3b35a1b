# SPDX-License-Identifier: MIT
"""Live views against the same views of a recording: the block events of recorded traces as records of the BPF ring, in
pieces, with looks between them at odd moments. No number may differ.
"""

from __future__ import annotations

import importlib
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bt2
import pytest
from tests.lib.recorded import RunOf, unpack

from opline.capture.bpf.bpf import KINDS
from opline.errors import UsageError
from opline_analyses.cli import main, parser_for
from opline_analyses.commands.live import VIEWS, Chosen, chosen
from opline_analyses.live.feed import Feed
from opline_analyses.live.watch import RingStream, _tell
from opline_analyses.runs.run import open_run

TRACES = ("app-libaio-qd32-hdd-bfq-seq", "ptr-buf-fsync1-ext4")
NUMBERS = {name: number for number, name in enumerate(KINDS[:14])}
RECORD = struct.Struct("<6Q4IIiiIHBbi16s")  # struct block_event of tracepoints/block_event.h
NO_QUEUE = 0xFFFF << 32  # where `parent` of other events is: of a request that no queue is known of
LOST, MARK = 254, 255  # tracepoints/live_provider.h


def record(kind: int, ktime: int, **fields: Any) -> bytes:
    """As struct block_event has it, of requests without their hardware queue."""
    comm = str(fields.pop("comm", "")).encode()
    names = ("rq", "bio", "parent", "sector", "other", "nr_sector", "bytes", "dev", "old_dev", "rwbs", "error", "tid")
    of_request = kind < len(KINDS) and KINDS[kind].startswith("block_rq_")
    values = [int(fields.get(name, NO_QUEUE if name == "parent" and of_request else 0)) for name in names]
    return RECORD.pack(
        ktime, *values, 0, int(fields.get("cpu", 0)), kind, -1 if of_request else 0, int(fields.get("pid", 0)), comm
    )


def sign(kind: int, ktime: int, number: int = 0) -> bytes:
    return record(kind, ktime, rq=number)


def records_of(trace: Path) -> list[bytes]:
    """All block events of a trace, in order, each as a record."""
    found = []
    for message in bt2.TraceCollectionMessageIterator(str(trace)):
        if not isinstance(message, bt2._EventMessageConst):
            continue
        event = message.event
        name = event.name.removeprefix("block:")
        if name not in NUMBERS:
            continue
        fields = {
            key: str(v) if isinstance(v, bt2._StringFieldConst) else int(v) for key, v in event.payload_field.items()
        }
        fields["other"] = fields.pop("old_sector", fields.pop("new_sector", 0))
        fields["cpu"] = int(event.packet.context_field["cpu_id"])
        found.append(record(NUMBERS[name], message.default_clock_snapshot.value, **fields))
    return found


@pytest.fixture(scope="module", params=TRACES)
def both(request: pytest.FixtureRequest, run_of: RunOf, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes]:
    """A run, and what the ring would have had."""
    run = run_of(request.param)
    with open_run(run.path) as opened:
        first, last = opened.core("first_ns"), opened.core("last_ns")
    records = records_of(unpack(request.param, tmp_path_factory.mktemp("trace")))
    return run.path, sign(MARK, first) + b"".join(records) + sign(MARK, last)


def parsed(view: str, *words: str) -> Any:
    return parser_for(Chosen(view)).parse_intermixed_args(list(words))


def live(data: bytes, view: str, *words: str, piece: int = 1_500_001) -> str:
    """What the view says of these records."""
    module, name = VIEWS[view]
    kind = getattr(importlib.import_module(f"opline_analyses.live.{module}"), name)
    args = parsed(view, *words)
    out: list[bytes] = []
    stream = RingStream(lambda *now: kind(args, *now), out.append, dict)
    for at in range(0, len(data), piece):
        whole = at + piece - (at + piece) % RECORD.size
        for begin, end in ((at, whole), (whole, at + piece)):
            stream.feed(data[begin:end])
            if end == whole and (known := data[:whole]):  # the bridge says so after each round
                stream.feed(sign(MARK, RECORD.unpack_from(known, len(known) - RECORD.size)[0]))
                stream.look()
    stream.end()
    assert stream.view is not None
    assert stream.view.late == 0
    return b"".join(out).decode()


def recorded(capfd: pytest.CaptureFixture[str], *words: str | Path) -> str:
    capfd.readouterr()
    assert main([str(w) for w in words]) == 0
    return capfd.readouterr().out


def intervals(text: str) -> list[Any]:
    return [i for line in text.splitlines() for i in json.loads(line)["intervals"]]


@pytest.mark.parametrize(
    "words",
    [
        ("--per", "device", "-i", "writes", "--size", "4k"),
        ("--per", "io", "-Q", "--to", "issue"),
    ],
    ids=" ".join,
)
def test_histograms_are_those_of_the_recording(
    both: tuple[Path, bytes], words: tuple[str, ...], capfd: pytest.CaptureFixture[str]
) -> None:
    path, data = both
    theirs = json.loads(recorded(capfd, "hist", path, "0.1", "--json", *words))["intervals"]
    assert intervals(live(data, "hist", "0.1", "--json", *words)) == theirs


def test_iostat_rows_are_those_of_the_recording(both: tuple[Path, bytes], capfd: pytest.CaptureFixture[str]) -> None:
    """Queue and utilisation too: what is under way at a tick is in both."""
    path, data = both
    styles = (("0.1", "--style", "dtrace"), ("0.1",), ("0.25", "--style", "solaris"), ("0.1", "-x"))
    for words in ((*style, "--json") for style in styles):
        theirs = [row for row in json.loads(recorded(capfd, "iostat", path, *words))["rows"] if some(row)]
        ours = [row for row in map(json.loads, live(data, "iostat", *words).splitlines()) if some(row)]
        assert ours == theirs, words


def some(row: dict[str, Any]) -> bool:
    """A row of nothing: a recording knows from the first interval on which devices there will be."""
    return any(row[key] for key in row if key.endswith(("_count", "_area_ns", "busy_ns")))


def test_logs_sizes_and_maps_are_those_of_the_recording(
    both: tuple[Path, bytes], capfd: pytest.CaptureFixture[str]
) -> None:
    path, data = both

    def rows(text: str) -> list[Any]:
        return sorted((json.loads(line) | {"id": 0, "op_id": None} for line in text.splitlines()), key=json.dumps)

    assert rows(live(data, "log", "--json")) == rows(recorded(capfd, "log", path, "--json"))
    assert live(data, "bitesize", "--json") == recorded(capfd, "bitesize", path, "--json")
    ours, theirs = json.loads(live(data, "heatmap", "--json")), json.loads(recorded(capfd, "heatmap", path, "--json"))
    for key in ("count", "sum"):
        assert sum(c[key] for c in ours["cells"]) == sum(c[key] for c in theirs["cells"])
    table = [line.split(",") for line in live(data, "heatmap", "--csv").splitlines()]
    assert sum(int(row[table[0].index("count")]) for row in table[1:]) == sum(c["count"] for c in ours["cells"])
    said = [json.loads(line) for line in live(data, "outliers", "0.5", "500", "--json", "--limit", "9999").splitlines()]
    document = json.loads(
        recorded(capfd, "outliers", path, "0.5", "500", "--json", "--limit", "9999", "--sort", "time")
    )
    assert [s["latency_ns"] for s in said if "latency_ns" in s] == [o["latency_ns"] for o in document["outliers"]]
    assert [s["devices"] for s in said if "devices" in s] == [i["devices"] for i in document["intervals"]]


def test_a_recording_a_trace_and_a_live_view_have_the_same_numbers(
    both: tuple[Path, bytes],
    request: pytest.FixtureRequest,
    trace: Callable[[str], Path],
    capfd: pytest.CaptureFixture[str],
) -> None:
    """The three ways: a run's Parquet, a trace that is being read, and what happens now; and no I/O too many or few."""
    path, data = both
    read = trace(request.node.callspec.params["both"])
    for words in (("hist", "0.1", "--json"), ("hist", "0.1", "--buckets", "fine", "--json"), ("bitesize", "--json")):
        parquet = recorded(capfd, words[0], path, *words[1:])
        assert recorded(capfd, words[0], read, *words[1:]) == parquet, "without a model"
        assert recorded(capfd, words[0], read, *words[1:], "--reader", "bt2") == parquet
        now = live(data, words[0], *words[1:])
        if words[0] == "bitesize":
            assert now == parquet
            continue
        assert intervals(now) == json.loads(parquet)["intervals"]
        counted = sum(group["count"] for i in intervals(now) for group in i["groups"])
        with open_run(path) as run:
            each = "SELECT count(*) FROM requests WHERE complete_ns >= issue_ns AND flushed_by IS NULL"
            assert counted == run.row(each)[0]
    rows = [json.loads(recorded(capfd, "iostat", what, "0.1", "-x", "--json"))["rows"] for what in (path, read)]
    assert rows[0] == rows[1]


def test_what_is_shown_does_not_depend_on_when_one_looks(both: tuple[Path, bytes]) -> None:
    _, data = both
    whole = live(data, "hist", "0.2", "--json", piece=len(data))
    assert live(data, "hist", "0.2", "--json", piece=333_333) == whole


def test_a_map_has_room_for_everything(both: tuple[Path, bytes]) -> None:
    """Columns that do not fit become half as many; the sums stay."""
    _, data = both
    fine = json.loads(live(data, "heatmap", "--json", "--stepsec", "1ms"))
    coarse = json.loads(live(data, "heatmap", "--json"))
    assert coarse["columns"] <= 66 < fine["columns"]
    assert sum(c["sum"] for c in coarse["cells"]) == sum(c["sum"] for c in fine["cells"])


def io_records(at_ns: int, latency_ns: int, sector: int, tid: int = 7) -> list[bytes]:
    about = {"dev": 8 << 20, "sector": sector, "nr_sector": 8, "tid": tid, "pid": 70, "comm": "fio", "rwbs": 1 << 6}
    begin = [record(NUMBERS[f"block_{n}"], at_ns, **about, bytes=4096) for n in ("bio_queue", "getrq", "rq_issue")]
    return [*begin, record(NUMBERS["block_rq_complete"], at_ns + latency_ns, **about)]


def test_c4_10_an_io_across_a_tick_is_counted_once_and_idle_intervals_are_rows() -> None:
    data = sign(MARK, 0) + b"".join(io_records(900_000_000, 200_000_000, 8)) + sign(MARK, 3_500_000_000)
    found = intervals(live(data, "hist", "1", "--json", piece=RECORD.size))
    assert [sum(g["count"] for g in i["groups"]) for i in found] == [0, 1, 0, 0]
    assert found[1]["groups"][0]["sum_ns"] == 200_000_000


@pytest.mark.parametrize(("count", "until"), [((), " Ctrl-C to end."), (("2",), "")], ids=["", "count"])
def test_c4_1_iolatency_begins_and_ends_as_iolatency_does(
    count: tuple[str, ...], until: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Ctrl-C in the first interval, too, after the summary; `opline hist` reads what the live view prints."""
    data = sign(MARK, 0) + b"".join(io_records(900_000_000, 200_000, 8)) + sign(MARK, 1_000_000_000)
    text = live(data, "hist", "5", *count, "--style", "iolatency")
    first, *blocks, last = text.removesuffix("\n").split("\n")
    assert (first, last) == (f"Tracing block I/O. Output every 5 seconds.{until}", "Ending tracing...")
    assert sum(">=(ms)" in line for line in blocks) == 1 and any("0 -> 1       : 1 " in line for line in blocks)
    (tmp_path / "mail.txt").write_text(text)
    found = json.loads(recorded(capfd, "hist", tmp_path / "mail.txt", "--json"))
    assert [(one["end_ns"], one["count"]) for one in found["intervals"]] == [(5_000_000_000, 1)]
    assert "Tracing" not in live(data, "hist", "5", "--style", "iolatency", "--csv")
    assert "Tracing" not in live(data, "hist", "5")


def test_losses_are_counted_and_filters_by_process_work() -> None:
    data = sign(MARK, 0) + b"".join(io_records(1000, 50_000, 8)) + sign(LOST, 70_000, 5)
    data += b"".join(io_records(100_000, 50_000, 16, tid=8)) + sign(MARK, 1_000_000)
    args = parsed("log", "-p", "70", "--tid", "8", "--json")
    out: list[bytes] = []
    from opline_analyses.live.listed import Log

    stream = RingStream(lambda *now: Log(args, *now), out.append)
    stream.feed(data)
    stream.look()
    stream.end()
    assert [json.loads(line)["tid"] for line in b"".join(out).splitlines()] == [8]
    assert (stream.ring.lost, stream.ring.events) == (5, 8)


def test_what_is_missing_is_what_a_recording_calls_lost(capfd: pytest.CaptureFixture[str]) -> None:
    """One completion did not come, while 3000 others did; five events found no room."""
    data = sign(MARK, 0) + b"".join(io_records(1000, 50_000, 8)[:3])
    data += b"".join(b"".join(io_records(100_000 * n, 50_000, 8 + 8 * n)) for n in range(1, 3001))
    args = parsed("hist", "1000")
    from opline_analyses.live.hist import Hist

    for more, lost in ((b"", 1), (sign(LOST, 400_000_000, 5), 6)):
        stream = RingStream(lambda *now: Hist(args, *now), lambda _: None)
        stream.feed(data + more + sign(MARK, 1_000_000_000))
        stream.look()
        stream.end()
        capfd.readouterr()
        assert _tell(stream) == lost
        err = capfd.readouterr().err
        assert f"3000 I/Os in 1.000 s, 12003 events, {'1 event' if lost == 1 else '6 events'} lost." in err
        assert (
            "data loss: events_missing 1 (recording): events are missing: later events prove that they happened" in err
        )
        assert ("data loss: discarded_events 5 (recording)" in err) == (lost == 6)
        assert "1 of 3001 I/Os is not counted: 1 without a completion." in err


def test_threads_that_are_remembered_do_not_grow_without_end() -> None:
    ring = Feed().ring
    for at in range(0, 200_000, 20_000):
        ring.feed(
            b"".join(
                record(0, n, sector=8 * n, nr_sector=8, tid=n, pid=n, comm=f"t{n}") for n in range(at, at + 20_000)
            )
        )
    assert len(ring.processes) < 150_000
    assert ring.processes[199_999] == 199_999


def test_records_may_come_byte_by_byte() -> None:
    data = sign(MARK, 0) + b"".join(io_records(1000, 50_000, 8)) + sign(LOST, 70_000, 5) + record(200, 80_000)
    whole, pieces = Feed(), Feed()
    whole.ring.feed(data)
    for at in range(len(data)):
        pieces.ring.feed(data[at : at + 1])
    assert whole.settled()["requests"].pieces == pieces.settled()["requests"].pieces
    assert (pieces.ring.events, pieces.ring.lost, pieces.ring.first_ns) == (4, 5, 0)


def test_the_first_word_is_a_view_and_what_follows_the_dashes_a_command() -> None:
    found, own = chosen(["iostat", "0.1", "-x", "--", "fio", "--name", "x"])
    assert (found.NAME, own, found._command) == ("live iostat", ["0.1", "-x"], ["fio", "--name", "x"])
    assert chosen(["5", "3"])[0].NAME == "live hist"
    with pytest.raises(UsageError, match="no COMMAND after --"):
        chosen(["hist", "--"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--of", "ops"], "with --model also ops"),
        (["--of", "bios", "--model", "demo"], "record` first"),
        (["--class", "read"], "with --model only"),
        (["--window", "1:2"], "has been recorded"),
        (["--duration", "0"], "more than 0"),
        (["-p", "4194305"], "no such process"),
    ],
)
def test_what_live_cannot_do_is_one_line(words: list[str], said: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["live", "hist", *words]) == 2
    assert said in capfd.readouterr().err
