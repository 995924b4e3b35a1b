# SPDX-License-Identifier: MIT
"""Man pages and completion are made of the parsers: every command, every option; roff and bash take them as they
are.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.lib.recorded import RunOf

from opline_analyses import cli
from opline_analyses.cli import parser_of
from opline_analyses.command_map import GROUPS
from opline_analyses.pages.__main__ import main
from opline_analyses.pages.man import escaped
from opline_analyses.pages.values import VALUES

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
            for option in action.option_strings if action.help != argparse.SUPPRESS else ():
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


def completed(share: Path, folder: Path, words: str) -> list[str]:
    """What bash offers for the last of the words, which may be empty."""
    typed = words.split(" ")
    program = (
        f"cd {folder}; source {share}/bash-completion/completions/opline;"
        f" COMP_WORDS=({' '.join(word or repr('') for word in typed)}); COMP_CWORD={len(typed) - 1};"
        " _shtab_opline; printf '%s\\n' ${COMPREPLY[@]}"
    )
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", program], text=True, capture_output=True, check=False, env=environment)
    return done.stdout.split()


def test_bash_completes_models_classes_devices_and_runs(share: Path, tmp_path: Path, run_of: RunOf) -> None:
    (tmp_path / "run1").symlink_to(run_of("demo-kernel").path)
    (tmp_path / "notes.txt").touch()
    (tmp_path / "mine.toml").touch()
    assert {"syscalls", "demo", "mine.toml"} <= set(completed(share, tmp_path, "opline stages run1 --model "))
    assert completed(share, tmp_path, "opline stages run1 --class ") == list(VALUES["classes"](str(tmp_path / "run1")))
    assert completed(share, tmp_path, "opline stages run1 --class w") == ["write"]
    devices = completed(share, tmp_path, "opline log run1 -d ")
    assert devices == sorted(devices) and devices == list(VALUES["devices"](str(tmp_path / "run1")))
    assert completed(share, tmp_path, "opline why ") == ["run1"], "no file that is no run"
    assert completed(share, tmp_path, "opline why no") == ["notes.txt"], "but where there is no run"
    assert {"hist", "heatmap"} <= set(completed(share, tmp_path, "opline disk h"))
    assert completed(share, tmp_path, "opline now io") == ["iostat"]


def test_a_checkout_prints_its_completion(share: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["completion", "bash"]) == 0
    assert capfd.readouterr().out == (share / "bash-completion" / "completions" / "opline").read_text()
    assert cli.main(["completion", "fish"]) == 2


def test_zsh_has_every_command(share: Path) -> None:
    text = (share / "zsh" / "site-functions" / "_opline").read_text()
    assert text.startswith("#compdef opline")
    assert all(f"\n    {name}:" in text for name in COMMANDS)
