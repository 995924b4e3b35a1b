# SPDX-License-Identifier: MIT
"""Man pages and completion are made of the parsers: every command, every option; roff and bash take them as they
are.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from opline_analyses.cli import GROUPS, parser_of
from opline_analyses.pages.__main__ import main
from opline_analyses.pages.man import escaped

COMMANDS = [name for _, group in GROUPS for name, _, _ in group]


@pytest.fixture(scope="module")
def share(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("share")
    main(folder)
    return folder


def printed(page: Path) -> str:
    """As man prints it, 200 wide, in one line; fails where roff complains."""
    command = ["groff", "-man", "-ww", "-k", "-Tutf8", "-P-cbou", "-rLL=200n", str(page)]
    done = subprocess.run(command, text=True, capture_output=True, check=True)
    assert done.stderr == "", page.name
    return " ".join(done.stdout.replace("\N{MINUS SIGN}", "-").split())


def test_every_command_has_a_page_with_its_options(share: Path) -> None:
    assert {page.name for page in (share / "man" / "man1").iterdir()} == {
        "opline.1", *(f"opline-{name}.1" for name in COMMANDS)
    }  # fmt: skip
    for name in COMMANDS:
        text = printed(share / "man" / "man1" / f"opline-{name}.1")
        for action in parser_of(name)._actions:
            for option in action.option_strings:
                assert option in text, f"{name} {option}"
        assert f"opline {name}" in text.split(" EXAMPLES ")[1]
    overview = printed(share / "man" / "man1" / "opline.1")
    assert all(f"opline-{name}(1)" in overview for name in COMMANDS)


def test_a_text_is_no_order_to_roff(tmp_path: Path) -> None:
    page = tmp_path / "page.1"
    text = ".so /etc/passwd\n'so /etc/passwd\n\\fBbold\\n `a' -b ^~"
    page.write_text(f'.TH "P" 1\n.nf\n{escaped(text)}\n.fi\n')
    assert " ".join(text.split()) in printed(page)


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("opline sta", {"stages"}),
        ("opline export --to pe", {"perfetto"}),
        ("opline stages --st", {"--states"}),
        ("opline model li", {"list", "lint"}),
    ],
)
def test_bash_completes(share: Path, words: str, offered: set[str]) -> None:
    typed = words.split()
    program = (
        f"source {share}/bash-completion/completions/opline;"
        f" COMP_WORDS=({words}); COMP_CWORD={len(typed) - 1}; _shtab_opline; echo ${{COMPREPLY[@]}}"
    )
    done = subprocess.run(["bash", "-c", program], text=True, capture_output=True, check=False)
    assert set(done.stdout.split()) == offered, done.stderr


def test_bash_completes_the_files_of_a_run(share: Path, tmp_path: Path) -> None:
    (tmp_path / "run1").mkdir()
    program = (
        f"cd {tmp_path}; source {share}/bash-completion/completions/opline;"
        " COMP_WORDS=(opline stages ru); COMP_CWORD=2; _shtab_opline; echo ${COMPREPLY[@]}"
    )
    done = subprocess.run(["bash", "-c", program], text=True, capture_output=True, check=False)
    assert done.stdout.split() == ["run1"], done.stderr


def test_zsh_has_every_command(share: Path) -> None:
    text = (share / "zsh" / "site-functions" / "_opline").read_text()
    assert text.startswith("#compdef opline")
    assert all(f"\n    {name}:" in text for name in COMMANDS)
