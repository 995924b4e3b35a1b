# SPDX-License-Identifier: MIT
"""Names of cgroups, and the cgroups selected by a GLOB.

A cgroup is a path. If the path tells, the name is the name of the container, the Kubernetes pod or the systemd unit:

- `/system.slice/docker-<64 hex digits>.scope`, `/docker/<64 hex digits>`: `docker 4f2a91c03b7e`; likewise libpod, crio,
  cri-containerd
- `.../pod<uid>.slice/cri-containerd-<64 hex digits>.scope`, `/kubepods/.../pod<uid>/<64 hex digits>`: `pod <uid>
  4f2a91c03b7e`
- `/system.slice/nginx.service`, `/user.slice/.../run-r1.scope`: `nginx.service`, `run-r1.scope`

Container runtimes name cgroups in this way with their drivers systemd and cgroupfs (runc, libcontainer/cgroups;
kubelet, pkg/kubelet/cm).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from opline_analyses.runs.run import Run

_RUNTIMES = "docker|libpod|crio|cri-containerd|containerd"


def name_of(column: str) -> str:
    """SQL of the name of the cgroup with the path in ``column``; absent without a path."""
    path = f"{column}::VARCHAR"
    pod = f"replace(regexp_extract({path}, 'pod([0-9a-f]{{8}}[-_][0-9a-f_-]{{27}})', 1), '_', '-')"
    container = f"regexp_extract({path}, '(?:^|[/-])([0-9a-f]{{12}})[0-9a-f]{{52}}(?:\\.scope)?(?:/|$)', 1)"
    runtime = f"regexp_extract({path}, '({_RUNTIMES})[/-][0-9a-f]{{64}}', 1)"
    unit = f"regexp_extract({path}, '.*/([^/]+\\.(?:service|scope))(?:/|$)', 1)"
    return f"""CASE WHEN {pod} <> '' THEN rtrim('pod ' || {pod} || ' ' || {container})
        WHEN {runtime} <> '' THEN {runtime} || ' ' || {container}
        WHEN {unit} <> '' THEN {unit} ELSE {path} END"""


def names(run: Run, paths: Iterable[str]) -> dict[str, str]:
    """The name of each of these paths."""
    found = {path: run.row(f"SELECT {name_of('path')} FROM (SELECT ? AS path)", [path]) for path in paths}
    return {path: str(name) for path, (name,) in found.items()}


def meant(column: str, globs: Sequence[str]) -> tuple[str, list[object]]:
    """The condition that a GLOB fits the cgroup's path, last name or name, or an outer cgroup (as
    `opline.capture.machine.processes.in_cgroup`); and its parameters.
    """
    tests = [f"{name_of(column)} GLOB ?", *[f"{column}::VARCHAR GLOB ?"] * 4]
    one = f"({' OR '.join(tests)})"
    parameters = [p for glob in globs for p in (glob, glob, f"*/{glob}", f"{glob}/*", f"*/{glob}/*")]
    return f"({' OR '.join([one] * len(globs))})", list(parameters)
