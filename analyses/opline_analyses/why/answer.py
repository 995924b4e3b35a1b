# SPDX-License-Identifier: MIT
"""The answer: why the slow ops are slow, in one to three sentences. `opline why` and the page say the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opline_analyses.why.tail_text import caused_sentence
from opline_analyses.why.text import place_sentence, sentence
from opline_analyses.why.waits_text import cpu_sentence, wait_sentence

if TYPE_CHECKING:
    from opline_analyses.why.tail import Tail
    from opline_analyses.why.waits import Waits
    from opline_analyses.why.why import Why


def answer(w: Why, waits: Waits | None, tail: Tail | None) -> str:
    """The causes of the waits, where they have most of the difference, else the stages. ``tail``: None if nobody has
    asked who was ahead in the devices' queues: recordings of several machines.
    """
    said = [wait_sentence(w, waits)]
    if said[0] is None:
        said = [sentence(w), cpu_sentence(w, waits), tail and caused_sentence(tail)]
    said.append(place_sentence(w))
    return " ".join(filter(None, said))
