# SPDX-License-Identifier: MIT
"""speedscope itself, from its npm package, opens what `opline export --to speedscope` writes.

As its command line does: a script with the file calls the page's loader. Skipped without a browser, or without the
package: `./setup-env --browser` installs both where npm is at hand.
"""

from __future__ import annotations

import base64
import time
from pathlib import Path

import pytest
from tests.lib.browser import PROGRAM, Browser
from tests.lib.recorded import RunOf
from tests.page.test_report import hostile_run

from opline_analyses.cli import main

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / ".venv" / "speedscope" / "package" / "dist" / "release" / "index.html"
PATIENCE = 60

pytestmark = pytest.mark.skipif(
    PROGRAM is None or not PAGE.exists(), reason="no Chromium or no speedscope here: ./setup-env --browser"
)


def test_speedscope_opens_a_run(run_of: RunOf, tmp_path: Path) -> None:
    demo = run_of("demo-qd4").path
    for run, profiles in ((demo, 2), (hostile_run(tmp_path / "hostile"), 1)):
        file = tmp_path / "out.json"
        assert main(["export", str(run), "--to", "speedscope", "-o", str(file)]) == 0
        script = tmp_path / "load.js"
        data = base64.b64encode(file.read_bytes()).decode()
        script.write_text(f"speedscope.loadFileFromBase64('out.json', '{data}')")
        with Browser() as browser:
            page = browser.open(PAGE, f"#localProfilePath={script}", ready="true")
            until = time.monotonic() + PATIENCE
            while not (title := page.ask("document.title")).endswith(" - speedscope"):
                assert time.monotonic() < until, (title, page.errors)
                time.sleep(0.1)
            text = page.ask("document.body.innerText")
        assert title == f"{run.name} - speedscope"
        assert "Left Heavy" in text
        assert profiles == 1 or f"read (1/{profiles})" in text
        said = [e for e in page.errors if "exception" in e.lower() or '"type": "error"' in e]  # WebGL warns
        assert said == []
