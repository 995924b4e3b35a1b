# SPDX-License-Identifier: MIT
"""A recorded trace's block events as text, in the layouts of perf script, ftrace and trace-cmd: what those programs
would have printed of the same recording. Takes the lines of `opline events`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_EVENT = re.compile(r"(\d+) \S+ \S+ cpu (\d+) (block_\w+): \{ (.*?) \}, \{ (.*) \}$")
_FIELD = re.compile(r'(\w+) = ("(?:[^"\\]|\\.)*"|[^,]+)')
# lttng-modules' bit mask, in the order in which blk_fill_rwbs() writes letters
_BITS = ((1024, "F"), (2, "D"), (1, "W"), (256, "F"), (4, "R"))
_AFTER = ((512, "F"), (8, "A"), (32, "S"), (64, "M"))
LAYOUTS = ("perf", "perf 3.14", "perf with process", "ftrace", "ftrace with thread group", "trace-cmd")


def letters(mask: int) -> str:
    """rwbs as the kernel prints it."""
    first = "F" if mask & 1024 else ""
    operation = next((letter for bit, letter in _BITS[1:] if mask & bit), "N")
    return first + operation + "".join(letter for bit, letter in _AFTER if mask & bit)


def fields_of(text: str) -> dict[str, str]:
    """``a = 1, b = "x"`` as a dict of texts."""
    return {name: value.strip('"') for name, value in _FIELD.findall(text)}


def _body(event: str, f: dict[str, str], old: bool) -> str:
    dev, priority = int(f["dev"]), "" if old else " none,0,0"
    start = f"{dev >> 20},{dev & 0xFFFFF} {letters(int(f['rwbs']))}"
    place = f"{f['sector']} + {f.get('nr_sector')}"
    if event == "block_split":
        return f"{start} {f['sector']} / {f['new_sector']} [{f['comm']}]"
    if event == "block_bio_remap":
        return f"{start} {place} <- ({int(f['old_dev']) >> 20},{int(f['old_dev']) & 0xFFFFF}) {f['old_sector']}"
    if event in ("block_rq_issue", "block_rq_insert"):
        return f"{start} {f.get('bytes', 0)} () {place}{priority} [{f['comm']}]"
    if event in ("block_rq_complete", "block_rq_requeue"):
        return f"{start} () {place}{priority} [{f.get('error', 0)}]"
    return f"{start} {place} [{f.get('error') if event == 'block_bio_complete' else f['comm']}]"


def text_of(lines: Iterable[str], layout: str, digits: int = 9) -> Iterator[str]:
    """The block events in a layout, stamps with so many decimals (9: ns)."""
    if "ftrace" in layout:
        yield "# tracer: nop\n#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION"
    for line in lines:
        found = _EVENT.match(line)
        if found is None:
            continue
        ns, cpu, event = int(found[1]), int(found[2]), found[3]
        context, payload = fields_of(found[4]), fields_of(found[5])
        stamp = f"{ns // 10**9}.{f'{ns % 10**9:09d}'[:digits]}"
        comm, tid, pid = context["procname"], context["tid"], context["pid"]
        if event in ("block_plug", "block_unplug", "block_touch_buffer", "block_dirty_buffer"):
            body = f"[{comm}]" + (" 1" if event == "block_unplug" else "")
        else:
            body = _body(event, payload, layout == "perf 3.14")
        head = {
            "perf": f"{comm:>16} {tid:>5} [{cpu:03d}] {stamp}:  block:{event}: ",
            "perf 3.14": f"{comm:>16} {tid:>5} [{cpu:03d}] {stamp}: block:{event}: ",
            "perf with process": f"{comm:>16} {pid:>5}/{tid:<5} [{cpu:03d}] {stamp}:  block:{event}: ",
            "ftrace": f"{comm:>16}-{tid:<7} [{cpu:03d}] d..2. {stamp}: {event}: ",
            "ftrace with thread group": f"{comm:>16}-{tid:<7} ({pid:>7}) [{cpu:03d}] .... {stamp}: {event}: ",
            "trace-cmd": f"{comm:>16}-{tid:<5} [{cpu:03d}] {stamp}: {event + ':':<21} ",
        }[layout]
        yield head + body
