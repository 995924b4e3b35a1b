# SPDX-License-Identifier: MIT
"""How `--help` is laid out: argparse's way, but an option of several names has its value once."""

from __future__ import annotations

import argparse


class HelpFormat(argparse.RawDescriptionHelpFormatter):
    """``--per, --by {a,b}`` instead of ``--per {a,b}, --by {a,b}``: as Python 3.13 writes it."""

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        value = self._format_args(action, self._get_default_metavar_for_optional(action))
        return f"{', '.join(action.option_strings)} {value}"
