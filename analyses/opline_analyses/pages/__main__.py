# SPDX-License-Identifier: MIT
"""`python -m opline_analyses.pages DIR` writes man pages and completion below DIR, as below a prefix's share/."""

from __future__ import annotations

import sys
from pathlib import Path

from opline_analyses.pages.completion import script
from opline_analyses.pages.man import pages


def files() -> dict[str, str]:
    """Each file's text by the path below share/."""
    found = {f"man/man1/{name}": text for name, text in pages().items()}
    found["bash-completion/completions/opline"] = script("bash")
    found["zsh/site-functions/_opline"] = script("zsh")
    return found


def main(folder: Path) -> None:
    """Writes the files."""
    for name, text in files().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
