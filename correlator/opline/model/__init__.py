# SPDX-License-Identifier: MIT
"""Op models: takes the name of a shipped model or the path of a TOML file, gives a ``Model`` and its plan.

    model = load_model("postgresql")
    core = Core(model.plan_json())

The language is described in docs/model.md.
"""

from __future__ import annotations

import os

from opline.applications import table
from opline.errors import OplineError
from opline.paths import plain

from .language import Model, Problem
from .lint import check
from .lint_trace import asked_fields, check_trace
from .period import PREFIX, period_text
from .probes import Probe, ProbeField, lttng_claims, probe_text
from .reader import parse

__all__ = [
    "Model",
    "ModelError",
    "Probe",
    "ProbeField",
    "Problem",
    "asked_fields",
    "check_text",
    "check_trace",
    "format_problem",
    "load_model",
    "lttng_claims",
    "probe_text",
    "read_text",
    "shipped_models",
]


_SHIPPED = os.path.join(os.path.dirname(os.path.dirname(__file__)), "models")


def _shipped() -> dict[str, str]:
    """The path of each shipped model by its name: models for any program, and models of applications."""
    files = (file for file in os.listdir(_SHIPPED) if file.endswith(".toml"))
    return {file.removesuffix(".toml"): os.path.join(_SHIPPED, file) for file in files} | table.models()


class ModelError(OplineError):
    """An unusable model: ``problems`` has every error, the message has one line for each."""

    def __init__(self, path: str, problems: list[Problem]) -> None:
        super().__init__("\n".join(format_problem(path, p) for p in problems))
        self.path = path
        self.problems = problems
        self.lines = [format_problem(path, p) for p in problems]


def shipped_models() -> list[str]:
    """The names of the shipped models, sorted."""
    return sorted(_shipped())


def load_model(name_or_path: str | os.PathLike[str]) -> Model:
    """A shipped model by its name, a user's model by the path of its file, or ``period:BEGIN,END[,KEY]``.

    A text that ends in ``.toml`` or has a slash is a path. Raises ``ModelError`` with all errors of the model.
    """
    text, name, path = read_text(str(name_or_path))
    model, problems = check_text(text, name, path, advice=False)
    if errors := [p for p in problems if p.severity == "error"]:
        raise ModelError(path, errors)
    return model


def check_text(text: str, name: str, path: str, advice: bool = True) -> tuple[Model, list[Problem]]:
    """Parse and check a model's text. Never raises: errors, warnings and notes come as problems, sorted by line.
    Without ``advice`` only errors are complete.
    """
    model, problems = parse(text, name, path)
    return model, sorted({*problems, *check(model, advice)})


def read_text(name_or_path: str) -> tuple[str, str, str]:
    """The TOML of a model, its name, and its place. Raises ``ModelError``."""
    if name_or_path.startswith(PREFIX):
        try:
            return period_text(name_or_path.removeprefix(PREFIX)), "period", "--period"
        except ValueError as error:
            raise ModelError("--period", [Problem(0, "error", str(error))]) from None
    if name_or_path.endswith(".toml") or "/" in name_or_path:
        path = plain(name_or_path)
    elif (shipped := _shipped().get(name_or_path)) is not None:
        path = shipped
    else:
        message = f"no such model: there are {', '.join(shipped_models())}, or give the path of a .toml file"
        raise ModelError(name_or_path, [Problem(0, "error", message)])
    try:
        with open(path, "rb") as file:
            text = file.read().decode()
    except OSError as error:
        raise ModelError(path, [Problem(0, "error", f"cannot be read: {error.strerror}")]) from None
    except ValueError:  # no UTF-8, or a path with a NUL
        raise ModelError(path, [Problem(0, "error", "is not a text in UTF-8")]) from None
    return text, os.path.splitext(os.path.basename(path))[0], path


def format_problem(path: str, problem: Problem) -> str:
    """``FILE:LINE: severity: message``, on one line for all names in the file."""
    where = f"{path}:{problem.line}" if problem.line else path
    line = f"{where}: {problem.severity}: {problem.message}"
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in line)
