# SPDX-License-Identifier: MIT
"""The metadata of the trace that hits of declared probes make.

The streams are written by tracepoints/hit_provider.h; docs/probes.md says why this is a trace of its own. An integer
takes 8 bytes, a text as many as were asked for; thread and process are contexts, as ``opline record`` has them
everywhere.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING

from opline.capture.bpf import ctf_metadata as ctf

if TYPE_CHECKING:
    from opline.model import Probe

CHANNEL = "probes"
CONTEXTS = ("vpid", "vtid", "procname")


def metadata(probes: Sequence[Probe], signed: set[tuple[str, str]], trace: uuid.UUID) -> str:
    """The text. ``signed``: (event, field) of the integers that are."""
    contexts = ctf.integer("vpid", 32, True) + ctf.integer("vtid", 32, True) + ctf.text("procname", 17)
    events = []
    for number, probe in enumerate(probes):
        fields = [
            ctf.text(field.name, field.bytes)
            if field.type == "text"
            else ctf.integer(field.name, signed=(probe.event, field.name) in signed)
            for field in probe.fields
        ]
        events.append(ctf.event(probe.event, number, "".join(fields)))
    return ctf.head(trace, "opline-probes") + ctf.stream(contexts) + "".join(events)
