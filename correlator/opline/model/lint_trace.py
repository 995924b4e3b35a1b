# SPDX-License-Identifier: MIT
"""A trace's findings about a model: takes the model, the core's counters, the trace's events and their fields; gives
``Problem`` values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .compile import plan_rules
from .language import Problem, template
from .lint import about, matches_any, needed_fields

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from typing import Any

    from .language import Model, Rule


def check_trace(
    model: Model,
    core: Mapping[str, Any],
    events: Mapping[str, int],
    fields: Mapping[str, Collection[str]] | None = None,
) -> list[Problem]:
    """The findings of a trace about the model.

    ``core`` has the counters of a correlation: ``points``, a list of ``{name, seen, transitions}`` in the plan's order,
    and ``keys``, a list of ``{space, point, found, missed}``. ``events`` counts the trace's events by name, ``fields``
    has the fields of some events.
    """
    problems: list[Problem] = []
    seen: dict[int, int] = {}  # by line: a rule counts as seen with any of its events
    for (rule, _), point in zip(plan_rules(model), core["points"], strict=True):
        seen[rule.line] = seen.get(rule.line, 0) + int(point["seen"])
    points_seen = {rule.name for rule in model.rules if seen.get(rule.line)}
    for rule in model.rules:
        if seen.get(rule.line) == 0:
            if not _lacks_field(model, rule, fields or {}) and _may_be_unseen(rule, points_seen, events):
                continue
            problems.append(about(rule, "warning", f"never seen: {_why_unseen(model, rule, events, fields or {})}"))
        else:
            problems.extend(_no_such_field(rule, fields or {}))
    lines = {template(rule.name)[0]: rule.line for rule in reversed(model.rules)}
    finds = {str(key["point"]) for key in core["keys"] if key["found"]}
    learning = {template(rule.name)[0] for rule in model.rules if len(rule.key) > 1} & finds
    for key in core["keys"]:
        found, missed, point = int(key["found"]), int(key["missed"]), str(key["point"])
        # For a point with several keys, an unknown key is learned from the known key.
        if missed and point not in learning:
            line = lines.get(point, 0)
            what = f"found no op in {missed} of {found + missed} events" if found else "never found an op"
            severity = "note" if found else "warning"
            problems.append(Problem(line, severity, f"point {point}: its key {key['space']} {what}"))
    for event, count in unclaimed_events(model, events).items():
        message = f"no point for {event} ({count} events): give it one, or list it in `ignore`"
        problems.append(Problem(model.claims_line, "warning", message))
    return sorted(set(problems))


def asked_fields(model: Model, events: Mapping[str, int]) -> list[str]:
    """The trace's events with fields wanted by the model, the most frequent first."""
    found = [e for e, n in events.items() if n and any(matches_any(e, rule.events) for rule in model.rules)]
    return sorted(found, key=lambda e: (-events[e], e))


def _may_be_unseen(rule: Rule, points_seen: Collection[str], events: Mapping[str, int]) -> bool:
    """Whether a program may go without the rule: other events of the point's rules came, or the program names its own
    points and has none.
    """
    if any(n and matches_any(event, rule.events) for event, n in events.items()):
        return rule.name in points_seen
    return template(rule.name)[1] is not None


def _lacks_field(model: Model, rule: Rule, fields: Mapping[str, Collection[str]]) -> tuple[str, list[str]] | None:
    """An event of the rule, and the needed fields missing in the event; None: no field is missing."""
    needed = needed_fields(rule, {space.name: space.fields for space in model.keys})
    for event in sorted(fields):
        if matches_any(event, rule.events) and (lacking := sorted(needed - set(fields[event]))):
            return event, lacking
    return None


def _why_unseen(model: Model, rule: Rule, events: Mapping[str, int], fields: Mapping[str, Collection[str]]) -> str:
    count = sum(n for event, n in events.items() if matches_any(event, rule.events))
    names = ", ".join(rule.events)
    if not count:
        return f"the trace has no {names}"
    if found := _lacks_field(model, rule, fields):
        event, lacking = found
        which = "" if names == event else f"{event} "
        listed = " or ".join(f"`{field}`" for field in lacking)
        return f"{names} comes {count} times, and {which}has no field {listed}{_meant(lacking[0], fields[event])}"
    return f"{names} comes {count} times, but `when`, an earlier rule or a missing field keeps it away"


def _no_such_field(rule: Rule, fields: Mapping[str, Collection[str]]) -> Iterator[Problem]:
    """Optional fields of an event: without these the op has no object and no bytes."""
    wanted = [f for f in (rule.object, rule.offset, rule.length, rule.file_by) if f is not None]
    wanted += [field for _, field in rule.batch_says]
    mine = {event: there for event, there in fields.items() if matches_any(event, rule.events)}
    for field in wanted:
        if mine and not any(field in there for there in mine.values()):
            event = min(mine)
            meant = _meant(field, mine[event])
            # A model for several tracers names fields of only one tracer.
            yield about(rule, "warning" if "mean" in meant else "note", f"{event} has no field `{field}`{meant}")


def _meant(field: str, there: Collection[str]) -> str:
    import difflib

    close = difflib.get_close_matches(field, sorted(there), n=1)
    return f" (did you mean `{close[0]}`?)" if close else f" (it has {', '.join(sorted(there))})"


def unclaimed_events(model: Model, events: Mapping[str, int]) -> dict[str, int]:
    """The trace's events (name → count) claimed by the model, without a point and not ignored."""
    globs = [event for rule in model.rules for event in rule.events] + list(model.ignore)
    return {e: n for e, n in events.items() if n and matches_any(e, model.claims) and not matches_any(e, globs)}
