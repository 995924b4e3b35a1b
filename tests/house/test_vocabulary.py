# SPDX-License-Identifier: MIT
"""No command lacks an option of the vocabulary without a reason next to it, in its module."""

from __future__ import annotations

import pytest

from opline_analyses.cli import load, parser_for
from opline_analyses.command_map import GROUPS
from opline_analyses.commands.vocabulary import VOCABULARY, lacking, options_of

COMMANDS = [name for _, group in GROUPS for name, _, _ in group]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_each_option_or_the_reason_for_lacking_it(name: str) -> None:
    command = load(name)
    has, lacks = options_of(parser_for(command)), lacking(getattr(command, "LACKS", {}))
    for option in VOCABULARY:
        assert (option in has) != (option in lacks), f"{name} {option}"
    assert not set(lacks) - set(VOCABULARY)
    assert all(len(reason) > 9 for reason in lacks.values())
