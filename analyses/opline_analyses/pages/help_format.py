# SPDX-License-Identifier: MIT
"""The layout of `--help`: argparse's layout, with the value of an option with several names only once."""

from __future__ import annotations

import argparse


class HelpFormat(argparse.RawDescriptionHelpFormatter):
    """``--per, --by {a,b}`` instead of ``--per {a,b}, --by {a,b}``: the form of Python 3.13."""

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        value = self._format_args(action, self._get_default_metavar_for_optional(action))
        return f"{', '.join(action.option_strings)} {value}"
