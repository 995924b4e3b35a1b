# SPDX-License-Identifier: MIT
"""What to record and how: the options of one recording, and what is checked before it begins."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from opline.capture.lttng import recipe
from opline.errors import OplineError, UsageError

if TYPE_CHECKING:
    from opline.model import Model


@dataclass(slots=True)
class Options:
    """What to record and how."""

    command: list[str]  # empty: what is attached to alone
    directory: Path
    model: Model | None = None
    model_argument: str = ""
    globs: list[str] = field(default_factory=list)
    preload: list[Path] = field(default_factory=list)
    block: bool = True
    states: bool = True
    chains: bool = True  # with states: who woke the threads, and what those did
    stack_ns: int | None = 200_000  # with chains: kernel stacks of waits of that length and more
    user_stacks: bool = False  # of those waits, where in its program the thread was, too
    calls: bool = True  # without a model: system calls, too
    tcp: bool = False  # positions in TCP streams, too
    sessiond: str = "auto"
    size_limit: int | None = None
    rotate_ns: int | None = None  # close a chunk of the trace each time
    keep: int | None = None  # and remove closed chunks beyond so many
    subbuf_bytes: int = recipe.SUBBUF_BYTES
    subbuf_count: int = recipe.SUBBUF_COUNT
    contexts: tuple[str, ...] = recipe.APP_CONTEXTS
    probes: bool = False  # place the model's probes that it has on request only
    programs: list[Path] = field(default_factory=list)  # files of programs that the model's probes name
    probe_budget: float | None = None  # what the hits of a model's probes may cost, a share of a processor's time
    pids: list[int] = field(default_factory=list)  # what runs already, to be recorded too
    comms: list[str] = field(default_factory=list)  # the same by name
    cgroups: list[str] = field(default_factory=list)  # the same by cgroup: GLOBs
    duration_s: float | None = None  # without a command: how long
    count_budget_s: float = 20.0
    any_name: bool = False  # nobody asked for this very directory


def check_subbuf(size: int, count: int) -> None:
    """LTTng wants powers of two and at least a page. Raises UsageError."""
    if size < 4096 or size & (size - 1):
        raise UsageError(f"Sub-buffer size {size}: it must be a power of two of at least 4096.")
    if count < 2 or count & (count - 1):
        raise UsageError(f"{count} sub-buffers: it must be a power of two of at least 2.")


def find_command(name: str) -> str:
    """Path of the program to run. Raises OplineError with the shell's exit codes: 127 not found, 126 not executable."""
    path = shutil.which(name)
    if path is not None:
        return path
    if os.sep in name and Path(name).exists():
        raise OplineError(f"{name}: cannot be executed", exit_code=126)
    raise OplineError(f"{name}: command not found", exit_code=127)
