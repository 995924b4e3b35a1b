# SPDX-License-Identifier: MIT
"""The engine ``dask``: tasks on workers of dask.distributed, at an address or on hosts by ssh. The only file that
imports dask.

A worker calls `processes.run_here`, which starts a process. Dask finds the function by its name in the worker's own
opline: arguments and result are texts and numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opline.errors import OplineError, UsageError
from opline_analyses.base.extras import with_extras
from opline_analyses.engine.interface import Failure
from opline_analyses.engine.processes import run_here

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from opline_analyses.engine.interface import Item

CONNECT_S = 10
DEATHS = 3  # of workers with a task: then the task fails


class Dask:
    """``where``: the scheduler's address (``tcp://HOST:8786``), or ``ssh:HOSTFILE``, a host per line, the scheduler's
    first. Raises OplineError.
    """

    def __init__(self, where: str, folder: Path) -> None:
        if not where or where == "ssh:":
            raise UsageError("--engine dask: an address is wanted, as dask:tcp://HOST:8786, or dask:ssh:HOSTFILE.")
        with with_extras():
            import dask
            from distributed import Client
        self._folder, self._cluster = folder, None
        dask.config.set({"distributed.scheduler.allowed-failures": DEATHS, "logging.distributed": "critical"})
        at: Any = where
        if where.startswith("ssh:"):
            at = self._cluster = _by_ssh(where.removeprefix("ssh:"))
        try:
            self._client: Any = Client(at, timeout=CONNECT_S, set_as_default=False)  # type: ignore[no-untyped-call]
        except (OSError, ValueError) as error:
            self._close_cluster()
            raise OplineError(f"No scheduler of Dask answers at {where}: {str(error) or 'it timed out'}.") from error

    def map(self, task: str, items: Sequence[Item]) -> Iterator[tuple[Item, Path | Failure]]:
        """See Engine. Dask repeats a task elsewhere if its worker dies."""
        from distributed import as_completed

        try:
            self._client.wait_for_workers(1, timeout=CONNECT_S)
        except TimeoutError as error:
            raise OplineError("Dask has no worker: start one with `dask worker ADDRESS`.") from error
        known = self._client.scheduler_info(n_workers=-1)["workers"]
        at = {str(worker["host"]): address for address, worker in known.items()}
        at |= {str(worker["name"]): address for address, worker in known.items()}
        futures = {}
        for number, item in enumerate(items):
            near = at.get(item.host or "")
            future = self._client.submit(
                run_here, task, item.request(), pure=False, retries=0,
                workers=None if near is None else [near], allow_other_workers=near is not None,
            )  # fmt: skip
            futures[future] = number, item
        ended: Any = as_completed(futures, loop=self._client.loop)  # type: ignore[no-untyped-call]
        for future in ended:
            number, item = futures[future]
            if (instead := future.exception()) is not None:
                yield item, _failure(instead)
                continue
            status, wrote, why = future.result()
            future.release()
            if status:
                yield item, Failure(why.decode(), status)
                continue
            (out := self._folder / f"{number}.json").write_bytes(wrote)
            yield item, out

    def close(self) -> None:
        """See Engine."""
        self._client.close(timeout=CONNECT_S)
        self._close_cluster()

    def _close_cluster(self) -> None:
        if self._cluster is not None:
            self._cluster.close()


def _failure(error: BaseException) -> Failure:
    """The failure from Dask's error instead of an answer."""
    if type(error).__name__ == "KilledWorker":
        return Failure(f"each of {DEATHS + 1} workers died with its task")
    if isinstance(error, ModuleNotFoundError) and (error.name or "").startswith("opline"):
        return Failure("its worker has no opline: install it in the worker's Python")
    return Failure(" ".join(str(error).split()) or type(error).__name__)


def _by_ssh(hostfile: str) -> Any:
    """A cluster of Dask on hosts, by the user's ssh. Raises OplineError."""
    from pathlib import Path

    try:
        hosts = [line.strip() for line in Path(hostfile).read_text().splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise OplineError(f"Cannot read the hosts in {hostfile}: {error}.") from error
    hosts = [host for host in hosts if host and not host.startswith("#")]
    if not hosts:
        raise UsageError(f"{hostfile} names no host: a host per line is wanted.")
    with with_extras():
        from distributed import SSHCluster
    try:
        return SSHCluster([hosts[0], *hosts])
    except (OSError, RuntimeError, ImportError) as error:
        raise OplineError(f"Dask cannot start on the hosts in {hostfile}: {error}.") from error
