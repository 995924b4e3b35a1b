# SPDX-License-Identifier: MIT
"""`opline model infer --pid`: a model of what runs, from a trial recording that leaves nothing."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from opline.capture.probes.everything import everything
from opline.capture.probes.offers import Function, Offers, Usdt
from opline.errors import OplineError
from opline.model import check_text, load_model, probe_text

SDT = Path(__file__).parents[1] / "probed_app"

#: One thread queues, another one serves; the job's address comes back, its number counts up.
SOURCE = """
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>
#include "sdt.h"
USDT_SEMAPHORE(jobs, queued);
USDT_SEMAPHORE(jobs, done);
struct job { long id; };
static struct job jobs[2];
static sem_t queued[2], done[2];
__attribute__((noipa)) void job_queue(struct job *j) { USDT(jobs, queued, "-8@%0", "nor"(j->id)); }
__attribute__((noipa)) void job_done(struct job *j) { USDT(jobs, done, "-8@%0", "nor"(j->id)); }
static void *work(void *at) {
    for (long k = (long)at;;) {
        sem_wait(&queued[k]);
        usleep(200);
        job_done(&jobs[k]);
        sem_post(&done[k]);
    }
}
int main(void) {
    pthread_t thread;
    for (long k = 0; k < 2; ++k) {
        sem_init(&queued[k], 0, 0), sem_init(&done[k], 0, 0);
        pthread_create(&thread, 0, work, (void *)k);
    }
    for (long id = 1;; id += 2) {
        for (int k = 0; k < 2; ++k) jobs[k].id = id + k, job_queue(&jobs[k]), sem_post(&queued[k]);
        for (int k = 0; k < 2; ++k) sem_wait(&done[k]);
    }
}
"""

Opline = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[subprocess.Popen[bytes]]:
    folder = tmp_path_factory.mktemp("jobs")
    (folder / "jobs.c").write_text(SOURCE)
    argv = ["gcc", "-O2", f"-I{SDT}", "-o", "jobs", "jobs.c", "-lpthread"]
    subprocess.run(argv, cwd=folder, check=True, timeout=120)
    with subprocess.Popen([folder / "jobs"]) as child:
        yield child
        child.kill()


@pytest.mark.live
@pytest.mark.parametrize("options", [(), ("--functions", "job_*")])
def test_what_runs_is_probed_and_its_model_records_it(
    running: subprocess.Popen[bytes], opline: Opline, tmp_path: Path, options: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """The USDT probe is the first instruction of its function: with both either may be first."""
    own = tmp_path / "tmp"  # other tests infer at the same time
    own.mkdir()
    monkeypatch.setenv("TMPDIR", str(own))
    done = opline("model", "infer", "--pid", running.pid, "--duration", "1", *options)
    assert done.returncode == 0, done.stderr
    assert not list(own.glob("opline-infer-*")) and running.poll() is None
    text = tmp_path / "jobs.toml"
    text.write_text(done.stdout)
    lint = opline("model", "lint", text)
    assert lint.returncode == 0 and "error" not in lint.stdout, lint.stdout
    model = load_model(str(text))
    (begin,) = (rule for rule in model.rules if rule.role == "begin")
    assert begin.events[0] in ("jobs:queued", "jobs:job_queue") and len(begin.key) == 1
    assert {space.fields for space in model.keys if space.name == begin.key[0].space} == {("arg1",)}
    ends = [rule.events[0] for rule in model.rules if rule.role in ("end", "end?")]
    assert ends and all(event.startswith(("jobs:done", "jobs:job_done")) for event in ends)
    run = tmp_path / "run"
    done = opline("record", "-o", run, "--model", text, "--no-block", "--pid", running.pid, "--duration", "0.5")
    assert done.returncode == 0, done.stderr
    done = opline("sql", run, "SELECT count(*) AS n FROM ops WHERE complete", "--csv")
    assert done.returncode == 0 and int(done.stdout.split()[1]) > 20, done.stdout + done.stderr
    # of a recording the table is carried over
    again = opline("model", "infer", run)
    assert again.returncode == 0 and "take [probes] over" not in again.stdout, again.stderr
    (tmp_path / "again.toml").write_text(again.stdout)
    probes = {probe.event: probe_text(probe) for probe in load_model(str(tmp_path / "again.toml")).probes}
    assert probes == {p.event: probe_text(p) for p in model.probes if p.event in probes} and begin.events[0] in probes


def test_mistakes_are_said(opline: Opline, tmp_path: Path) -> None:
    for arguments, said in (
        ((), "model infer takes a TRACE, or --pid N."),
        ((tmp_path, "--pid", "1"), "model infer takes a TRACE, or --pid N."),
        ((tmp_path, "--functions", "x"), "--functions is for --pid N."),
        (("--pid", "1", "--duration", "0"), "--duration is a number of seconds above 0."),
    ):
        done = opline("model", "infer", *arguments)
        assert (done.returncode, done.stdout, done.stderr) == (2, "", f"opline: {said}\n")
    done = opline("model", "infer", "--pid", str(2**22 - 1))
    assert done.returncode == 1 and "there is no such process" in done.stderr


def test_all_that_a_program_offers_is_a_model() -> None:
    usdt = Usdt("p:a__start", 2, True, ("8@%rax", "-4@$5"), 2), Usdt("p:odd", 1, False, ("8@%xmm0", "8@%rax"), 1)
    functions = Function("N::f(int)", "_ZN1N1fEi", False), Function("N::f(long)", "_ZN1N1fEl", False)
    text = everything([Offers("/bin/x-y.so.1", (), usdt, functions, 9)])
    model, problems = check_text(text, "m", "m.toml")
    assert not [p for p in problems if p.severity == "error"]
    assert [(p.event, p.target, [f.name for f in p.fields]) for p in model.probes] == [
        ("p:a__start", "p:a__start", ["arg1", "arg2"]), ("p:odd", "p:odd", []),
        ("x_y:N_f", "_ZN1N1fEi", ["arg1", "arg2", "arg3"]), ("x_y:N_f_return", "_ZN1N1fEi", ["ret"]),
        ("x_y:N_f2", "_ZN1N1fEl", ["arg1", "arg2", "arg3"]), ("x_y:N_f2_return", "_ZN1N1fEl", ["ret"]),
    ]  # fmt: skip
    with pytest.raises(OplineError, match="has no USDT probe, and 9 functions with names: --functions GLOB"):
        everything([Offers("/bin/x", (), (), (), 9)])
    with pytest.raises(OplineError, match="at most 200 are possible: a narrower --functions GLOB"):
        everything([Offers("/bin/x", (), (), tuple(Function(f"f{n}", f"f{n}", False) for n in range(101)), 101)])


def test_a_declaration_is_written_as_it_is_read() -> None:
    fields = {
        "a": "arg1->-8->16:s32", "b": "arg4-7:s32", "c": "arg2->0+16:text16", "d": "%bx:text16[%cx]",
        "e": "arg1->8-1:text8[arg2->4]", "f": "@v->0", "g": "arg3",
    }  # fmt: skip
    written = ", ".join(f'{name} = "{value}"' for name, value in fields.items())
    line = f'"app:in" = {{ function = "C::f(A*, \\"b\\")", program = "s", fields = {{ {written} }} }}'
    model, problems = check_text(f'[probes]\n{line}\n[points]\na = {{ event = "app:in", role = "begin" }}\n', "m", "m")
    assert not [p for p in problems if p.severity == "error"] and probe_text(model.probes[0]) == line
