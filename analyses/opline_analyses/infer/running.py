# SPDX-License-Identifier: MIT
"""A model of a running program (`opline model infer --pid`): records everything offered by the program for some
seconds.

No program is restarted; all probes and the recording are gone at the end. Takes a PID, gives the model's text.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from opline.capture.probes.everything import everything
from opline.capture.probes.offers import offers
from opline.capture.recorder import attach
from opline.capture.recorder.options import Options
from opline.capture.recorder.record import Recorder
from opline.capture.sources.probesource import program_of
from opline.errors import OplineError
from opline.model import load_model
from opline.paths import OWN_MODEL
from opline.scratch import scratch
from opline_analyses.infer import infer

_MOST_BYTES = 256 << 20


def infer_running(pid: int, functions: str | None, duration_s: float, budget: float, say: Callable[[str], None]) -> str:
    """The model's text. ``functions``: a glob of functions to probe as well. ``budget``: limit of the cost of hits, a
    share of a processor's time. Raises OplineError.
    """
    files = {path: None for one in attach.targets([pid], []) if (path := program_of(one)) is not None}
    if not files:
        raise OplineError(f"--pid {pid}: runs no program that could be read: a thread of the kernel?")
    if len({path.name for path in files}) < len(files):
        raise OplineError(f"--pid {pid}: several programs of one name: {', '.join(map(str, files))}; attach to one")
    found = [offers(path, functions) for path in files]
    with scratch("infer") as folder:
        model, run = Path(folder) / "model.toml", Path(folder) / "run"
        model.write_text(everything(found))
        options = Options(
            command=[], directory=run, model=load_model(model), model_argument=OWN_MODEL, programs=list(files),
            probe_budget=budget, pids=[pid], duration_s=duration_s, globs=_CALLS, states=False,
            count_budget_s=0, size_limit=_MOST_BYTES,
        )  # fmt: skip
        recorder = Recorder(options, say)
        code = recorder.run()
        if recorder.recording is None or code:
            raise OplineError(f"the trial recording of {pid} ended with status {code}", exit_code=code or 1)
        probes = recorder.recording.probes or {}
        for one in probes.get("refused", []):
            say(f"note: probe {one['event']} was removed, too hot: {one['hits_per_s']:,} hits a second")
        hits = probes.get("hits", 0)
        if not hits:
            raise OplineError(
                f"--pid {pid}: nothing passed the {len(options.model.probes if options.model else ())} probes in "
                f"{duration_s:g} s: was it at work? --duration for longer, --functions GLOB for other places"
            )
        return infer(run, next(iter(files)).name)


#: Events that the model may need to find an op's block requests.
_CALLS = [
    f"syscall_{half}_{name}" for name in ("pread64", "pwrite64", "fsync", "fdatasync") for half in ("entry", "exit")
]
