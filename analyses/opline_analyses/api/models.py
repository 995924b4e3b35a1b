# SPDX-License-Identifier: MIT
"""Op models: those that are shipped, new ones, and what is wrong with one. Plain functions of opline.model's models."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from opline.model import Model, Problem, check_text, load_model, read_text, shipped_models

if TYPE_CHECKING:
    from collections.abc import Callable


def shipped() -> list[Model]:
    """The models that come with opline."""
    return [load_model(name) for name in shipped_models()]


def load(name_or_path: str) -> Model:
    """A shipped model, or that of a file. Raises OplineError."""
    return load_model(name_or_path)


def new(program: Path) -> str:
    """A model to begin with, as TOML, from what a program's file offers. Raises OplineError."""
    from opline.capture.probes.offers import offers
    from opline.capture.probes.template import template

    return template(offers(program), program.name)


def infer(trace: Path) -> str:
    """A model to begin with, as TOML, from a trace. Raises OplineError."""
    from opline_analyses.infer import infer as infer_of

    return infer_of(trace)


def infer_running(
    pid: int, *, functions: str | None = None, duration_s: float, budget: float, tell: Callable[[str], None]
) -> str:
    """The same from a process and its descendants, probed for ``duration_s`` seconds. ``functions``: a glob of the
    functions to probe (None: USDT probes); ``budget``: what hits may cost, as a share of one processor's time;
    ``tell`` gets lines about what goes on. Raises OplineError.
    """
    from opline_analyses.infer.running import infer_running as infer_of

    return infer_of(pid, functions, duration_s, budget, tell)


def lint(name_or_path: str, trace: str | Path | None = None) -> tuple[str, list[Problem]]:
    """The path of a model, and what is wrong with the model, by line; of a model without errors also what a ``trace``
    tells. Raises OplineError.
    """
    from opline_analyses.runs.model_lint import problems_with

    text, name, path = read_text(name_or_path)
    model, problems = check_text(text, name, path)
    if trace is not None and not any(problem.severity == "error" for problem in problems):
        problems += problems_with(model, name_or_path, trace)
    return path, sorted(problems)
