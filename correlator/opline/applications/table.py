# SPDX-License-Identifier: MIT
"""The table of applications: which folders there are, their models, and their hooks.

A folder is an application if it is a package. A `NAME.toml` in it is a shipped model. A hook is a module with a name
that all applications share; docs/internals/design.md, "Applications", lists the hooks and who asks for each.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType
    from typing import Any

_FOLDER = os.path.dirname(__file__)


def names() -> list[str]:
    """The applications' folders, sorted."""
    return sorted(name for name in os.listdir(_FOLDER) if os.path.isfile(_in(name, "__init__.py")))


def models() -> dict[str, str]:
    """The path of each model that an application brings, by the model's name."""
    return {
        file.removesuffix(".toml"): _in(name, file)
        for name in names()
        for file in sorted(os.listdir(_in(name)))
        if file.endswith(".toml")
    }


def hooks(hook: str) -> Iterator[ModuleType]:
    """The module `hook` of each application that has one, imported."""
    for name in names():
        if os.path.isfile(_in(name, f"{hook}.py")):
            from importlib import import_module

            yield import_module(f"opline.applications.{name}.{hook}")


def relayed() -> dict[str, str]:
    """Providers of shims' collectors, and whose events each passes on: `{"ring": "shim"}` has `shim:EVENT` arrive as
    `ring:EVENT`, with `ktime` (its time), `vpid`, `vtid`, `procname` and `cpu` before its fields.
    """
    return {ring: shim for hook in hooks("providers") for ring, shim in hook.RELAYED.items()}


def timed() -> list[str]:
    """Providers of collectors whose events say their time (`ktime`), thread and CPU in fields of their own."""
    return [provider for hook in hooks("providers") for provider in hook.TIMED]


def providers() -> dict[str, Any]:
    """What the core is told of applications' collectors."""
    return {"relayed": relayed(), "timed": timed()}


def help_text(command: str) -> str:
    """What applications say in the help of a command."""
    return "\n".join(hook.HELP[command] for hook in hooks("texts") if command in hook.HELP)


def examples(command: str) -> str:
    """Applications' lines among the examples of a command."""
    return "".join(hook.EXAMPLES.get(command, "") for hook in hooks("texts"))


def questions() -> list[tuple[str, tuple[str, ...]]]:
    """What people ask about applications, each with the commands that answer it."""
    return [question for hook in hooks("texts") for question in hook.QUESTIONS]


def packages(name: str) -> list[str]:
    """The package ``name`` of each application that has one."""
    return [f"opline.applications.{own}.{name}" for own in names() if os.path.isfile(_in(own, name, "__init__.py"))]


def _in(*parts: str) -> str:
    return os.path.join(_FOLDER, *parts)
