# SPDX-License-Identifier: MIT
"""Which formats there are, and the module that writes each."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, NamedTuple

from opline.errors import OplineError
from opline_analyses.base.text import count_of

if TYPE_CHECKING:
    from pathlib import Path
    from typing import BinaryIO

    from opline_analyses.runs.run import Run
    from opline_analyses.runs.selection import Selection
    from opline_analyses.why.sets import Rule

FORMATS = (
    "perfetto", "chrome", "otlp", "otlp-json", "jaeger", "zipkin", "speedscope", "folded", "openmetrics", "arrow",
    "ctf", "duckdb", "fio-iolog", "lami", "hgrm", "hlog", "waits-folded", "waits-speedscope", "pprof",
)  # fmt: skip
BOTH = ("waits-folded", "waits-speedscope", "pprof")  # have room for slow ops beside typical ones
FOLDERS = ("ctf",)
MEDIA = {"otlp": "application/x-protobuf", "otlp-json": "application/json"}  # what collectors take
# Of the extra `export` of setup.cfg, by the module that is missing without them.
PACKAGES = {"perfetto": "perfetto", "opentelemetry": "opentelemetry-proto", "google": "opentelemetry-proto"}


class Exported(NamedTuple):
    """What was written: how many ops, or what else the format counts; and how many spans a collector rejected."""

    number: int
    what: str
    rejected: int = 0
    reason: str = ""

    @property
    def counted(self) -> str:
        """For people."""
        return f"{self.number} ops" if self.what == "op" else count_of(self.number, self.what)


def writer(to: str) -> Any:
    """The module of a format. Raises OplineError where its package is missing."""
    try:
        return importlib.import_module(f"opline_analyses.export.{to.replace('-', '_')}")
    except ModuleNotFoundError as error:
        package = PACKAGES.get((error.name or "").partition(".")[0])
        if package is None:
            raise
        raise OplineError(f"--to {to} needs the Python package {package}: pip install 'opline[export]'") from None


def written(
    run: Run,
    which: Selection,
    to: str,
    out: BinaryIO | None,
    folder: Path | None,
    send: str | None,
    more: tuple[Rule, ...],
) -> Exported:
    """Writes the selected ops where one of the three places says. Raises OplineError."""
    module = writer(to)
    what = getattr(module, "COUNTED", "op")
    if send is not None:
        from opline_analyses.base.post import Collector  # 20 ms to import: only where it is asked for

        target = Collector(send, MEDIA[to])
        number = module.write(run, which, target)
        return Exported(number, what, target.rejected, target.reason)
    number = module.write_folder(run, which, folder) if folder is not None else module.write(run, which, out, *more)
    return Exported(number, what)
