# SPDX-License-Identifier: MIT
"""What babeltrace prints of a trace is a trace: the same ops, to the byte, and the same block requests."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.model.test_model_core import MAIL, MAIL_OP

from opline.readers.formats.babeltrace_text import events_of
from opline.readers.trace import find_traces
from opline_analyses.cli import main

Printed = Callable[..., str]
LINE = (
    "[09:34:23.{ns:09}] (+0.000003133) node1 {name}: {{ cpu_id = {cpu} }}, {{ pthread_id = {thread} }}, {{ {fields} }}"
)


@pytest.fixture
def printed(capfd: pytest.CaptureFixture[str]) -> Printed:
    def run(*words: str | Path) -> str:
        assert main([str(word) for word in words]) == 0
        return capfd.readouterr().out

    return run


def text_of_the_op(oid: str = "benchmark_object53", start_ns: int = 661_871_204) -> str:
    """The op of the mail "performance latency analysis with LTTng" in its own form, two events on each line."""
    found, ns = [], start_ns
    for n, (delta_us, thread, name, fields) in enumerate(MAIL_OP):
        ns += delta_us * 1000 + (17 * n) % 23
        pairs = fields.format(oid=f'"{oid}"', req="type=8 num=4107 tid=17 inc=0").split()
        shown = [re.sub(r"=([a-z]\w*)$", r'="\1"', pair).replace("=", " = ") for pair in pairs]
        found.append(LINE.format(ns=ns, name=name, cpu=12, thread=140262776600000 + thread, fields=", ".join(shown)))
    return "\n".join(" ".join(found[n : n + 2]) + (" ....." if n % 4 else "") for n in range(0, len(found), 2)) + "\n"


# As they stand in the mail: five events on two lines, the second of which begins with a space.
MAILS_LINES = """\
[09:34:23.661871204] (+0.000003133) cephtestnode1 ioctximpl:aio_write: { cpu_id = 12 }, { pthread_id = 140262776686656 \
}, { oid = "benchmark_data_cephtestnode1_37038_object16" } [09:34:23.661873274] (+0.000002070) cephtestnode1 \
ioctximpl:queue_aio_write: { cpu_id = 12 }, { pthread_id = 140262776686656 }, { num = 0 } .....
 [09:34:23.662166430] (+0.000206888) cephtestnode1 osd:ms_fast_dispatch: { cpu_id = 19 }, { pthread_id = \
139986434324224 }, { oid = "benchmark_data_cephtestnode1_37038_object16", type = 8, num = 4107, tid = 17, inc = 0 } \
[09:34:23.662176713] (+0.000010283) cephtestnode1 oprequest:set_rmw_flags: { cpu_id = 19 }, { pthread_id = \
139986434324224 }, { type = 8, num = 4107, tid = 17, inc = 0, flag = 0x4, old_rmw_flags = 0x0, new_rmw_flags = 0x4 } \
[09:34:23.662193699] (+0.000016986) cephtestnode1 osd:enqueue_op: { cpu_id = 19 }, { pthread_id = 139986434324224 }, { \
oid = "benchmark_data_cephtestnode1_37038_object16" } ......
"""


def test_c1_2_the_mails_own_lines() -> None:
    oid, node = {"oid": "benchmark_data_cephtestnode1_37038_object16"}, "cephtestnode1"
    request = {"type": 8, "num": 4107, "tid": 17, "inc": 0}
    client, server = ([{"cpu_id": c}, {"pthread_id": t}] for c, t in ((12, 140262776686656), (19, 139986434324224)))
    flags = {"flag": 4, "old_rmw_flags": 0, "new_rmw_flags": 4}
    second = (9 * 3600 + 34 * 60 + 23) * 10**9
    assert [event for line in MAILS_LINES.splitlines() for event in events_of(line)] == [
        ((second + 661_871_204, True), node, "ioctximpl:aio_write", [*client, oid]),
        ((second + 661_873_274, True), node, "ioctximpl:queue_aio_write", [*client, {"num": 0}]),
        ((second + 662_166_430, True), node, "osd:ms_fast_dispatch", [*server, oid | request]),
        ((second + 662_176_713, True), node, "oprequest:set_rmw_flags", [*server, request | flags]),
        ((second + 662_193_699, True), node, "osd:enqueue_op", [*server, oid]),
    ]


def test_c1_2_fields_of_the_mails_lines() -> None:
    """Two events on one line are two; `(+?.?????????)`, hexadecimal numbers, texts with spaces, dots at the end."""
    line = (
        "[09:34:23.662166430] (+?.?????????) node1 osd:ms_fast_dispatch: { cpu_id = 19 }, { pthread_id = 13998643432422"
        ' }, { oid = "an object, {16}", type = 8, num = 4107 } [09:34:23.662176713] (+0.000010283) node1 '
        "oprequest:set_rmw_flags: { cpu_id = 19 }, { pthread_id = 13998643432422 }, { flag = 0x4, old_rmw_flags = 0x0 "
        "} ......"
    )
    thread = {"pthread_id": 13998643432422}
    assert list(events_of(line)) == [
        (
            (34_463_662_166_430, True), "node1", "osd:ms_fast_dispatch",
            [{"cpu_id": 19}, thread, {"oid": "an object, {16}", "type": 8, "num": 4107}],
        ),
        (
            (34_463_662_176_713, True), "node1", "oprequest:set_rmw_flags",
            [{"cpu_id": 19}, thread, {"flag": 4, "old_rmw_flags": 0}],
        ),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("-7", -7), ("0xFFFFFFFFFFFFFFFF", 2**64 - 1), ("1.5", 1.5), ("-1e-07", -1e-07), ("inf", float("inf")),
        (r'"a \"b\" \\ \n"', 'a "b" \\ \n'), ('( "NAME" : container = 3 )', 3), ("[ [0] = 1, [1] = { x = 2 } ]", None),
        ("{ }", None), ('""', ""),
    ],
)  # fmt: skip
def test_values(text: str, value: object) -> None:
    line = f"[00:00:00.000000001] (+0.000000001) p:e: {{ cpu_id = 0 }}, {{ before = 1, v = {text}, after = 2 }}"
    ((_, host, _, groups),) = (event for event in events_of(line) if not isinstance(event, str))
    assert (host, groups[-1]) == ("", {"before": 1, "v": value, "after": 2})


def test_c1_6_the_mails_op_from_its_text(tmp_path: Path, printed: Printed) -> None:
    """18 states, the deltas of the mail, 726 us."""
    file = tmp_path / "trace.txt"
    file.write_text(text_of_the_op())
    text = printed("ops", file, "--model", MAIL, "--style", "ceph-devel")
    assert "Op Transition list for benchmark_object53, 18 states" in text
    assert [int(d) for d in re.findall(r"\+(\d{4})\]", text)] == [delta for delta, *_ in MAIL_OP]
    assert list(re.findall(r"\[ *(\d{5}) \+", text)) == [f"{thread}" for _, thread, *_ in MAIL_OP]
    assert "=== > Total: 726 us" in text


def test_c1_2_a_pipe_will_do() -> None:
    argv = [sys.executable, "-m", "opline_analyses", "ops", "-", "--model", str(MAIL), "--style", "ceph-devel"]
    done = subprocess.run(argv, input=text_of_the_op(), text=True, capture_output=True, check=True)
    assert "Total: 726 us" in done.stdout


@pytest.mark.parametrize(("name", "model"), [("demo-kernel", "demo")])
def test_c1_3_the_text_gives_the_ops_of_the_trace(
    trace: Callable[[str], Path], tmp_path: Path, printed: Printed, name: str, model: str
) -> None:
    """By our reader, by babeltrace2's, and from what babeltrace2 prints: byte for byte the same ops and requests. Not
    the same are nanoseconds between the application's and the kernel's events: babeltrace prints the times of both
    clocks with their own offsets, which differ by 2 us here.
    """
    file = tmp_path / "trace.txt"
    with file.open("wb") as out:
        subprocess.run(["babeltrace2", str(trace(name))], stdout=out, stderr=subprocess.DEVNULL, check=True)
    ways = {"native": (trace(name), "--reader", "native"), "bt2": (trace(name), "--reader", "bt2"), "text": (file,)}
    for words in (("ops", "--style", "ceph-devel"), ("hist",), ("btt",)):
        said = {way: printed(words[0], *what, "--model", model, *words[1:]) for way, what in ways.items()}
        assert len(said["native"]) > 200 and said["native"] == said["bt2"] == said["text"], words


def test_c1_3_of_one_clock_to_the_nanosecond(trace: Callable[[str], Path], tmp_path: Path, printed: Printed) -> None:
    """The application's events alone: each op's list, with stages, threads and CPUs, is the same to the byte."""
    (folder,) = (Path(found) for found in find_traces(trace("demo-kernel")) if "/ust/" in f"{found}/")
    file = tmp_path / "trace.txt"
    with file.open("wb") as out:
        subprocess.run(["babeltrace2", str(folder)], stdout=out, stderr=subprocess.DEVNULL, check=True)
    ways = ((folder, "--reader", "native"), (folder, "--reader", "bt2"), (file,))
    for words in (("ops", "--limit", "1000"), ("stages", "--csv")):
        native, bt2, text = (printed(words[0], *what, "--model", "demo", *words[1:]) for what in ways)
        assert native == bt2 == text and len(native) > 500, words
        assert words[0] != "ops" or native.count("\nop ") == 210


def test_after_midnight_it_goes_on(tmp_path: Path, printed: Printed) -> None:
    file = tmp_path / "night.txt"
    text = text_of_the_op().replace("09:34:23.661", "23:59:59.661")
    file.write_text(text.replace("09:34:23", "00:00:00"))
    assert "18 states" in printed("ops", file, "--model", MAIL, "--style", "ceph-devel")


def test_what_is_lost_or_cannot_be_read_is_told(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "cut.txt"
    whole = text_of_the_op()
    lost = 'WARNING: Tracer discarded 7 events between [09:34:23.661871210] and [09:34:23.661871220] in trace "x"\n'
    file.write_text(whole[: whole.index("\n") + 1] + lost + whole[whole.index("\n") + 1 : -40])
    assert main(["ops", str(file), "--model", str(MAIL)]) == 0
    err = capfd.readouterr().err
    assert "discarded_events 7" in err and "unreadable_lines 1" in err and "not understood: [09:34:23." in err
    bpf = "[09:34:23.1] (+0.1) n block:block_rq_issue: { cpu_id = 0 }, { ktime = 5, dev = 1 }\n"
    file.write_text(whole + bpf.replace("23.1]", "23.900000000]").replace("(+0.1)", "(+0.100000000)"))
    assert main(["ops", str(file), "--model", str(MAIL)]) == 0
    assert "its own time is of another clock" in capfd.readouterr().err


@pytest.mark.parametrize("name", ["demo-kernel", "fdatasync-2-queues"])
def test_its_events_are_those_of_the_trace(
    trace: Callable[[str], Path], tmp_path: Path, printed: Printed, name: str
) -> None:
    """Each with its contexts and fields, from a file and from a pipe; times are of the day. What has parts is null."""
    text = subprocess.run(["babeltrace2", str(trace(name))], capture_output=True, text=True, check=True).stdout
    (tmp_path / "trace.txt").write_text(text)

    def shown(data: str) -> Counter[str]:
        events = [json.loads(line) for line in data.splitlines()]
        return Counter(json.dumps(e | {"ts_ns": 0, "channel": "", "host": ""}) for e in events if e["lost"] is None)

    ours = shown(printed("events", tmp_path / "trace.txt", "--json"))
    assert ours == shown(printed("events", trace(name), "--json")) and ours.total() > 1000
    piped = [sys.executable, "-m", "opline_analyses", "events", "-", "--json", "--limit", "20"]
    head = subprocess.run(piped, input=text, text=True, capture_output=True, check=True).stdout
    assert head.splitlines() == printed("events", tmp_path / "trace.txt", "--json", "--limit", "20").splitlines()


def test_of_an_input_without_events_it_says_so(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "two.txt").write_text("1.0 30\n1.1 45\n")
    assert main(["events", str(tmp_path / "two.txt")]) == 2
    assert "times and latencies, and no I/O" in capfd.readouterr().err


@pytest.mark.parametrize(("text", "value"), [("0x1f", 31), ("01181", 1181), ("-7", -7), ("-0", 0)])
def test_a_number_is_decimal_or_hexadecimal(text: str, value: int) -> None:
    line = f"[1.000000001] (+0.000000001) node1 app:event: {{ cpu_id = 0 }}, {{ n = {text} }}"
    ((_, _, _, (_, payload)),) = (event for event in events_of(line) if not isinstance(event, str))
    assert payload == {"n": value}


@pytest.mark.parametrize("place", ["node1", "block_rq_issue", "sector"])
def test_a_nul_in_a_name_is_a_line_that_is_not_understood(
    place: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    line = "[1.00000000{}] (+0.000000001) node1 block_rq_issue: {{ cpu_id = 0 }}, {{ dev = 8, sector = 8 }}\n"
    path = tmp_path / "nul.txt"
    path.write_text(line.format(1) + line.format(2).replace(place, place[:2] + "\0" + place[2:]))
    assert main(["losses", str(path)]) == 0
    said = capfd.readouterr()
    assert "internal error" not in said.err
    assert "unreadable_lines 1" in " ".join((said.out + said.err).split())


@pytest.mark.parametrize("who", ["fio", "my prog", "kworker/0:1H"])
@pytest.mark.parametrize(
    "groups", ["{ cpu_id = 0 }, { n = 1 }", "{ cpu_id = 0 }, { vtid = 7 }, { n = 1 }", "{ n = 1 }"]
)
def test_the_process_beside_the_host(who: str, groups: str, tmp_path: Path, printed: Printed) -> None:
    """A trace of one process names it there; the event has it as its contexts."""
    path = tmp_path / "a.txt"
    path.write_text(f"[14:02:01.100000000] (+?.?????????) node1:{who}:2664 app:begin: {groups}\n")
    (event,) = [json.loads(line) for line in printed("events", path, "--json").splitlines()]
    assert (event["host"], event["event"]) == ("node1", "app:begin")
    assert event["context"].items() >= {"procname": who, "vpid": 2664}.items()
    assert event["fields"] == {"n": 1}
