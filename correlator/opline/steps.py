# SPDX-License-Identifier: MIT
"""The steps of a block request, declared once. The columns of the table requests, all outputs, and the core's table of
steps (`correlator/native/src/block/steps.hpp`, generated) come from here.
"""

from __future__ import annotations

from opline.values import Value


class Step(Value):
    """A step of a block request. A stage from one step to another is called X2Y; it is the device's if it ends with the
    last step, else the block layer's.
    """

    letter: str
    column: str  # of the table requests
    thread: str  # that takes it: the request's queue_tid or issue_tid; "": none, it runs on whatever was interrupted
    meaning: str
    recorded: str  # what the column has
    optional: bool = False  # not every request takes the step


#: In the order in which a request takes them. The core's tables of steps are generated from these.
STEPS = (
    Step(
        "Q",
        "queue_ns",
        "queue_tid",
        "bio queued",
        "Q: the first bio was queued; for the rest of a split, the original bio.",
    ),
    Step("G", "getrq_ns", "queue_tid", "request allocated", "G: request allocated."),
    Step("I", "insert_ns", "queue_tid", "inserted", "I: inserted into the scheduler, unless it is none.", True),
    Step("D", "issue_ns", "issue_tid", "issued to the driver", "Last D, after requeues."),
    Step("C", "complete_ns", "", "completed", "C: completed."),
)
