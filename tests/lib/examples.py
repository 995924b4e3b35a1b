# SPDX-License-Identifier: MIT
"""Programs of examples/, as modules."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType


def loaded(program: Path) -> ModuleType:
    """A program's module; it is no package's."""
    spec = importlib.util.spec_from_file_location(program.stem, program)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
