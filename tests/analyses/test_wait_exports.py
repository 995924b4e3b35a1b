# SPDX-License-Identifier: MIT
"""Waits as pprof's profile and as folded stacks, of all ops and of slow ones against typical ones.

The profile is read with the classes of google.protobuf, which are made here of the fields that profile.proto of
https://github.com/google/pprof has, and with `go tool pprof` if there is a Go.
"""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from tests.analyses.test_why_waits import JOURNAL, waiting

from opline.readers.stacks import Stack, Stacks
from opline_analyses.cli import main
from opline_analyses.export import wait_stacks
from opline_analyses.ops.user_places import place_of
from opline_analyses.why import waits

# As profile.proto has them: name, number, type (a message's name, or one of a number, or repeated).
MESSAGES: dict[str, tuple[tuple[str, int, str], ...]] = {
    "Profile": (
        ("sample_type", 1, "*ValueType"), ("sample", 2, "*Sample"), ("mapping", 3, "*Mapping"),
        ("location", 4, "*Location"), ("function", 5, "*Function"), ("string_table", 6, "*string"),
        ("default_sample_type", 14, "int64"),
    ),
    "ValueType": (("type", 1, "int64"), ("unit", 2, "int64")),
    "Sample": (("location_id", 1, "*uint64"), ("value", 2, "*int64")),
    "Mapping": (("id", 1, "uint64"),),
    "Location": (("id", 1, "uint64"), ("mapping_id", 2, "uint64"), ("address", 3, "uint64"), ("line", 4, "*Line")),
    "Line": (("function_id", 1, "uint64"), ("line", 2, "int64")),
    "Function": (("id", 1, "uint64"), ("name", 2, "int64"), ("system_name", 3, "int64"), ("filename", 4, "int64")),
}  # fmt: skip
STACK = Stack(None, None, False, ("io_schedule+0x1f", "jbd2_log_wait_commit+0xee [jbd2]"))
CPU = {c: f"{c};two;[waits for a CPU]" for c in ("read", "write")}
USER = ("fsync+0x9 [libc.so.6]", "store::Log::append(char const*)+0x5e [store]", "[store+0x12f0]", "main+0x7 [store]")
SLOW = "read;two;jbd2_log_wait_commit [jbd2];io_schedule"


def profile_class() -> Any:
    kinds = descriptor_pb2.FieldDescriptorProto
    scalars = {"int64": kinds.TYPE_INT64, "uint64": kinds.TYPE_UINT64, "string": kinds.TYPE_STRING}
    file = descriptor_pb2.FileDescriptorProto(name="profile.proto", package="p", syntax="proto3")
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, number, kind in fields:
            label = kinds.LABEL_REPEATED if kind.startswith("*") else kinds.LABEL_OPTIONAL
            of = scalars.get(kind.lstrip("*"))
            one = message.field.add(name=field, number=number, label=label, type=of or kinds.TYPE_MESSAGE)
            if of is None:
                one.type_name = f".p.{kind.lstrip('*')}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("p.Profile"))


def samples_of(file: Path) -> tuple[list[str], str, dict[str, tuple[int, ...]]]:
    """Names of the values, the default one, and values by stack, which must be unique; units are nanoseconds."""
    found = profile_class().FromString(gzip.decompress(file.read_bytes()))
    texts = list(found.string_table)
    assert texts[0] == "" and len(texts) == len(set(texts))
    assert {texts[kind.unit] for kind in found.sample_type} == {"nanoseconds"}
    names = {one.id: texts[one.name] for one in found.function}
    places = {one.id: names[line.function_id] for one in found.location for line in one.line}
    assert 0 not in names and len(names) == len(found.function) and len(places) == len(found.location)
    samples = {";".join(places[i] for i in reversed(s.location_id)): tuple(s.value) for s in found.sample}
    assert len(samples) == len(found.sample)
    return [texts[kind.type] for kind in found.sample_type], texts[found.default_sample_type], samples


def folded(file: Path, numbers: int) -> dict[str, tuple[int, ...]]:
    lines = [line.rsplit(" ", numbers) for line in file.read_text().splitlines()]
    return {stack: tuple(map(int, values)) for stack, *values in lines}


def profiles_of(file: Path) -> dict[tuple[str, str], int]:
    """Weights by the profile's name and the folded stack."""
    whole = json.loads(file.read_text())
    names = [frame["name"] for frame in whole["shared"]["frames"]]
    found = {}
    for profile in whole["profiles"]:
        assert profile["endValue"] == sum(profile["weights"])
        for stack, ns in zip(profile["samples"], profile["weights"], strict=True):
            op_class = profile["name"].partition(",")[0]
            found[profile["name"], ";".join((op_class, *(names[i] for i in stack)))] = ns
    return found


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The slow ops wait 900 us each for the journal, all of them 10 us for a CPU."""
    monkeypatch.setattr(wait_stacks, "stacks_of", lambda run: Stacks(True, 200_000, 0, 0, (), (), {7: STACK}))
    built = waiting(JOURNAL)
    for row in built.rows["waits"]:
        if row["kind"] == "device":
            row["stack_id"] = 7
    path: Path = built.write(tmp_path / "run")
    return path


def exported(run: Path, form: str, *options: str) -> Path:
    out = run.parent / form
    out.unlink(missing_ok=True)
    assert main(["export", str(run), "--to", form, "-o", str(out), *options]) == 0
    return out


def test_pprof_has_the_sums_of_the_folded_stacks(run: Path) -> None:
    sums = folded(exported(run, "waits-folded"), 1)
    assert sums[SLOW] == (2 * 900_000,)
    assert sum(sums.pop(cpu)[0] for cpu in CPU.values()) == 200 * 10_000 and list(sums) == [SLOW]
    both = folded(exported(run, "waits-folded"), 1)
    assert samples_of(exported(run, "pprof")) == (["off-cpu"], "off-cpu", both)


@pytest.mark.parametrize("which", [(), ("--slowest", "2"), ("--latency", ">500us")], ids=" ".join)
def test_slow_ops_stand_beside_typical_ones(
    run: Path, which: tuple[str, ...], capfd: pytest.CaptureFixture[str]
) -> None:
    """Both slow ops are reads; of the 100 typical ones 51 are writes, whose waits are a negative difference."""
    both = folded(exported(run, "waits-folded", "--against", "typical", *which), 2)
    assert both == {CPU["read"]: (4_900, 10_000), CPU["write"]: (5_100, 0), SLOW: (0, 900_000)}
    assert "2 slow ops" in capfd.readouterr().err
    shown = profiles_of(exported(run, "waits-speedscope", "--against", "typical", *which))
    for side, number in (("typical", 0), ("slow", 1)):
        of_side = {stack: values[number] for stack, values in both.items() if values[number]}
        assert {k: v for (profile, k), v in shown.items() if profile.endswith(f", {side}")} == of_side
    types, default, samples = samples_of(exported(run, "pprof", "--against", "typical", *which))
    assert (types, default) == (["typical", "slow", "difference"], "difference")
    assert samples == {stack: (typical, slow, slow - typical) for stack, (typical, slow) in both.items()}


def test_means_are_rounded(run: Path) -> None:
    options = ("--against", "typical", "--slowest", "1", "--op", "0", "--op", "1", "--op", "2", "--op", "3")
    samples = samples_of(exported(run, "pprof", *options))[2]
    assert samples == {CPU["read"]: (3_333, 10_000, 6_667), CPU["write"]: (6_667, 0, -6_667)}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--to", "folded", "--against", "typical"), "--to waits-folded, waits-speedscope, pprof."),
        (("--to", "pprof", "--against", "typical", "--slowest", "2", "--latency", ">1us"), "one of --slowest"),
        (("--to", "pprof", "--against", "typical", "--latency", ">9s"), "No ops of more than 9 s"),
    ],
)
def test_what_cannot_be_is_refused(
    run: Path, options: tuple[str, ...], said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    out = run.parent / "out"
    assert main(["export", str(run), "-o", str(out), *options]) in (1, 2)
    assert said in capfd.readouterr().err and not out.exists()


@pytest.mark.skipif(shutil.which("go") is None, reason="no Go here")
def test_go_reads_the_profile(run: Path) -> None:
    file = exported(run, "pprof", "--against", "typical")
    argv = ["go", "tool", "pprof", "-top", "-unit=us", str(file)]
    told = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=300).stdout
    assert "Type: difference" in told
    (line,) = (line.split() for line in told.splitlines() if line.endswith("io_schedule"))
    assert line[0] == "900us"


def test_functions_of_the_program_come_before_those_of_the_kernel(
    run: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    stacks = Stacks(True, 200_000, 0, 0, (), (), {7: Stack(None, None, False, STACK.frames, USER)})
    for module in (wait_stacks, waits):
        monkeypatch.setattr(module, "stacks_of", lambda run: stacks)
    program = "main [store];[store+0x12f0];store::Log::append(char const*) [store];fsync [libc.so.6]"
    whole = SLOW.replace("two;", f"two;{program};")
    sums = folded(exported(run, "waits-folded"), 1)
    assert sums[whole] == (2 * 900_000,) and SLOW not in sums
    assert samples_of(exported(run, "pprof"))[2][whole] == (2 * 900_000,)
    capfd.readouterr()
    assert main(["why", str(run)]) == 0
    told = " ".join(capfd.readouterr().out.split())
    assert told.startswith("The slowest 1 % wait 900 us of 1 ms in store::Log::append (store) for jbd2/sda-8, whose")
    assert main(["why", "--json", str(run)]) == 0
    device, cpu = json.loads(capfd.readouterr().out)["waits"]
    assert (device["function"], cpu["function"]) == ("store::Log::append (store)", None)


@pytest.mark.parametrize(
    ("frames", "place"),
    [
        (("pwrite64+0x17 [libc.so.6]", "append+0x5e [store]"), "append (store)"),
        (("__futex+0x1 [libpthread-2.31.so]", "[store+0x12]", "main+0x1 [store]"), "store+0x12"),
        (("[vdso+0x5a0]", "a::b<c(int)>::d(e (*)(f)) const+0x1 [libx.so]"), "a::b<c(int)>::d (libx.so)"),
        (("(anonymous namespace)::f()+0x1 [x]",), "(anonymous namespace)::f (x)"),
        (("[anonymous]", "main+0x7 [store]"), "main (store)"),
        (("fdatasync+0x10 [libc.so.6]", "[uprobes+0x0]"), None),
        (("clock_nanosleep+0x23 [libc.so.6]",), None),
        (("0x7f0012345678",), None),
    ],
)
def test_the_place_of_a_wait_is_the_programs(frames: tuple[str, ...], place: str | None) -> None:
    assert place_of(Stack(None, None, False, STACK.frames, frames)) == place
