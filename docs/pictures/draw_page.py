# SPDX-License-Identifier: MIT
"""A picture of a page: `draw_page.py PAGE.html OUT.png [#STATE]`, after `./setup-env --browser`."""

from __future__ import annotations

import sys
from pathlib import Path

from PIL import Image

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from tests.lib.browser import Browser

page, out, *state = sys.argv[1:]
with Browser() as browser:
    browser.open(Path(page), "".join(state), width=1400).picture(Path(out))
Image.open(out).quantize(255, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(
    out, optimize=True
)  # a third of the size
