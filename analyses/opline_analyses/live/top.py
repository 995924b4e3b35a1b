# SPDX-License-Identifier: MIT
"""`opline top`: devices, queueing threads or cgroups, and the slowest I/Os of the last interval, on one screen.

The content is a value, `Screen`, which gives lines; `terminal` draws and reads keys. Devices are exact, as in `iostat
-x`; threads, cgroups and I/Os are of the same interval.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from opline.talk import shown
from opline_analyses.base.result_table import Column, ResultTable, rendered, text
from opline_analyses.base.text import device_name, duration
from opline_analyses.block import io_filter, io_log, io_steps, iostat
from opline_analyses.intervals.intervals import Cell, Tally
from opline_analyses.live.iostat import Iostat
from opline_analyses.live.ops_now import OpsNow, OpsTally, class_lines, op_lines, slow_lines, slowest_of, stage_lines
from opline_analyses.live.terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opline_analyses.block.iostat import Row
    from opline_analyses.intervals.intervals import Cells
    from opline_analyses.live.snapshot import Snapshot

SORTS = ("ios", "bytes", "latency", "name")
BY = ("thread", "cgroup")
KEYS = "q quit   s sort   i reads/writes   c cgroups   / filter   f freeze   1-9 open a slow I/O"
KEYS_OPS = "q quit   s sort   / filter   f freeze   1-9 open a slow op"
KEYS_OPENED = "q quit   Esc closes it   1-9 another one   f freeze"
_KINDS = ("all", "reads", "writes")
_SLOWEST = 10
DEVICES = [Column("", head, left=number == 0) for number, head in enumerate(("device", *iostat.LINUX_HEADER))]
WHO = (
    Column("rate", "I/O/s", iostat.rate), Column("", "MiB/s", lambda mib: f"{mib:.1f}"),
    Column("mean_ns", "mean", duration), Column("max_ns", "max", duration),
)  # fmt: skip
SLOW = (
    text("who", "slowest"), Column("latency_ns", "latency", duration),
    *(Column(name, name) for name in ("rwbs", "device", "sector", "bytes")),
)  # fmt: skip


@dataclass(slots=True)
class Screen:
    """The content of the screen, and the user's wishes."""

    devices: list[Row] = field(default_factory=list)
    owners: dict[str, Cell] = field(default_factory=dict)  # by name and TID, or by cgroup
    slowest: list[dict[str, Any]] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)
    seconds: float = 0.0
    length_s: float = 1.0
    sort: str = "ios"
    kind: str = "all"
    pattern: str = ""
    typing: bool = False
    frozen: bool = False
    opened: dict[str, Any] | None = None  # one of the slowest
    ops: OpsNow | None = None  # with a model
    says: str = ""
    by: str = "thread"  # kind of the `owners`

    def press(self, key: str) -> bool:
        """Takes a key; returns whether this key ends the program."""
        if self.typing:
            if key in ("\n", "\r", "\x1b"):
                self.typing = False
                self.pattern = "" if key == "\x1b" else self.pattern
            elif key in ("\x7f", "\b"):
                self.pattern = self.pattern[:-1]
            elif key.isprintable():
                self.pattern += key
        elif key == "s":
            self.sort = SORTS[(SORTS.index(self.sort) + 1) % len(SORTS)]
        elif key == "i":
            self.kind = _KINDS[(_KINDS.index(self.kind) + 1) % len(_KINDS)]
        elif key == "c":
            self.by, self.owners = BY[(BY.index(self.by) + 1) % len(BY)], {}
        elif key == "/":
            self.typing, self.pattern = True, ""
        elif key in ("f", " "):
            self.frozen = not self.frozen
        elif key == "\x1b":
            self.opened = None
        elif key in "123456789" and key:
            shown = self._meant_slow() if self.ops is None else self._meant_ops()
            self.opened = shown[int(key) - 1] if int(key) <= len(shown) else self.opened
        return key in ("q", "Q") and not self.typing

    def _meant(self, name: str) -> bool:
        return self.pattern in name

    def _cells(self, row: Row) -> Any:
        return {"all": row.all, "reads": row.reads, "writes": row.writes}[self.kind]

    def _ordered_devices(self) -> list[Row]:
        keys = {
            "ios": lambda row: -self._cells(row).count,
            "bytes": lambda row: -self._cells(row).size,
            "latency": lambda row: -(self._cells(row).mean or 0),
            "name": lambda row: row.name,
        }
        return sorted((row for row in self.devices if self._meant(row.name)), key=keys[self.sort])

    def _ordered_owners(self) -> list[tuple[str, Cell]]:
        keys = {
            "ios": lambda who: (-who[1].count, who[0]),
            "bytes": lambda who: (-who[1].size, who[0]),
            "latency": lambda who: (-(who[1].mean or 0), who[0]),
            "name": lambda who: who[0],
        }
        return sorted((who for who in self.owners.items() if self._meant(who[0])), key=keys[self.sort])

    def lines(self, width: int, height: int) -> list[str]:
        """At most so many lines, each at most so wide: a head, devices, threads, I/Os, and the keys."""
        found = [f"opline top  {self.seconds:.1f} s, each {self.length_s:g} s  {'FROZEN  ' if self.frozen else ''}"]
        found[0] += f"sort: {self.sort}  {self.kind}" + (f"  /{self.pattern}" if self.typing or self.pattern else "")
        found[0] += f"  {self.says}" if self.says else ""
        if self.ops is not None:
            return self._with_ops(found, width, height)
        room = max(0, height - 5)
        devices = self._ordered_devices()[: max(1, room // 4)]
        found += ["", *ResultTable(DEVICES, [iostat.linux_cells(row) for row in devices]).lines()]
        if self.opened is not None:
            steps = rendered(io_steps.lines(self.opened, self.names))
            return self._fitted([*found, "", *steps], width, height, KEYS_OPENED)
        slow = self._slow()[: max(1, room // 4)]
        owners = self._ordered_owners()[: max(1, room - len(devices) - len(slow) - 4)]
        found += ["", *ResultTable([text("", self.by), *WHO], [self._who(*who) for who in owners]).lines()]
        found += ["", *ResultTable(SLOW, slow).lines()]
        return self._fitted(found, width, height, KEYS)

    def _with_ops(self, found: list[str], width: int, height: int) -> list[str]:
        """The same, with a model: classes, stages, the slowest ops, devices."""
        assert self.ops is not None
        if self.opened is not None:
            return self._fitted([*found, "", *op_lines(self.opened, height - 3)], width, height, KEYS_OPENED)
        slow = self._meant_ops()
        room = max(4, height - 10)  # heads, empty lines and keys are the rest
        devices = self._ordered_devices()[: max(1, room // 6)]
        classes = class_lines(self.ops, self.length_s, self.sort, self._meant_class, max(1, room // 4))
        stages = max(1, room - room // 4 - len(devices) - (len(classes) - 1))
        found += ["", *classes, "", *stage_lines(self.ops, self._meant_class, stages)]
        found += ["", *slow_lines(slow, max(1, room // 4))]
        found += ["", *ResultTable(DEVICES, [iostat.linux_cells(row) for row in devices]).lines()]
        return self._fitted(found, width, height, KEYS_OPS)

    def _meant_class(self, name: str) -> bool:
        """A filter that fits no class's name is not about classes."""
        assert self.ops is not None
        return self._meant(name) or not any(self._meant(known) for known in self.ops.classes)

    def _meant_ops(self) -> list[dict[str, Any]]:
        slowest = [] if self.ops is None else self.ops.slowest
        return [op for op in slowest if self._meant(io_steps.who(op)) or self._meant(op["class"] or "")]

    @staticmethod
    def _fitted(found: list[str], width: int, height: int, keys: str) -> list[str]:
        found = found[: max(0, height - 1)]
        found += [""] * (height - 1 - len(found))
        return [shown(line)[:width] for line in (*found, keys)][:height]

    def _who(self, name: str, cell: Cell) -> tuple[object, ...]:
        rate, size = cell.count / self.length_s, cell.size / self.length_s / 2**20
        return name, rate, size, cell.mean or 0, cell.most or 0

    def _device(self, io: dict[str, Any]) -> str:
        return "" if io["dev"] is None else device_name(self.names, io["dev"])

    def _meant_slow(self) -> list[dict[str, Any]]:
        kind = {"all": None, "reads": "read", "writes": "write"}[self.kind]
        return [
            io
            for io in self.slowest
            if kind in (None, io["kind"]) and (self._meant(io_steps.who(io)) or self._meant(self._device(io)))
        ]

    def _slow(self) -> list[tuple[object, ...]]:
        return [
            (f"{number} {io_steps.who(io)}", io["latency_ns"], str(io["rwbs"]), self._device(io), io["sector"],
             str(io["bytes"]))
            for number, io in enumerate(self._meant_slow(), 1)
        ]  # fmt: skip


class Top(Iostat):
    """Redrawn at the end of an interval and after a key. A frozen screen continues to count."""

    def __init__(self, args: argparse.Namespace, settled: Snapshot, under_way: Snapshot) -> None:
        super().__init__(args, settled, under_way)
        self.screen = Screen(sort=args.sort, by=args.by, length_s=self.grid.step_ns / 1e9)
        self._by, self._by_owner = args.by, Tally(self.grid)
        self._slowest: list[dict[str, Any]] = []
        self._ops = OpsTally(args, settled, self.grid) if args.model is not None else None
        self.look_every_s = 0.1
        self._terminal = Terminal()

    def take(self) -> Iterator[bytes]:
        """See View."""
        yield from super().take()
        if self._by != self.screen.by:
            self._by, self._by_owner = self.screen.by, Tally(self.grid)
        for batch in io_filter.batches(self.settled, self.rows, self._by):
            self._by_owner.add(batch)
        found = io_steps.with_steps(self.settled, list(io_log.ios(self.settled, self.rows, "latency", _SLOWEST)))
        self._slowest = slowest_of([*self._slowest, *found], self.grid.step_ns, _SLOWEST)
        if self._ops is not None:
            self._ops.take(self.settled)
        pressed = self._terminal.keys()
        for pressed_one in pressed:
            self.done |= self.screen.press(pressed_one)
        if pressed or self._shown == 0:
            self._draw()

    def again(self) -> None:
        """See View."""
        super().again()
        self._by_owner, self._slowest = Tally(self.grid), []
        if self._ops is not None:
            self._ops.again()

    def interval(self, index: int, cells: Cells, begins: bool) -> bytes:
        """See Intervals."""
        del begins
        devices = self.rows_in(index, cells)
        until_ns = self.grid.begin_ns(index + 1)
        owners = {name: cell for (name, _), cell in dict(self._by_owner.take(until_ns)).get(index, {}).items()}
        ended = [io for io in self._slowest if io["end_ns"] < until_ns - self.zero_ns]
        self._slowest = [io for io in self._slowest if io["end_ns"] >= until_ns - self.zero_ns]
        slowest = sorted(ended, key=lambda io: -io["latency_ns"])[:_SLOWEST]
        ops = None if self._ops is None else self._ops.close(index)
        if not self.screen.frozen:
            self.screen.ops = ops
            self.screen.devices, self.screen.slowest = devices, slowest
            self.screen.owners = owners if self._by == self.screen.by else {}
            self.screen.names = self.settled.device_names()
            self.screen.seconds = (until_ns - self.zero_ns) / 1e9
            self._draw()
        return b""

    def _draw(self) -> None:
        self.screen.says = self.says
        self._terminal.draw(self.screen.lines(*self._terminal.size()))

    def summary(self) -> bytes:
        """Restores the terminal; leaves no text."""
        self._terminal.close()
        return b""
