# SPDX-License-Identifier: MIT
"""A real PostgreSQL whose client is on another host: no model says what its messages are, and positions in TCP streams
align both hosts.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.hosts.test_tcp_live import PORT, check_bounds, hosts, promise, recorded
from tests.lib.postgresql import AS_POSTGRES, BIN, cluster_folder, needs_postgresql

from opline_analyses.cli import main

__all__ = ["hosts"]

pytestmark = [
    pytest.mark.live,
    needs_postgresql,
]
QUERIES = 200


@pytest.fixture
def cluster_of_its_own() -> Iterator[Path]:
    """A folder with a PostgreSQL cluster that its client's host may use."""
    with cluster_folder() as folder:
        with (folder / "data/pg_hba.conf").open("a") as rules:
            rules.write("host all all 10.77.0.0/24 trust\n")
        yield folder


def test_tcp_positions_align_a_client_and_its_postgresql(
    hosts: tuple[int, int], tmp_path: Path, runtime: Path, cluster_of_its_own: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    done = tmp_path / "done"
    options = f"-c listen_addresses=10.77.0.2 -c port={PORT} -c unix_socket_directories={cluster_of_its_own}"
    serve = f"{' '.join(AS_POSTGRES)} {BIN}/postgres -D {cluster_of_its_own}/data {options}"
    server = f"{serve} & until test -e {done}; do sleep 0.05; done; kill -INT $!; wait $!"
    (tmp_path / "queries.sql").write_text("SELECT 1;\n" * QUERIES)
    where = f"-h 10.77.0.2 -p {PORT} -U postgres"
    client = (
        f"until {BIN}/pg_isready -q {where}; do sleep 0.1; done;"
        f"{BIN}/psql {where} -q -At -f {tmp_path}/queries.sql postgres; touch {done}"
    )
    cluster = recorded(hosts, tmp_path, ["sh", "-c", server], ["sh", "-c", client])
    pair = check_bounds(cluster)
    assert promise(tmp_path / "client")["recorded"] >= QUERIES
    assert pair["paired"] == 0 and pair["tcp_unpaired"] <= 2  # at most one for each connection
    assert pair["tcp_paired"] >= 2 * QUERIES  # each query, and each answer
    capfd.readouterr()
    assert main(["hosts", str(cluster)]) == 0
    (line,) = (line for line in capfd.readouterr().out.splitlines() if line.startswith("client and server"))
    assert line.split()[3:6] == ["TCP", str(pair["tcp_paired"]), str(pair["tcp_unpaired"])]
    calls = pq.read_table(cluster / "tcp.parquet")
    assert set(calls.column("host").to_pylist()) == {"client", "server"}
    assert f"10.77.0.2:{PORT}" in set(calls.column("peer").to_pylist())
