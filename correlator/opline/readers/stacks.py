# SPDX-License-Identifier: MIT
"""``stacks.json`` of a recording: the stacks that its wait records name (``sched:off_cpu``, fields ``stack`` and
``waker_stack``), with the kind of wait that each tells.

    {"schema": "opline-stacks", "version": 1,
     "ended": true,                              false: the recorder was killed, and later stacks are missing
     "threshold_ns": 200000,                     shorter waits have no stacks
     "lost": 0,                                  stacks that found no room
     "left_out": 0,                              waits without stacks: too many within a second
     "causes": [["journal commit", "journal"]],  kinds of waits: name and group, by number
     "ends": [["device done", "device"]],        how a wait ended
     "stacks": {"1": {"cause": 0, "end": null, "interrupt": false, "frames": ["io_schedule+0x1f", ...],
                      "user": ["pwrite64+0x17 [libc.so.6]", "append+0x5e [store]"]}}}

``cause`` is about a sleeper's stack, ``end`` and ``interrupt`` are about a waker's; null: no function tells. Frames are
innermost first, ``function+0xoffset [module]``, or an address. ``user``: those of the sleeper's program, where they
were wanted (capture/bpf/user_names.py): without a name ``[file+0xaddress]``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opline.errors import OplineError
from opline.readers.causes import VAGUE
from opline.shapes import parsed
from opline.values import Value

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

FILE_NAME = "stacks.json"
SCHEMA, VERSION = "opline-stacks", 1


class Stack(Value):
    """One stack; ``cause``, ``end``: numbers of the kinds in :class:`Stacks`."""

    cause: int | None
    end: int | None
    interrupt: bool
    frames: tuple[str, ...]
    user: tuple[str, ...] = ()


class Stacks(Value):
    """The stacks of a recording by their numbers; kinds are (name, group)."""

    ended: bool
    threshold_ns: int
    lost: int
    left_out: int
    causes: tuple[tuple[str, str], ...]
    ends: tuple[tuple[str, str], ...]
    of: dict[int, Stack]

    def plan(self) -> list[dict[str, Any]]:
        """What the core needs of the stacks that tell something (``StackSpec`` in model/plan.hpp)."""
        told: list[dict[str, Any]] = []
        for number, stack in sorted(self.of.items()):
            one: dict[str, Any] = {}
            if stack.cause is not None:
                name, group = self.causes[stack.cause]
                one |= {} if group == "unknown" else {"cause": name, "vague": name in VAGUE}
            if stack.end is not None and self.ends[stack.end][1] not in ("unknown", "device", "worker"):
                one["end"] = self.ends[stack.end][0]
            if one:
                told.append({"number": number} | one)
        return told


def read_stacks(path: Path) -> Stacks:
    """The file's stacks. Raises OplineError if it is damaged, or of another version."""
    try:
        found: Any = parsed(path.read_text(errors="replace"))
    except OSError as error:
        raise OplineError(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise OplineError(f"{path} is not JSON: {error}") from error
    try:
        if (found["schema"], found["version"]) != (SCHEMA, VERSION):
            raise ValueError
        causes, ends = (tuple((str(n), str(g)) for n, g in found[which]) for which in ("causes", "ends"))
        of = {int(number): _stack(one, len(causes), len(ends)) for number, one in found["stacks"].items()}
        ended = bool(found.get("ended", True))  # once it was only written at the end
        return Stacks(ended, int(found["threshold_ns"]), int(found["lost"]), int(found["left_out"]), causes, ends, of)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise OplineError(f"{path} is not a stacks.json of version {VERSION}: the recording is damaged.") from error


def _stack(one: Any, causes: int, ends: int) -> Stack:
    frames, user = (tuple(map(str, found)) for found in (one["frames"], one.get("user", ())))
    return Stack(_number(one["cause"], causes), _number(one["end"], ends), bool(one["interrupt"]), frames, user)


def _number(value: Any, count: int) -> int | None:
    if value is None:
        return None
    if not isinstance(value, int) or not 0 <= value < count:
        raise ValueError
    return value
