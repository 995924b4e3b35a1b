# SPDX-License-Identifier: MIT
"""A picture of a page, or of one part of it: `draw_page.py PAGE.html OUT.png [#STATE [SELECTOR]]`, after
`./setup-env --browser`. ``SELECTOR``: of the element that the picture is of.
"""

from __future__ import annotations

import sys
from pathlib import Path

from PIL import Image

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from tests.lib.browser import Browser

page, out, *more = sys.argv[1:]
state, selector = [*more, "", ""][:2]
with Browser() as browser:
    opened = browser.open(Path(page), state, width=1400)
    if "h=1" in state:
        opened.wait("document.getElementById('threads').dataset.drawn")  # the lanes come a moment later
    opened.frame()
    opened.picture(Path(out))
    box = None
    if selector:
        box = opened.ask(
            f"""(() => {{ const b = document.querySelector({selector!r}).getBoundingClientRect();
                return [b.left - 12, b.top + scrollY - 6, b.right + 12, b.bottom + scrollY].map(Math.round); }})()"""
        )
with Image.open(out) as image:
    part = image.crop(box) if box else image
    part.quantize(255, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(out, optimize=True)  # a third of it
