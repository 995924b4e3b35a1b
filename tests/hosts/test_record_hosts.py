# SPDX-License-Identifier: MIT
"""`opline record --hosts` over a real sshd on each of two hosts: what comes home, who is missing, what stays behind."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.lib.ssh_hosts import SSHD, SshHosts

from opline.errors import UsageError
from opline_analyses.hosts.nodes import nodes

ROOT = Path(__file__).resolve().parents[2]
STORE = ROOT / "examples" / "demo-store" / "build"
PROGRAM = Path(sys.executable).with_name("opline")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("client", "client"),
        ("client,osd[1-3]", "client osd1 osd2 osd3"),
        ("root@n[08-10,12]x", "root@n08x root@n09x root@n10x root@n12x"),
        ("a[1-2]-b[3,5]", "a1-b3 a1-b5 a2-b3 a2-b5"),
    ],
)
def test_names_of_hosts(text: str, names: str) -> None:
    assert nodes(text) == names.split()


@pytest.mark.parametrize("text", ["", ",", "-oProxyCommand=x", "a,a", "n[3-1]", "n[x]", "n[1", "a b", "n[1-99999]"])
def test_what_is_no_list_of_hosts(text: str) -> None:
    with pytest.raises(UsageError, match="--hosts"):
        nodes(text)


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshHosts]:
    if not SSHD.exists():
        pytest.skip("no sshd: setup-env could not fetch it")
    folder = tmp_path_factory.mktemp("ssh")
    clock = folder / "otherclock.so"
    source = ROOT / "examples" / "cluster" / "otherclock.c"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", clock, source, "-lm", "-llttng-ust"], check=True)
    other = f'LTTNG_UST_CLOCK_PLUGIN={clock} "OTHER_CLOCK=37000000000 23 0.5 7 0"'
    found = SshHosts(folder, ["client", "server"], {"server": other})
    yield found
    found.close()


class Recording:
    """One `opline record --hosts client,server`, of the demo store over TCP."""

    def __init__(self, hosts: SshHosts, folder: Path, ops: int, *more: str, names: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as found:
            port = found.getsockname()[1]
        with (folder / "device").open("wb") as device:
            device.truncate(64 << 20)
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        where = f"tcp:127.0.0.1:{port}"
        listens = f'until grep -q "0100007F:{port:04X} .* 0A " /proc/net/tcp; do sleep 0.05; done'
        bench = f"{STORE}/demo-bench --socket {where} --ops {ops} --rate 600 --qd 4 --objects 4"
        server = f"{STORE}/demo-server --socket {where} --device {folder}/device --backend buffered"
        self.process = subprocess.Popen(
            [PROGRAM, "record", "--hosts", names, "-o", folder / "all", "--model", "demo", "--no-block",
             "--sessiond", "private", "--remote", f"env TMPDIR={self.temporary} {PROGRAM}",
             "--on", f"server={server}", *more, "--", "sh", "-c", f"{listens}; exec {bench}"],
            env={**os.environ, "PATH": f"{hosts.bin}:{os.environ['PATH']}"},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def end(self) -> tuple[int, str, str]:
        out, err = self.process.communicate(timeout=120)
        return self.process.returncode, out, err

    def processes(self, *words: str) -> list[int]:
        """Those of the hosts whose command line has all the words: of this recording alone."""
        found = []
        for path in Path("/proc").glob("[0-9]*"):
            try:
                line = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                mine = f"TMPDIR={self.temporary}\0".encode() in (path / "environ").read_bytes()
            except OSError:
                continue
            if mine and all(word in line for word in words):
                found.append(int(path.name))
        return found

    def check_nothing_is_left(self) -> None:
        """No process, a session daemon neither: each has the environment of what started it."""
        wait_for(lambda: not self.processes())
        wait_for(lambda: not list(self.temporary.iterdir()))


def wait_for(condition: Callable[[], object]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


@pytest.mark.live
def test_two_hosts_are_recorded_brought_home_and_joined(hosts: SshHosts, tmp_path: Path) -> None:
    recording = Recording(hosts, tmp_path, 600, names="client,server")
    status, out, err = recording.end()
    assert status == 0, err
    assert "Total writes made:      600" in out and "server aligned" in out
    client, server = json.loads((tmp_path / "all" / "cluster.json").read_text())["hosts"]
    assert (client["name"], client["status"], server["name"], server["status"]) == (
        "client", "reference", "server", "aligned",
    )  # fmt: skip
    for name in ("client", "server"):
        note = json.loads((tmp_path / "all.hosts" / name / "recording.json").read_text())
        assert note["host"]["hostname"] == name and note["state"] != "recording"
    recording.check_nothing_is_left()


@pytest.mark.live
def test_a_host_that_fails_is_named_and_the_other_is_used(hosts: SshHosts, tmp_path: Path) -> None:
    """A third host does not exist."""
    recording = Recording(hosts, tmp_path, 300, "--on", "nohost.invalid=true", names="client,server,nohost.invalid")
    status, out, err = recording.end()
    assert status == 3, err
    assert "opline: nohost.invalid: ssh ended with status 255: " in err
    assert re.search("server +aligned", out) and "nohost.invalid is missing: " in out
    recording.check_nothing_is_left()


@pytest.mark.live
@pytest.mark.parametrize("who", ["asker", "ssh", "recorder", "asker, for good"])
def test_nothing_is_left_on_a_host_after_kills(
    who: str, hosts: SshHosts, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    recording = Recording(hosts, tmp_path, 100_000 if who.startswith("asker") else 1500, names="client,server")
    wait_for(lambda: [p for p in recording.processes("demo-bench") if cmdline(p).startswith(bytes(STORE))])
    request.addfinalizer(recording.process.kill)
    (bench,) = [p for p in recording.processes("demo-bench") if cmdline(p).startswith(bytes(STORE))]
    wait_for(lambda: waits(bench) > 500)  # some hundreds of its ops are done
    if who == "asker":  # what was recorded until then is kept
        recording.process.send_signal(signal.SIGTERM)
        status, out, err = recording.end()
        assert status == 128 + signal.SIGTERM, err
        assert "server aligned" in out, err
        for name in ("client", "server"):
            note = json.loads((tmp_path / "all.hosts" / name / "recording.json").read_text())
            assert note["state"] != "recording"
    elif who == "asker, for good":
        recording.process.kill()
        recording.end()
        assert not (tmp_path / "all").exists() and not (tmp_path / "all.hosts").exists()
    else:
        words = ("opline_analyses record", "demo-server") if who == "recorder" else ("ssh",)
        if who == "ssh":
            (pid,) = [
                p for p in children(recording.process.pid) if b"server" in cmdline(p).split(b"--")[1].split(b"\0")
            ]
        else:
            (pid,) = [p for p in recording.processes(*words) if b"--serve" not in cmdline(p)]
        os.kill(pid, signal.SIGKILL)
        status, _, err = recording.end()
        assert status != 0 and "opline: server: " in err, err
    recording.check_nothing_is_left()


def cmdline(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def waits(pid: int) -> int:
    """How often the threads of a process have slept."""
    texts = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/status")]
    return sum(int(text.partition("\nvoluntary_ctxt_switches:")[2].split()[0]) for text in texts)


def children(pid: int) -> list[int]:
    return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.live
def test_doctor_says_what_each_host_can_do(hosts: SshHosts) -> None:
    done = subprocess.run(
        [PROGRAM, "doctor", "--hosts", "server,nohost.invalid", "--remote", str(PROGRAM)],
        env={**os.environ, "PATH": f"{hosts.bin}:{os.environ['PATH']}"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    first, *_, last = done.stdout.splitlines()
    assert done.returncode == 1
    assert first.startswith("server          yes: application events yes; block events ")
    assert last.startswith("nohost.invalid  no: ssh ended with status 255: ")


def test_what_cannot_be_recorded_on_several_hosts(opline: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    for words, line in {
        ("--repeat", "2", "-o", "x", "--", "true"): "--repeat records on one host",
        ("-o", "x"): "No command for the first host",
        ("--", "true"): "--hosts makes a cluster: name it with -o CLUSTER.",
        ("-o", "x", "--", "true"): "Nothing to record on b: name what runs there",
        ("-o", "x", "--on", "c=true", "--", "true"): "--on c: is none of the other hosts",
        ("-o", "x", "--on", "true", "--", "true"): "HOST='COMMAND' is wanted.",
        ("-o", "/tmp", "--", "true"): "/tmp exists",
    }.items():
        done = opline("record", "--hosts", "a,b", *words)
        assert (done.returncode, done.stdout) == (2, ""), done.stderr
        assert line in done.stderr and done.stderr.count("\n") == 1
