# SPDX-License-Identifier: MIT
"""When the slow ops come, for people. Takes `Bursts` and its companions; gives lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opline_analyses.base.text import count_of, duration, percent

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opline_analyses.why.when import Bursts, Companion, Rhythm


def when_lines(found: Bursts | None, others: Sequence[Companion], ahead: Sequence[Rhythm] = ()) -> Iterator[str]:
    """The period and the window, and what else comes with them; where the slow ops have no period, that of those
    ahead of them, if they have one.
    """
    if found is None:
        for r in ahead:
            yield f"when: requests of {r.owner}, which they wait behind, come every {duration(r.bursts.period_ns)},"
            yield f"  for {duration(r.bursts.width_ns)}, in {r.bursts.met} of {r.bursts.turns} such times"
        return
    yield f"when: every {duration(found.period_ns)}, for {duration(found.width_ns)}"
    yield (
        f"  {percent(found.inside, found.slow, 0)} % of the slow ops begin then, in {found.met} of {found.turns} such"
        f" times; {percent(found.width_ns, found.period_ns, 0)} % of all time is"
    )
    for c in others:
        yield (
            f"  so do {c.what}: {percent(c.share, 1, 0)} % of {count_of(c.requests, 'request')} in"
            f" {duration(c.width_ns)}"
        )
