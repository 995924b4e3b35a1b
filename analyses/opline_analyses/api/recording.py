# SPDX-License-Identifier: MIT
"""Recording a command, or what runs: one recording, several in turn, or pairs with and without. Machines that only
record have this, and no native core.
"""

from __future__ import annotations

import contextlib
import json
import math
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from opline.capture.lttng import recipe
from opline.capture.recorder.options import Options
from opline.capture.recorder.record import INCOMPLETE, Recorder
from opline.capture.recorder.summary import summary_lines
from opline.capture.sources import preload
from opline.errors import OplineError, UsageError
from opline.paths import OWN_MODEL, recorded_model
from opline.talk import talk
from opline_analyses.base.given import Given
from opline_analyses.base.series import Turn, closing_lines, command_ns, make_directory, plan, turns_of_pairs

if TYPE_CHECKING:
    from opline.capture.directory.recording import Recording
    from opline.model import Model


class Wish(Given):
    """What is to be recorded, and how, as the options of `opline record` say it."""

    command: list[str]
    output: Path | None = None
    model: str | None = None
    events: Sequence[str] = ()
    preload: list[str] | None = None
    no_block: bool = False
    no_states: bool = False
    no_chains: bool = False
    stacks: int = 200
    user_stacks: bool = False
    no_calls: bool = False
    tcp: bool = False
    size_limit: int | None = None
    rotate: float | None = None
    keep: int | float | None = None
    repeat: int | None = None
    against: str | None = None
    measure_overhead: bool = False
    figure: Sequence[str] = ()
    quiet: bool = False
    correlate: bool = False
    sessiond: str = "auto"
    subbuf_size: int = recipe.SUBBUF_BYTES
    subbufs: int = recipe.SUBBUF_COUNT
    context: Sequence[str] = ()
    probes: bool = False
    program: Sequence[Path] = ()
    probe_budget: float | None = None
    pid: Sequence[int] = ()
    comm: Sequence[str] = ()
    cgroup: Sequence[str] = ()
    duration: float | None = None


def _say(line: str) -> None:
    with contextlib.suppress(OSError):  # nobody reads standard error any more: the recording matters more
        talk(line)
        sys.stderr.flush()


def record(wish: Wish) -> int:
    """Records; the command's exit status. Raises OplineError."""
    command = wish.command
    attached = bool(wish.pid or wish.comm or wish.cgroup)
    if not command and not attached:
        raise UsageError(
            "No command to record: opline record [options] -- COMMAND [ARGUMENT ...], "
            "or --pid N, --comm NAME, --cgroup GLOB. `opline record -- sleep 10` records 10 s of the whole machine."
        )
    if wish.duration is not None and (command or not wish.duration > 0):
        raise UsageError("--duration is a number of seconds above 0, for --pid, --comm or --cgroup without a command.")
    _check_chunks(wish)
    if wish.correlate and wish.model is None:
        raise UsageError("--correlate needs --model M.")
    model = None
    if wish.model is not None:
        from opline.model import load_model, shipped_models

        model = load_model(wish.model)
        if wish.preload is None and model.preload and wish.model not in shipped_models():
            libraries = ", ".join(model.preload)
            _say(f"note: the model {wish.model} loads {libraries} into the command; --preload none prevents it")
        placed = model.placed_probes(wish.probes)
        if placed and wish.model not in shipped_models():
            programs = ", ".join(dict.fromkeys(probe.program or "the kernel" for probe in placed))
            _say(f"note: the model {wish.model} places probes in {programs}")
    if wish.probes and not (model and model.probes):
        raise UsageError("--probes needs a model with [probes].")
    if wish.probe_budget is not None and not (model and model.placed_probes(wish.probes)):
        on_request = "; this model needs --probes, too" if model and model.probes else ""
        raise UsageError(f"--probe-budget needs a model with [probes]{on_request}.")
    _check_collector(wish)
    directory = wish.output or Path(time.strftime("opline-%Y%m%d-%H%M%S"))
    if wish.figure and not wish.measure_overhead:
        raise UsageError("--figure needs --measure-overhead.")
    if wish.measure_overhead:
        return _measure_overhead(wish, command, model, directory)
    if wish.repeat is None:
        if wish.against is not None:
            raise UsageError("--against needs --repeat N, the number of recordings of each command.")
        return _record(wish, command, model, directory)
    if wish.against is not None and not command:
        raise UsageError("--against compares two commands: give the second command after --.")
    return _repeat(wish, command, model, directory)


def _check_collector(wish: Wish) -> None:
    """Raises UsageError where something is wanted of opline's collector that other options leave out."""
    if wish.user_stacks and (wish.no_block or wish.no_states or wish.no_chains):
        raise UsageError("--user-stacks needs what --no-block, --no-states and --no-chains leave out.")
    if wish.tcp and wish.no_block:
        raise UsageError("--tcp needs opline's collector, which --no-block leaves out.")


def _goes_on(code: int, recording: Path) -> bool:
    """Does a series go on after this one? Also where the recording lacks something: opline has said what, and the
    others may lack the same. A command may have that exit status, too.
    """
    if code != INCOMPLETE:
        return code == 0
    note = recording / "recording.json"
    return note.exists() and json.loads(note.read_text())["state"] == "incomplete"


def _repeat(wish: Wish, command: list[str], model: Model | None, directory: Path) -> int:
    """All recordings of --repeat, in a directory; ends with the first that fails. The exit status."""
    turns = plan(command, wish.against, wish.repeat or 1)
    make_directory(directory)
    status = 0
    for n, turn in enumerate(turns, 1):
        place = directory / turn.name
        _say(f"recording {n} of {len(turns)}: {place}")
        code = _record(wish, turn.command, model, place)
        if not _goes_on(code, place):
            _say(f"{place} ended with status {code}: opline does not record the other {len(turns) - n}")
            return code
        status = status or code
    for line in closing_lines(directory, wish.against is not None):
        _say(line)
    return status


def _measure_overhead(wish: Wish, command: list[str], model: Model | None, directory: Path) -> int:
    """Pairs of one recorded and one plain run, either first by lot; one plain run before is not counted. The status."""
    from opline_analyses.compare import overhead

    if not command or wish.against is not None or wish.repeat == 1:
        raise UsageError("--measure-overhead needs one command, and at least two rounds (--repeat N).")
    try:
        figures = overhead.figures_of(wish.figure)
    except ValueError as error:
        raise UsageError(f"--figure {error}.") from error
    count = wish.repeat or overhead.ROUNDS
    make_directory(directory)
    rounds: list[overhead.Round] = []
    status = 0
    turns = [Turn("warm-up", command), *turns_of_pairs("plain", "run", command, command, count)]
    for n, turn in enumerate(turns):
        place = directory / turn.name
        recorded = turn.name.startswith("run")
        _say(f"round {n} of {len(turns) - 1}, {'recorded' if recorded else 'not recorded'}: {place}")
        if recorded:
            code, time_ns = _record(wish, command, model, place, quiet=True), command_ns(place)
        else:
            code, time_ns = overhead.run_plain(command, place)
        if not _goes_on(code, place):
            _say(f"{place} ended with status {code}: opline does not run the other {len(turns) - 1 - n}")
            return code
        status = status or code
        if n:
            rounds.append(overhead.round_of(place, recorded, time_ns, figures))
        elif missing := [one.pattern.pattern for one in figures if one.of(place) is None]:
            raise OplineError(
                f"the output of the command in {place} has no number that matches --figure {missing[0]!r}"
            )
    (directory / overhead.FILE).write_text(json.dumps(overhead.document(rounds), indent=1) + "\n")
    for line in overhead.lines(rounds):
        _say(line)
    return status


def _record(wish: Wish, command: list[str], model: Model | None, directory: Path, quiet: bool = False) -> int:
    """One recording; the command's exit status. ``quiet``: what it came to is not looked at."""
    recorder = Recorder(
        Options(
            command=command,
            directory=directory,
            any_name=wish.output is None and wish.repeat is None and not wish.measure_overhead,
            model=model,
            model_argument=_argument(wish.model),
            globs=[glob for text in wish.events for glob in text.split(",") if glob],
            preload=preload.find(_libraries(wish.preload, model.preload if model else ())),
            block=not wish.no_block,
            states=not wish.no_states,
            chains=not wish.no_chains,
            stack_ns=wish.stacks * 1000,
            user_stacks=wish.user_stacks,
            calls=not wish.no_calls,
            tcp=wish.tcp,
            sessiond=wish.sessiond,
            size_limit=wish.size_limit,
            rotate_ns=None if wish.rotate is None else round(wish.rotate * 1e9),
            keep=_chunks_kept(wish),
            subbuf_bytes=wish.subbuf_size,
            subbuf_count=wish.subbufs,
            probes=wish.probes,
            programs=[path.resolve() for path in wish.program],
            probe_budget=wish.probe_budget,
            pids=[*wish.pid],
            comms=[*wish.comm],
            cgroups=[*wish.cgroup],
            duration_s=wish.duration,
            contexts=tuple(dict.fromkeys((*recipe.APP_CONTEXTS, *wish.context))),
        ),
        _say,
    )
    code = recorder.run()
    if recorder.recording is None or recorder.recording.state == "recording":
        return code  # interrupted before the command could start: nothing is left
    shown = directory.with_name(recorder.directory.name)
    events = recorder.recording.event_count()
    for line in summary_lines(recorder.recording, shown):
        if not wish.quiet or line.startswith("warning: "):
            _say(line)
    if model is None and events != 0:
        model = _choose_model(recorder, quiet or wish.quiet)
    if events != 0 and not (quiet or wish.quiet):
        for line in _first_look(shown, model, recorder.recording, with_next=wish.repeat is None):
            _say(line)
    if wish.correlate and events != 0:
        from opline.store.run import open_or_correlate

        with open_or_correlate(shown):
            pass
    return code


def _check_chunks(wish: Wish) -> None:
    if wish.rotate is not None and not wish.rotate >= 1:
        raise UsageError("--rotate needs a time of at least 1 s.")
    if wish.keep is not None and (wish.rotate is None or not wish.keep > 0):
        raise UsageError("--keep needs --rotate T, and a number of chunks (10) or a time (1h) above 0.")


def _chunks_kept(wish: Wish) -> int | None:
    """How many closed chunks have the time that is to be kept, if not their number is given."""
    if isinstance(wish.keep, float) and wish.rotate is not None:
        return max(1, math.ceil(wish.keep / wish.rotate))
    return None if wish.keep is None else int(wish.keep)


def _choose_model(recorder: Recorder, quiet: bool) -> Model | None:
    """The model of what was recorded without one, noted in the manifest; None where nothing says which."""
    note = recorder.recording
    assert note is not None
    try:
        from opline.folder import Folder
        from opline.model import load_model
        from opline_analyses.client.model_choice import chosen_model

        choice = chosen_model(recorder.directory, note)
        if choice is None:
            return None
        note.model = choice.note
        with Folder(recorder.directory) as folder:
            note.write(folder)
        model = load_model(recorded_model(recorder.directory, choice.note.argument))
    except (ImportError, OSError) as error:
        _say(f"note: opline could not choose a model ({error}): give --model M to later commands")
        return None
    if not quiet:
        _say(choice.why)
    return model


def _first_look(directory: Path, model: Model | None, note: Recording, *, with_next: bool) -> list[str]:
    """What the recording came to and what to type next. A machine that only records has nothing to count ops with."""
    try:
        from opline_analyses.client.glance import Glance, glance, next_lines

        found = glance(directory, model, note.event_count()) if model else Glance([], False)
        block = note.block_source != "none"
        return [*found.lines, *(next_lines(directory, found.ops, block) if with_next else ())]
    except ImportError as error:
        return [f"ops are not counted on this machine, which only records ({error}): take the directory to another one"]


def _libraries(given: list[str] | None, of_model: Sequence[str]) -> Sequence[str]:
    """What to preload: what is asked for, else what the model says. ``none`` takes back what stands before it."""
    names = list(of_model if given is None else given)
    return names[len(names) - names[::-1].index("none") :] if "none" in names else names


def _argument(model: str | None) -> str:
    """What finds the model again from anywhere: a shipped model's name, or the recording's copy of the file."""
    if model is None:
        return ""
    # As in load_model(): a file named like a shipped model (./demo) is not meant.
    is_file = (model.endswith(".toml") or "/" in model) and not model.startswith("period:")
    return OWN_MODEL if is_file else model
