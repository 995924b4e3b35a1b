# SPDX-License-Identifier: MIT
"""The tests' own browser leaves nothing behind: no process, and no profile that its services write after its end."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from tests.lib.browser import PROGRAM, Browser, end_group


@pytest.mark.skipif(PROGRAM is None, reason="no Chromium here: ./check --browser installs it")
def test_no_profile_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    page = tmp_path / "page.html"
    page.write_text("<html data-ready=1><script>sessionStorage.a = 1</script></html>")
    with Browser() as browser:
        browser.open(page)
        group = browser.pid
        assert [path.name for path in tmp_path.iterdir() if path.name.startswith("oplbrowser-")]
    assert list(tmp_path.iterdir()) == [page]
    with pytest.raises(ProcessLookupError):
        os.killpg(group, 0)


def test_what_outlives_the_leader_is_ended() -> None:
    code = "import subprocess; print(subprocess.Popen(['sleep', '600'], stdout=subprocess.DEVNULL).pid)"
    leader = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, start_new_session=True)
    said, _ = leader.communicate()
    child = int(said)
    os.kill(child, 0)
    end_group(leader.pid)
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)
