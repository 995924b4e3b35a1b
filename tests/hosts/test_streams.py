# SPDX-License-Identifier: MIT
"""Which call of one host received the byte that a call of another host sent: streams cut at random, sequence numbers
that wrap around, lost calls, ports that are used again, addresses that every machine has.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st

from opline.cluster.streams import StreamExchange, streams_of

CLIENT, SERVER = "10.0.0.1:40000", "10.0.0.2:7003"
OFFSET_NS = 37_000_000_000  # of the server's clock
WRAP = 1 << 32
SOCKETS = {"client": 0xFFFF_8882_0000_0001, "server": 0xFFFF_8882_0000_0002}


class Host:
    """Writes the table of a host's run."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, str, str, str, int, int, int | None]] = []

    def send(self, ts_ns: int, local: str, peer: str, socket: int, position: int) -> None:
        self.rows.append((ts_ns, "send", local, peer, socket, position % WRAP, None))

    def receive(self, ts_ns: int, local: str, peer: str, socket: int, position: int, size: int) -> None:
        self.rows.append((ts_ns, "receive", local, peer, socket, position % WRAP, size))

    def write(self, run: Path) -> Path:
        run.mkdir(exist_ok=True)
        names = ("ts_ns", "direction", "local", "peer", "socket", "position", "bytes")
        types = (pa.int64(), pa.string(), pa.string(), pa.string(), pa.uint64(), pa.uint32(), pa.uint32())
        columns = [[row[i] for row in self.rows] for i in range(len(names))]
        arrays = [pa.array(values, of) for values, of in zip(columns, types, strict=True)]
        table = pa.table([a.dictionary_encode() if a.type == pa.string() else a for a in arrays], names=names)
        pq.write_table(table, run / "tcp.parquet")
        return run


def exchange(folder: Path, hosts: dict[str, Host], boots: dict[str, str] | None = None) -> StreamExchange:
    streams = {name: streams_of(host.write(folder / name)) for name, host in hosts.items()}
    return StreamExchange(streams, boots or {name: name for name in hosts})


def stream(
    sender: Host, receiver: Host, ends: tuple[str, str], first: int, sizes: list[int], reads: list[int], at_ns: int = 0,
    sockets: tuple[int, int] = (SOCKETS["client"], SOCKETS["server"]),
) -> list[tuple[int, int]]:  # fmt: skip
    """One direction: calls that send ``sizes``, calls that read up to ``reads``. The truth: per send its time, and that
    of the call that received its first byte, on the receiver's clock.
    """
    here, there = ends
    position, starts = first, []
    for i, size in enumerate(sizes):
        sender.send(at_ns + i * 1000, here, there, sockets[0], position)
        starts.append((at_ns + i * 1000, position))
        position += size
    read, n, truth = first, 0, []
    while read < position:
        size = min(reads[n % len(reads)], position - read)
        ts_ns = at_ns + OFFSET_NS + len(sizes) * 1000 + n * 700
        receiver.receive(ts_ns, there, here, sockets[1], read, size)
        truth += [(sent, ts_ns) for sent, begin in starts if read <= begin < read + size]
        read, n = read + size, n + 1
    return truth


def latest(truth: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Of the sends of one receive the last one."""
    return sorted((sent, received) for received, sent in {received: sent for sent, received in truth}.items())


@settings(max_examples=60, deadline=None)
@given(
    first=st.sampled_from([0, 1000, WRAP // 2 - 10, WRAP - 10, WRAP - 1]),
    sizes=st.lists(st.integers(1, 5000), min_size=1, max_size=60),
    reads=st.lists(st.integers(1, 9000), min_size=1, max_size=20),
)
def test_each_send_has_the_call_that_received_its_first_byte(
    first: int, sizes: list[int], reads: list[int], tmp_path_factory: object
) -> None:
    folder = tmp_path_factory.mktemp("streams")  # type: ignore[attr-defined]
    client, server = Host(), Host()
    truth = stream(client, server, (CLIENT, SERVER), first, sizes, reads)
    found = exchange(folder, {"client": client, "server": server})
    there, back = found["client", "server"], found["server", "client"]
    assert list(zip(there.sent_ns.tolist(), there.received_ns.tolist(), strict=True)) == latest(truth)
    assert (there.paired, there.unpaired) == (len(sizes), 0)
    assert (back.paired, back.unpaired, len(back.sent_ns)) == (0, 0, 0)


def test_calls_that_were_lost_leave_sends_without_a_receive(tmp_path: Path) -> None:
    client, server = Host(), Host()
    truth = stream(client, server, (CLIENT, SERVER), 5, [100] * 50, [100])
    lost = server.rows.pop(20)
    found = exchange(tmp_path, {"client": client, "server": server})["client", "server"]
    assert (found.paired, found.unpaired) == (49, 1)
    assert lost[0] not in found.received_ns
    assert set(zip(found.sent_ns.tolist(), found.received_ns.tolist(), strict=True)) < set(truth)


def test_a_later_connection_of_the_same_ports_is_another_one(tmp_path: Path) -> None:
    client, server = Host(), Host()
    truth = stream(client, server, (CLIENT, SERVER), 5000, [100] * 20, [300])
    truth += stream(client, server, (CLIENT, SERVER), 3_000_000_000, [100] * 20, [300], 10**9, (3, 4))
    found = exchange(tmp_path, {"client": client, "server": server})["client", "server"]
    assert sorted(zip(found.sent_ns.tolist(), found.received_ns.tolist(), strict=True)) == latest(truth)
    assert (found.paired, found.unpaired) == (40, 0)


def test_connections_of_one_host_and_other_positions_are_no_messages_between_hosts(tmp_path: Path) -> None:
    inside = Host()
    stream(inside, inside, (CLIENT, SERVER), 5000, [100] * 20, [100])
    other, nothing = Host(), Host()
    stream(nothing, other, (CLIENT, SERVER), 5000, [100] * 20, [100])
    assert exchange(tmp_path, {"client": inside, "server": other})["client", "server"].paired == 0
    far = Host()
    stream(nothing, far, (CLIENT, SERVER), 900_000, [100] * 20, [100])
    alone = Host()
    stream(alone, nothing, (CLIENT, SERVER), 5000, [100] * 20, [100])
    found = exchange(tmp_path, {"client": alone, "server": far})["client", "server"]
    assert (found.paired, found.unpaired) == (0, 0)


def test_an_address_of_the_machine_itself_leads_to_no_other_machine(tmp_path: Path) -> None:
    for server_at in ("127.0.0.1:7003", "[::1]:7003"):
        client, server = Host(), Host()
        stream(client, server, ("127.0.0.1:40000", server_at), 5000, [100] * 20, [100])
        hosts = {"client": client, "server": server}
        assert exchange(tmp_path, hosts)["client", "server"].paired == 0
        assert exchange(tmp_path, hosts, {"client": "", "server": ""})["client", "server"].paired == 0
        assert exchange(tmp_path, hosts, dict.fromkeys(hosts, "one boot"))["client", "server"].paired == 20


def test_a_host_without_calls_has_no_streams(tmp_path: Path) -> None:
    client, server = Host(), Host()
    found = exchange(tmp_path, {"client": client, "server": server})
    assert found["client", "server"].paired == 0
    assert found.streams["client"].span() is None
    assert np.array_equal(found["client", "server"].sent_ns, np.empty(0, np.int64))
