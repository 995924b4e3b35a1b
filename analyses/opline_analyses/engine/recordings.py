# SPDX-License-Identifier: MIT
"""The recordings of a path: the hosts of a cluster, the recordings in a folder, a single recording; and each
recording's answer.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opline.errors import OplineError, UsageError
from opline.paths import is_recording
from opline.scratch import scratch
from opline.store.underway import has_run
from opline.talk import talk
from opline.values import Value
from opline_analyses.engine.interface import Failure, Item, engine_of
from opline_analyses.runs.cluster import is_cluster, read_cluster
from opline_analyses.runs.notices import tell_gaps

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opline_analyses.engine.interface import Engine

INCOMPLETE = 3  # exit status: a recording is missing in the sums


class Answers(Value):
    """The summaries of the answering runs, in the order of the user's paths, with the worker's path and the number of
    the user's path; the names of the others.
    """

    names: list[str]
    paths: list[str]
    summaries: list[Mapping[str, Any]]
    arguments: list[int]
    missing: list[str]

    def tell_gaps(self) -> None:
        """Reports gaps known to the recorders, on standard error, after the figures."""
        for name, summary in zip(self.names, self.summaries, strict=True):
            tell_gaps(summary["gaps"], f"{name}: ")


def _in(path: Path, options: Mapping[str, Any]) -> list[Item]:
    """The recordings of a path. Raises OplineError."""
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


class FewerError(Exception):
    """A recording with an earlier answer has none to a later question: the whole question begins again without this
    recording.
    """


class Asking:
    """Recordings and their engine, for answers with several questions."""

    def __init__(self, running: Engine, items: Sequence[Item]) -> None:
        self._running, self._items, self._count = running, list(items), len(items)
        self._told: set[str] = set()
        self.missing: list[str] = []

    def first(self, task: str) -> Answers:
        """The task's summaries of all recordings; losses go to standard error, by name. Raises OplineError without any
        summary.
        """
        documents = self._documents(task, self._items)
        for document, item in zip(documents, self._items, strict=True):
            for line in document["said"] if item.name not in self._told else ():
                talk(f"{item.name}: {line}")
            self._told.add(item.name)
        if self.missing:
            count = f"{len(self.missing)} of {self._count} recordings"
            talk(f"{count} are not in the figures below: {', '.join(self.missing)}.")
        return Answers(
            [item.name for item in self._items],
            [item.path for item in self._items],
            [document["summary"] for document in documents],
            [item.argument for item in self._items],
            self.missing,
        )

    def more(self, task: str, options: Sequence[Mapping[str, Any]] | Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """The summaries of another task, of the recordings with an answer so far, in the same order. ``options`` are
        added; a sequence has the options of each recording. Raises FewerError if a recording has no answer.
        """
        each = [options] * len(self._items) if isinstance(options, Mapping) else options
        asked = [item.replaced(options={**item.options, **one}) for item, one in zip(self._items, each, strict=True)]
        before = len(self._items)
        documents = self._documents(task, asked)
        if len(documents) < before:
            raise FewerError
        return [document["summary"] for document in documents]

    def _documents(self, task: str, items: Sequence[Item]) -> list[Mapping[str, Any]]:
        """The answers of the recordings; recordings without an answer are named, and no longer asked."""
        found: dict[str, Path | Failure] = {item.name: Failure(item.absent) for item in items if item.absent}
        for item, result in self._running.map(task, [item for item in items if item.absent is None]):
            found[item.name] = result
        documents, kept = [], []
        for item in self._items:
            result = found.get(item.name, Failure("the engine gave no answer"))
            if isinstance(result, Failure):
                for line in result.why.splitlines():
                    talk(f"{item.name}: {line}")
                self.missing.append(item.name)
                continue
            documents.append(json.loads(result.read_text()))
            kept.append(item)
        self._items = kept
        if not kept:
            raise OplineError(f"None of {self._count} recordings has an answer: the lines above say why.", INCOMPLETE)
        return documents


@contextmanager
def asking(engine: str, paths: Sequence[str], options: Mapping[str, Any]) -> Iterator[Asking]:
    """The questioner of the paths' recordings. Raises OplineError."""
    items = items_of(paths, options)
    with scratch("engine") as folder:
        running = engine_of(engine, Path(folder))
        try:
            yield Asking(running, items)
        finally:
            running.close()


def ask(engine: str, task: str, paths: Sequence[str], options: Mapping[str, Any]) -> Answers:
    """One question to all recordings. Raises OplineError without any answer."""
    with asking(engine, paths, options) as found:
        return found.first(task)
