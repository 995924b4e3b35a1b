# SPDX-License-Identifier: MIT
"""Which recordings are meant: the hosts of a cluster, the recordings in a folder, one alone; and what came of each."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opline.errors import OplineError, UsageError
from opline.paths import is_recording
from opline.scratch import scratch
from opline.store.underway import has_run
from opline.talk import talk
from opline.values import Value
from opline_analyses.engine.interface import Failure, Item, engine_of
from opline_analyses.hosts.cluster import is_cluster, read_cluster
from opline_analyses.runs.notices import tell_gaps

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

INCOMPLETE = 3  # exit status: a recording is missing in the sums


class Answers(Value):
    """The summaries of the runs that have one, in the order in which the runs were named, and the number of the path
    that named each; the names of the others.
    """

    names: list[str]
    summaries: list[Mapping[str, Any]]
    arguments: list[int]
    missing: list[str]

    def tell_gaps(self) -> None:
        """What the recorders knew to be missing, on standard error, after the figures."""
        for name, summary in zip(self.names, self.summaries, strict=True):
            tell_gaps(summary["gaps"], f"{name}: ")


def _in(path: Path, options: Mapping[str, Any]) -> list[Item]:
    """The recordings that a path means. Raises OplineError."""
    if not path.exists():
        raise UsageError(f"{path} does not exist.")
    if is_cluster(path):
        hosts = read_cluster(path)["hosts"]
        places = ((h["name"], path / h["run"] if "run" in h else Path(h["path"]), h.get("why")) for h in hosts)
        return [Item(name, str(place.absolute()), options, name, why) for name, place, why in places]
    if not path.is_dir() or has_run(path) or is_recording(path) or (path / "metadata").exists():
        return [Item(path.name, str(path.absolute()), options)]
    inside = sorted(one for one in path.iterdir() if has_run(one) or is_recording(one))
    return [Item(one.name, str(one.absolute()), options) for one in inside or [path]]


def items_of(paths: Sequence[str], options: Mapping[str, Any]) -> list[Item]:
    """An item per recording: a name of two is followed by a number. Raises OplineError."""
    found = [(number, one) for number, path in enumerate(paths) for one in _in(Path(path), options)]
    if len({os.path.realpath(one.path) for _, one in found}) < len(found):
        raise UsageError("A recording is named twice: it would count twice.")
    items: list[Item] = []
    for argument, one in found:
        taken = {item.name for item in items}
        number, unique = 2, one.name
        while unique in taken:
            unique, number = f"{one.name}-{number}", number + 1
        items.append(one.replaced(name=unique, argument=argument))
    return items


def ask(engine: str, task: str, paths: Sequence[str], options: Mapping[str, Any]) -> Answers:
    """The task's summaries of all recordings; what is missing is on standard error, by name. Raises OplineError where
    no recording has one.
    """
    items = items_of(paths, options)
    found: dict[str, Path | Failure] = {item.name: Failure(item.absent) for item in items if item.absent}
    with scratch("engine") as folder:
        running = engine_of(engine, Path(folder))
        try:
            for item, result in running.map(task, [item for item in items if item.absent is None]):
                found[item.name] = result
        finally:
            running.close()
        answers = Answers([], [], [], [])
        for item in items:
            result = found.get(item.name, Failure("the engine gave no answer"))
            if isinstance(result, Failure):
                for line in result.why.splitlines():
                    talk(f"{item.name}: {line}")
                answers.missing.append(item.name)
                continue
            document = json.loads(result.read_text())
            for line in document["said"]:
                talk(f"{item.name}: {line}")
            answers.names.append(item.name)
            answers.arguments.append(item.argument)
            answers.summaries.append(document["summary"])
    if not answers.summaries:
        raise OplineError(f"None of {len(items)} recordings has an answer: the lines above say why.", INCOMPLETE)
    if answers.missing:
        count = f"{len(answers.missing)} of {len(items)} recordings"
        talk(f"{count} are not in the figures below: {', '.join(answers.missing)}.")
    return answers
