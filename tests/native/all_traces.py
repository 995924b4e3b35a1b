# SPDX-License-Identifier: MIT
"""Correlates every recorded trace into a run, with as many threads as OPLINE_THREADS says: for the thread sanitizer."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.lib.recorded import NAMES, model_of, unpack

from opline import _core
from opline.correlation import correlate


def main() -> None:
    print(_core.__file__)
    for name in NAMES:
        with tempfile.TemporaryDirectory() as folder:
            correlate(unpack(name, Path(folder)), model_of(name), Path(folder) / "run", reader="native", progress=False)
        print(name, flush=True)


if __name__ == "__main__":
    main()
