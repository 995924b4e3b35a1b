# SPDX-License-Identifier: MIT
"""The lines of `opline doctor` about Ceph. The hook `checks`: `checks()` gives them."""

from __future__ import annotations

from pathlib import Path

from opline.applications.ceph import installed
from opline.capture.machine.checks import Check, Status


def checks() -> list[Check]:
    """Nothing where there is no Ceph."""
    binary = installed.installed()
    daemons = installed.daemons()
    if binary is None and not daemons:
        return []
    found = [_tracepoints(binary)] if binary is not None else []
    if not installed.SHIM.is_file():
        return [
            *found,
            Check("shim for Ceph", Status.WARNING, f"{installed.SHIM} is not there", "build it: make build"),
        ]
    without = [d for d in daemons if d.shim is False]
    told = [f"{d.name} {d.pid}: {_HAS[d.shim]}" for d in daemons]
    detail = "; ".join([str(installed.SHIM), *told])
    if without:
        advice = f"start with it: {installed.start_line(without[0].name)}; a session daemon must run by then"
        return [*found, Check("shim for Ceph", Status.WARNING, detail, advice)]
    return [*found, Check("shim for Ceph", Status.OK, detail)]


_HAS = {True: "has it", False: "runs without it", None: "not allowed to look"}


def _tracepoints(binary: Path) -> Check:
    name = "Ceph's own events"
    built = installed.has_tracepoints(binary)
    missing = installed.missing_providers()
    if not built:
        return Check(name, Status.OPTIONAL, f"{binary} was built without tracepoints: the shim shows what there is")
    deadly = installed.deadly_options()
    if deadly:
        detail = f"configured: {', '.join(deadly)}; but not installed: {', '.join(missing)}"
        return Check(name, Status.WARNING, detail, "unset these options: clients and daemons that read them abort")
    if missing:
        detail = f"built in, but not installed: {', '.join(missing)}; setting {', '.join(installed.PROVIDERS)} aborts"
        return Check(name, Status.OPTIONAL, detail, "use the shim, or build Ceph's src/tracing")
    return Check(
        name, Status.OK, f"provider libraries are installed; set: {', '.join(installed.options_set()) or 'none'}"
    )
