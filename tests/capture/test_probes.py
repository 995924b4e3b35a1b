# SPDX-License-Identifier: MIT
"""The table [probes] of a model, what becomes of it, and what is told of a program that offers probes."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from opline.capture.bpf.btf import Btf
from opline.capture.machine.elf import Elf, Place
from opline.capture.machine.signals import Signals
from opline.capture.probes import hit_programs
from opline.capture.probes.declared import from_json, to_json
from opline.capture.probes.hit_programs import UnreadableError, find, find_in_kernel, operand
from opline.capture.probes.offers import offers
from opline.capture.recorder import attach
from opline.capture.sources import probesource
from opline.errors import OplineError
from opline.model import Model, Problem, check_text, lttng_claims
from opline.model.probes import REGISTERS

SOURCES = Path(__file__).parents[1] / "probed_app"
POINTS = """
[points]
a = { event = "app:in", role = "begin", thread = "enter" }
b = { event = "app:out", role = "end", thread = "leave" }
"""

Run = Callable[..., subprocess.CompletedProcess[str]]


def checked(table: str) -> tuple[Model, list[Problem]]:
    return check_text(f"[probes]\n{table}{POINTS}", "probed", "probed.toml")


def errors(table: str) -> list[tuple[int, str]]:
    return [(problem.line, problem.message) for problem in checked(table)[1] if problem.severity == "error"]


@pytest.fixture(scope="module")
def probed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Not position-independent; tests/capture/test_probes_live.py has the other kind."""
    binary = tmp_path_factory.mktemp("probed") / "probed"
    argv = ["gcc", "-O1", "-no-pie", f"-I{SOURCES}", "-o", str(binary), f"{SOURCES}/probed.c", "-llttng-ust", "-ldl"]
    subprocess.run(argv, check=True, timeout=120)
    return binary


def test_a_probe_says_what_it_is_where_it_is_and_what_it_tells() -> None:
    model, problems = checked(
        'program = "srv"\n"app:in" = { usdt = "srv:in", fields = { a = "arg1", b = "arg12->-0x10->8:s32", '
        'c = "arg2:text20" } }\n'
        '"app:out" = { return = "C::out", program = "libx.so.1", fields = { r = "ret:u8" } }\n'
    )
    assert problems == []
    come_in, out = model.probes
    assert (come_in.kind, come_in.target, come_in.program, come_in.line) == ("usdt", "srv:in", "srv", 3)
    assert [(f.name, f.argument, f.offsets, f.type, f.bytes) for f in come_in.fields] == [
        ("a", 1, (), "", 8), ("b", 12, (-16, 8), "s32", 8), ("c", 2, (), "text", 24),
    ]  # fmt: skip
    assert (out.kind, out.target, out.program) == ("return", "C::out", "libx.so.1")
    assert from_json(to_json(model.probes, {"srv": [Path("/x")]})) == (list(model.probes), {"srv": [Path("/x")]})


REGISTER = f"registers are {', '.join(REGISTERS)}, at a function's entry or return"
GONE = "field a: when a function returns, its arguments are gone: use ret"
ONE_OF = "one of usdt, function, return, tracepoint is wanted"
VALUE = (
    "argN, ret, %REGISTER or @VARIABLE, then ->OFFSET to follow an address, then +N or -N, then :TYPE (u8 ... s64, "
    "textN, textN[LENGTH]) is wanted"
)


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ('{ usdt = "in" }', '`usdt = "in"`: "provider:name" is wanted'),
        ('{ usdt = "s:i", return = "f" }', f"{ONE_OF}, not usdt and return"),
        ('{ tracepoint = "a b" }', '`tracepoint = "a b"`: its name is wanted'),
        ('{ tracepoint = "t", program = "p" }', "`program`: a tracepoint is the kernel's"),
        ('{ tracepoint = "t", fields = { a = "@v->0" } }', "field a: a variable is a program's, not the kernel's"),
        ("{}", f"{ONE_OF}, not none"),
        ('"f"', f"a table with {ONE_OF}"),
        ('{ function = "f", fields = { a = "arg7" } }', "field a: of a function arg1 to arg6 are in registers"),
        (
            '{ return = "f", fields = { a = "arg1" } }',
            "field a: when a function returns, its arguments are gone: use ret",
        ),
        ('{ usdt = "s:i", fields = { a = "@v" } }', "field a: @v is an address: what is there is @v->0"),
        ('{ function = "f", fields = { a = "ret" } }', "field a: ret is for `return` only"),
        ('{ usdt = "s:i", fields = { a = "%ax" } }', f"field a: %ax: {REGISTER}"),
        ('{ function = "f", fields = { a = "%eax" } }', f"field a: %eax: {REGISTER}"),
        ('{ return = "f", fields = { a = "ret:text500" } }', "field a: a text has 2 to 128 bytes, with its NUL"),
        ('{ return = "f", fields = { "a-b" = "ret" } }', "field a-b: a name is letters, digits and _"),
        ('{ return = "f", fields = { a = "ret:text9[arg1]" } }', f"{GONE}"),
        ('{ return = "f", fields = { a = "ret:text9[@v]" } }', "field a: @v is an address: what is there is @v->0"),
        (
            '{ return = "f", fields = { a = "ret:u8[ret]" } }',
            f'field a = "ret:u8[ret]": {VALUE}, as in "arg1->0x10:u32"',
        ),
        ('{ return = "f", fields = { a = "first" } }', f'field a = "first": {VALUE}, as in "arg1->0x10:u32"'),
        (
            '{ usdt = "s:i", fields = { a = "arg1:text128", b = "arg2:text128", c = "arg3" } }',
            "its fields have more than 256 bytes together",
        ),
    ],
)
def test_a_bad_declaration_has_its_line_and_what_is_wrong(declared: str, message: str) -> None:
    assert errors(f'program = "s"\n"app:in" = {declared}') == [(3, f"probe app:in: {message}")]


def test_a_value_may_be_moved_and_a_text_may_say_its_length() -> None:
    table = (
        'program = "s"\non_request = true\n"app:in" = { function = "f", fields = { a = "arg1->-8", b = "arg4-7:s32", '
        'c = "arg2->0+0x10:text16", d = "%bx:text9[%cx]", e = "arg1->8-1:text8[arg2->4]" } }\n"app:out".return = "f"\n'
    )
    model, problems = checked(table)
    assert problems == [] and model.probes_on_request
    assert model.placed_probes(asked=False) == () and model.placed_probes(asked=True) == model.probes
    found = [(f.argument, f.register, f.offsets, f.plus, f.type, f.bytes) for f in model.probes[0].fields]
    assert found == [
        (1, "", (-8,), 0, "", 8), (4, "", (), -7, "s32", 8), (2, "", (0,), 16, "text", 16),
        (0, "bx", (), 0, "text", 16), (1, "", (8,), -1, "text", 8),
    ]  # fmt: skip
    lengths = [f.length and (f.length.argument, f.length.register, f.length.offsets) for f in model.probes[0].fields]
    assert lengths == [None, None, None, (0, "cx", ()), (2, "", (4,))]
    assert from_json(to_json(model.probes, {})) == (list(model.probes), {})
    place = Place("", "", 0, 0, "")
    assert hit_programs.fill(model.probes[0], place).split(") HIT") == [
        "HIT_NUMBER(0, (s64)(at_u64((u64)(ctx->di) + (-8)))",
        "_NUMBER(8, (s64)((s32)((u64)(ctx->cx) + (-7LL)))",
        "_TEXT(16, 16, (u64)(at_u64((u64)(ctx->si) + (0))) + (16LL)",
        "_TEXT_OF(32, 16, ctx->bx, ctx->cx",
        "_TEXT_OF(48, 8, (u64)(at_u64((u64)(ctx->di) + (8))) + (-1LL), at_u64((u64)(ctx->si) + (4)))",
    ]


def test_a_bad_name_and_a_missing_program_are_said() -> None:
    assert errors('"app:in" = { usd = "s:in" }') == [(2, "probe app:in has no field `usd` (did you mean `usdt`?)")]
    assert errors('"app:in" = { usdt = "s:in" }') == [
        (2, "probe app:in: `program` is missing, here or for all of [probes]")
    ]
    assert errors('program = "s"\nin = { usdt = "s:in" }') == [
        (3, 'probe in: an event\'s name is wanted, "provider:event"')
    ]
    assert errors('program = "s"\n"block:in" = { usdt = "s:in" }') == [
        (3, "probe block:in: block is a provider of opline's own: choose another name")
    ]


def test_lint_compares_points_and_probes() -> None:
    _, problems = checked('program = "s"\n"app:in" = { usdt = "s:in" }\n"app:ouch" = { usdt = "s:out" }\n')
    assert [(p.line, p.severity, p.message) for p in problems] == [
        (4, "note", "probe app:ouch: no point is for it, and each hit costs"),
        (8, "warning", "point b: app:out is none of [probes] (did you mean app:ouch?)"),
    ]


def test_lttng_is_not_asked_for_what_only_probes_tell() -> None:
    table = 'program = "s"\n"app:in" = { usdt = "s:in" }\n"app:out" = { usdt = "s:out" }\n'
    assert lttng_claims(checked(table)[0]) == []
    mixed, _ = checked('program = "s"\n"app:in" = { usdt = "s:in" }\n')
    assert lttng_claims(mixed) == ["app:*"], "app:out comes from somewhere else"


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("8@%rax", "(u64)ctx->ax"), ("-4@%r13d", "(s32)ctx->r13"), ("1@%dil", "(u8)ctx->di"), ("-4@$-5", "(s32)-5LL"),
        ("8@-144(%rbp)", "at_u64(ctx->bp + (-144))"), ("2@12(%r12)", "at_u16(ctx->r12 + (12))"),
        ("-8@(%rax,%rbx,8)", "at_s64(ctx->ax + ctx->bx * 8 + (0))"), ("4@(%rsp)", "at_u32(ctx->sp + (0))"),
    ],
)  # fmt: skip
def test_operands_of_usdt_notes(text: str, expression: str) -> None:
    assert operand(text) == expression


@pytest.mark.parametrize("text", ["4@value(%rip)", "8f@%xmm0", "4@%ah", "nonsense", "4@(%xmm0)"])
def test_operands_that_cannot_be_read_are_said(text: str) -> None:
    with pytest.raises(UnreadableError, match="is no"):
        operand(text)


def test_what_a_program_offers(probed: Path, opline: Run) -> None:
    found = offers(probed, "serve_*")
    assert found.lttng == ("twin:finish", "twin:start", "twin:submit")
    assert [(u.name, u.places, u.semaphore, len(u.arguments), u.readable) for u in found.usdt] == [
        ("probed:finish", 1, True, 1, 1), ("probed:start", 1, True, 1, 1), ("probed:submit", 1, True, 4, 4),
    ]  # fmt: skip
    assert [f.name for f in found.functions] == ["serve_request"] and found.function_count > 3
    done = opline("doctor", "--program", probed, "--functions", "serve_*")
    assert done.returncode == 0 and "  probed:submit  1 place   arg1 to arg4" in done.stdout.splitlines()
    asked = json.loads(opline("doctor", "--program", probed, "--json").stdout)
    assert asked["schema"] == "opline-program" and asked["lttng"] == ["twin:finish", "twin:start", "twin:submit"]
    assert asked["functions"] == []


def test_places_are_where_the_notes_and_symbols_say(probed: Path) -> None:
    """readelf and nm are the judges; the program is loaded where it was linked to."""
    file = Elf(probed)
    notes = subprocess.run(["readelf", "-n", probed], check=True, text=True, capture_output=True).stdout
    locations = [int(line.split()[1].rstrip(","), 16) for line in notes.splitlines() if "Location:" in line]
    semaphores = [int(line.split()[-1], 16) for line in notes.splitlines() if "Semaphore:" in line]
    assert [p.offset for p in file.places()] == [file.file_offset(address) for address in locations]
    assert [p.semaphore for p in file.places()] == [file.file_offset(address) for address in semaphores]
    assert all(file.data[place.offset] == 0x90 for place in file.places()), "a probe is a nop"
    names = subprocess.run(["nm", probed], check=True, text=True, capture_output=True).stdout
    address = next(int(line.split()[0], 16) for line in names.splitlines() if line.endswith(" T serve_request"))
    assert file.functions()["serve_request"] == file.file_offset(address)


def test_what_is_not_there_is_said_with_what_is(probed: Path) -> None:
    table = (
        f'program = "{probed}"\n"app:in" = {{ usdt = "probed:submitt" }}\n"app:out" = {{ function = "serve_reqest" }}\n'
    )
    model, _ = checked(table)
    for probe, close in zip(model.probes, ("probed:submit", "serve_request"), strict=True):
        with pytest.raises(UnreadableError, match=rf"has no .* \(did you mean {close}\?\)"):
            find(probe, 0, Elf(probed))
    model, _ = checked(f'program = "{probed}"\n"app:in" = {{ usdt = "probed:start", fields = {{ a = "arg2" }} }}\n')
    with pytest.raises(UnreadableError, match="field a: it has 1 arguments, there is no arg2"):
        find(model.probes[0], 0, Elf(probed))


VARIABLE = """program = "{program}"
"app:in" = {{ usdt = "probed:start", fields = {{ a = "@{name}->8:s32" }} }}
{more}"""


def test_a_variable_is_where_the_symbols_or_the_models_builds_say(probed: Path, tmp_path: Path) -> None:
    def place_of(path: Path, name: str, more: str = "") -> str:
        model, problems = checked(VARIABLE.format(program=path, name=name, more=more))
        assert [p for p in problems if p.severity == "error"] == []
        return find(model.probes[0], 0, Elf(path))[0].fill

    file, stripped = Elf(probed), tmp_path / "stripped"
    here = next(file.address(place.offset) for place in file.places() if place.name == "start") or 0
    symbols = subprocess.run(["nm", probed], check=True, text=True, capture_output=True).stdout
    address = next(int(line.split()[0], 16) for line in symbols.splitlines() if line.endswith(" b served"))
    expected = f"HIT_NUMBER(0, (s64)(at_s32((u64)((ctx->ip + ({address - here}LL))) + (8))))"
    assert place_of(probed, "served") == expected
    with pytest.raises(UnreadableError, match=r"has no variable sreved \(did you mean served\?\)"):
        place_of(probed, "sreved")

    subprocess.run(["strip", "-o", stripped, probed], check=True)
    build = Elf(stripped).build_id()
    notes = subprocess.run(["readelf", "-n", stripped], check=True, text=True, capture_output=True).stdout
    assert f"Build ID: {build}" in notes
    with pytest.raises(UnreadableError, match="has no variable served"):
        place_of(stripped, "served")
    assert place_of(stripped, "served", f'variables.served = {{ "{build}" = {address} }}') == expected
    with pytest.raises(UnreadableError, match=f"its build, {build}, is none that the model knows"):
        place_of(stripped, "served", 'variables.served = { "0123456789" = 5 }')


def test_a_variables_builds_are_ids_and_addresses() -> None:
    wanted = (
        'variable v: v = { "BUILD ID" = ADDRESS } is wanted, the ID as `readelf -n` has it, or { compared_in = '
        '"FUNCTION", behind = BYTES }'
    )
    for written in ('"5"', '{ "xyz" = 5 }', '{ "0123456789" = "5" }', "{ behind = 8 }", "{ compared_in = 8 }", "{ }"):
        table = f'program = "s"\n"app:in" = {{ usdt = "s:i" }}\nvariables.v = {written}\n'
        assert errors(table) == [(4, wanted)]


COMPARING = """
static struct { long written, flushed; } result;
static long other;
__attribute__((noipa)) void refresh(void) { result.flushed += other++; }
__attribute__((noipa)) void flush(long record) {
    if (record <= result.flushed) return;
    refresh();
    if (record <= other) return;
    refresh();
    if (record <= result.flushed) return;
    refresh();
}
__attribute__((noipa)) void both(long record) {
    if (record <= result.flushed) return;
    refresh();
    if (record <= other) return;
    refresh();
}
int main(void) { for (long i = 0; i < 9; ++i) flush(i), both(i); return (int)result.written; }
"""


@pytest.mark.parametrize("kind", ["-no-pie", "-pie"])
def test_a_variable_may_be_found_by_the_code_that_compares_with_it(kind: str, tmp_path: Path) -> None:
    (tmp_path / "flush.c").write_text(COMPARING)
    program, stripped = tmp_path / "flush", tmp_path / "stripped"
    argv = ["gcc", "-O2", kind, "-fPIE", "-rdynamic", "-o", str(program), str(tmp_path / "flush.c")]
    subprocess.run(argv, check=True, timeout=120)
    subprocess.run(["strip", "-o", stripped, program], check=True)
    symbols = subprocess.run(["nm", program], check=True, text=True, capture_output=True).stdout
    address = next(int(line.split()[0], 16) for line in symbols.splitlines() if line.endswith(" b result"))
    file = Elf(stripped)
    assert file.compared("flush") == address + 8
    assert file.compared("both") is None and file.compared("refresh") is None and file.compared("none") is None
    for function, found in (("flush", True), ("both", False)):
        table = 'program = "s"\n"app:in" = { function = "main", fields = { a = "@result->0" } }\n'
        model, problems = checked(f'{table}variables.result = {{ compared_in = "{function}", behind = 8 }}\n')
        assert [p for p in problems if p.severity == "error"] == []
        assert from_json(to_json(model.probes, {}))[0] == list(model.probes)
        if found:
            moved = address - (file.address(file.functions()["main"]) or 0)
            assert (
                find(model.probes[0], 0, file)[0].fill
                == f"HIT_NUMBER(0, (s64)(at_u64((u64)((ctx->ip + ({moved}LL))) + (0))))"
            )
        else:
            with pytest.raises(UnreadableError, match="both compares with no variable, or with several"):
                find(model.probes[0], 0, file)


def test_a_tracepoint_that_is_not_there_is_said_with_what_is() -> None:
    btf = Btf.of_kernel()
    table = '"app:in" = {{ tracepoint = "{}", fields = {{ a = "arg{}" }} }}\n'
    for name, argument, wrong in (
        ("sched:sched_process_exeq", 1, r"no tracepoint sched_process_exeq \(did you mean sched_process_exec\?\)"),
        ("sched_process_exec", 4, "the tracepoint sched_process_exec has 3 arguments, there is no arg4"),
    ):
        with pytest.raises(UnreadableError, match=wrong):
            find_in_kernel(checked(table.format(name, argument))[0].probes[0], 0, btf)
    program = find_in_kernel(checked(table.format("sched_process_exec", "3->8:s32"))[0].probes[0], 0, btf)
    assert program.fill == "HIT_NUMBER(0, (s64)(kernel_s32((u64)(ctx->args[2]) + (8))))"


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"#!/bin/sh\n", b"\x7fELF\x02\x01" + 58 * b"\xff"])
def test_what_is_no_program_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "program"
    path.write_bytes(content)
    with pytest.raises(OplineError, match="program: "):
        Elf(path)


def test_cplusplus_names_are_found_by_what_they_are_in_the_source() -> None:
    assert hit_programs.demangled("_ZN3OSD10enqueue_opEi") == "OSD::enqueue_op(int)"
    assert hit_programs.demangled("main") == "main"


def test_a_programs_name_is_the_file_that_is_meant(probed: Path) -> None:
    assert probesource.files_of(str(probed)) == [probed] and probesource.files_of("/no/such") == []
    assert probesource.files_of("probed", given=[probed]) == [probed]
    assert probesource.files_of("no-such-program") == []
    (library,) = probesource.files_of("libc.so.6")
    assert library.is_file() and library.name == "libc.so.6"


def test_attaching_wants_what_is_there(opline: Run, tmp_path: Path) -> None:
    with pytest.raises(OplineError, match="--comm no-such-name: no process of that name runs"):
        attach.targets([], ["no-such-name"])
    done = opline("record", "-o", tmp_path / "run", "--duration", "1", "--", "true")
    assert done.returncode == 2 and "--duration is a number of seconds above 0" in done.stderr
    assert not (tmp_path / "run").exists()


def test_what_has_ended_before_is_not_waited_for() -> None:
    with subprocess.Popen(["true"]) as child:
        child.wait()
    signals, looks = Signals(), []
    with signals.blocked():
        said = attach.attend(signals, lambda: looks.append(1), [child.pid], 60.0)
    assert said == "all processes that were attached to have ended" and len(looks) == 1


@pytest.mark.parametrize(
    ("code", "arguments", "at"),
    [
        ("ba01000000e9a6ebffff", 2, 5),  # mov $1,%edx; jmp: libpq's PQsendQuery
        ("ba01000000e9a6ebffff", 3, 0),  # the third argument is asked for, and gone at the jump
        ("4531c031d2eb10", 1, 5),  # xor %r8d,%r8d; xor %edx,%edx; jmp
        ("31d24883ec08", 0, 0),  # no jump behind it
        ("803d7d8568000074174883ec08", 0, 7),  # cmpb $0,variable(%rip); je: pg_fdatasync
        ("803d7d8568000074174883ec08", None, 7),
        ("4885ff7405", 6, 3),  # test %rdi,%rdi; je
        ("4883fe017405", 6, 4),  # cmp $1,%rsi; je
        ("4885ff0f8405000000", 6, 0),  # a jump that is far
        ("4883ee017405", 6, 0),  # sub $1,%rsi; je: an argument is another one then
        ("ba01000000e9a6ebffff", None, 0),
        ("31c2e900000000", 0, 0),  # xor %eax,%edx is no constant
        ("5589e5", 6, 0),
    ],
)
def test_a_function_that_sets_constants_and_jumps_is_taken_at_its_jump(
    tmp_path: Path, probed: Path, code: str, arguments: int, at: int
) -> None:
    path = tmp_path / "program"
    path.write_bytes(probed.read_bytes() + bytes.fromhex(code) + bytes(16))
    begin = probed.stat().st_size
    file = Elf(path)
    assert file.entry(begin, arguments) - begin == at
    assert at == 0 or not file.steps(begin + at)
