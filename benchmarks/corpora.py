# SPDX-License-Identifier: MIT
"""A standing comparison: what opline says of foreign files, against what is true of them.

    .venv/bin/python -m benchmarks.corpora FOLDER [--only TEXT] [--seconds N]

FOLDER has ``corpus.toml``, a list of commands with pieces of the output that must and must not come, and the files
(tests/corpus/corpus.toml says how). A table of verdicts is printed: right; wrong, where a piece is missing or one too
many, or the exit status is another; broken, for an internal error, a traceback or a signal; slow, for more CPU time
than --seconds. Exit status 1 unless all are right, 2 where the list cannot be read.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

OPLINE = (sys.executable, "-P", "-m", "opline_analyses")


class Case(NamedTuple):
    """A command, and what is true of its files."""

    about: str
    run: tuple[str, ...]
    says: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    status: int = 0


class Verdict(NamedTuple):
    """``word``: right, wrong, broken or slow. ``why``: what was expected, unless it is right."""

    case: Case
    word: str
    why: str
    cpu_s: float


def read_cases(folder: Path) -> list[Case]:
    """The list of a folder. Raises OSError; ValueError for one that is no such list."""
    document = tomllib.loads((folder / "corpus.toml").read_text())
    cases = []
    for number, entry in enumerate(document.get("case", []), 1):
        if unknown := sorted(set(entry) - set(Case._fields)):
            raise ValueError(f"case {number}: unknown words {', '.join(unknown)}")
        if not isinstance(entry.get("about"), str) or not entry.get("run"):
            raise ValueError(f"case {number}: needs `about` and `run`")
        pieces = {name: tuple(entry.get(name, ())) for name in ("run", "says", "never")}
        cases.append(Case(about=entry["about"], status=entry.get("status", 0), **pieces))
    if not cases:
        raise ValueError("no case in it")
    return cases


def judge(case: Case, folder: Path, seconds: float = 5.0) -> Verdict:
    """Runs the command in the folder."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [*OPLINE, *case.run], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, check=False, env=_plain()
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    output = " ".join((done.stdout + b"\n" + done.stderr).decode(errors="replace").split())
    if done.returncode < 0 or "internal error" in output or "Traceback" in output:
        return Verdict(case, "broken", output[-200:] or f"signal {-done.returncode}", cpu_s)
    wrong = [f"no `{piece}`" for piece in case.says if " ".join(piece.split()) not in output]
    wrong += [f"`{piece}`" for piece in case.never if " ".join(piece.split()) in output]
    if done.returncode != case.status:
        wrong.append(f"exit status {done.returncode}, not {case.status}")
    if wrong:
        return Verdict(case, "wrong", "; ".join(wrong), cpu_s)
    if cpu_s > seconds:
        return Verdict(case, "slow", f"{cpu_s:.1f} s of CPU time", cpu_s)
    return Verdict(case, "right", "", cpu_s)


def _plain() -> dict[str, str]:
    """The environment, without what changes how tables look."""
    return {**{name: value for name, value in os.environ.items() if name != "COLUMNS"}, "NO_COLOR": "1"}


def table(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Its lines."""
    width = max(len(v.case.about) for v in verdicts)
    for verdict in verdicts:
        yield f"{verdict.word:6}  {verdict.case.about:{width}}  opline {' '.join(verdict.case.run)}".rstrip()
        if verdict.why:
            yield f"        {verdict.why}"
    counts = Counter(v.word for v in verdicts)
    yield ", ".join(f"{counts[word]} {word}" for word in ("right", "wrong", "broken", "slow"))


def main(argv: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", metavar="TEXT", default="", help="cases with this in what they are about")
    parser.add_argument("--seconds", type=float, default=5.0, help="of CPU time that a command may take (5)")
    args = parser.parse_args(argv)
    try:
        cases = [case for case in read_cases(args.folder) if args.only in case.about]
    except (OSError, ValueError) as error:
        print(f"corpora: {args.folder}/corpus.toml: {error}", file=sys.stderr)
        return 2
    if not cases:
        print(f"corpora: no case is about `{args.only}`", file=sys.stderr)
        return 2
    verdicts = [judge(case, args.folder, args.seconds) for case in cases]
    print("\n".join(table(verdicts)))
    return 0 if all(v.word == "right" for v in verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
