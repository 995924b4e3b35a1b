# SPDX-License-Identifier: MIT
"""What a run in Python writes: the files of `opline csv`, `export`, `report`, `plot` and `pack`; a list of ops."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from opline.errors import UsageError
from opline_analyses.api import files, ops
from opline_analyses.api.run_tables import Tables
from opline_analyses.base.files import complete_file, complete_folder
from opline_analyses.export.formats import BOTH, FOLDERS, FORMATS
from opline_analyses.runs.run import readable
from opline_analyses.runs.selection import OpFilters

if TYPE_CHECKING:
    from opline_analyses.base.given import Option
    from opline_analyses.export.formats import Exported
    from opline_analyses.ops.listing import OpListing


class Files(Tables):
    """A file appears when it is complete. All methods raise OplineError."""

    def op_list(
        self,
        *,
        style: str = "default",
        states: bool = False,
        behind: bool = False,
        unfold: bool = False,
        **filters: Option,
    ) -> OpListing:
        """`opline ops`: whole ops, to iterate over; ``text()`` and ``records()`` are what the command prints."""
        with readable(self._run):
            return ops.listed(
                self._run, OpFilters.from_options(filters), style=style, states=states, behind=behind, unfold=unfold
            )

    def csv(
        self,
        path: str | Path,
        *,
        stages: bool = False,
        incomplete: bool = False,
        client_log: str | Path | None = None,
        **filters: Option,
    ) -> None:
        """`opline csv`: a row per op, or with ``stages`` per interval; ``incomplete`` is its --all."""
        log = None if client_log is None else Path(client_log)
        chosen = OpFilters.from_options(filters)
        with (
            readable(self._run),
            files.csv(self._run, chosen, incomplete=incomplete, stages=stages, client_log=log) as rows,
            complete_file(Path(path)) as out,
        ):
            rows.write(out)

    def export(self, path: str | Path, to: str, *, against: str | None = None, **filters: Option) -> Exported:
        """`opline export --to`: how many ops were written. ``against="typical"``: the slow ops beside typical ones,
        where the format has both; ``slowest`` and ``latency`` say which ops are slow then.
        """
        if to not in FORMATS:
            raise UsageError(f"There is no format {to}. There are: {', '.join(FORMATS)}.")
        if against is not None and (against != "typical" or to not in BOTH):
            raise UsageError(f'against="typical" is for {", ".join(BOTH)}.')
        slow = None
        if against is not None:
            latency = filters.pop("latency", None)
            slow = str(filters.pop("slowest", None) or "1%"), None if latency is None else str(latency)
        chosen = OpFilters.from_options(filters)
        files.check_format(to)
        with readable(self._run):
            if to in FOLDERS:
                with complete_folder(Path(path)) as folder:
                    return files.export(self._run, chosen, to=to, folder=folder)
            with complete_file(Path(path)) as out:
                return files.export(self._run, chosen, to=to, out=out, slow=slow)

    def report(
        self,
        path: str | Path,
        other: Files | None = None,
        *,
        title: str | None = None,
        tainted: bool = False,
        **filters: Option,
    ) -> None:
        """`opline report`: the run as one HTML page, or this run and an ``other`` one side by side."""
        runs, chosen, parts = [self, *([other] if other is not None else [])], OpFilters.from_options(filters), []
        for one in runs:
            with readable(one._run):
                parts.append(files.part(one._run, chosen, tainted=tainted, of=len(runs)))
        written = files.report(parts, title=title or " against ".join(one._name for one in runs))
        with complete_file(Path(path)) as out:
            out.write(written)

    def plot(
        self,
        path: str | Path,
        *others: Files,
        op: int | None = None,
        cdf: bool = False,
        stages: bool = False,
        title: str | None = None,
        dpi: int = 110,
        tainted: bool = False,
        **filters: Option,
    ) -> None:
        """`opline plot`: every op over time; one ``op``; with ``cdf`` or ``stages`` distributions, also of ``others``.
        The name of the file decides the format: .png, .svg or .pdf.
        """
        chosen = OpFilters.from_options(filters)
        if others and not (cdf or stages):
            raise UsageError("Other runs need cdf=True or stages=True.")
        files.check_picture(Path(path))
        title = title or ", ".join(one._name for one in (self, *others))
        with readable(self._run):
            if op is not None:
                figure = files.plot_op(self._run, op, title=title)
            elif cdf or stages:
                series = [files.plotted(r._run, chosen, name=r._name, tainted=tainted) for r in (self, *others)]
                figure = files.plot_distributions(series, title=title, stages=stages)
            else:
                figure = files.plot(self._run, chosen, title=title, tainted=tainted)
        files.save(figure, Path(path), dpi=dpi)

    def pack(self, path: str | Path, *, anonymous: bool = False) -> None:
        """`opline pack`: the run as one file."""
        with readable(self._run), complete_file(Path(path)) as out:
            files.pack(self._run, out, anonymous=anonymous)

    @property
    def _name(self) -> str:
        return self.path.resolve().name
