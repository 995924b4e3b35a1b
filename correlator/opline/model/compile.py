# SPDX-License-Identifier: MIT
"""From a ``Model`` to the *plan*, the native core's JSON document (docs/internals/stitching.md, "The plan").

A rule with several events becomes several points of the plan with one name. The order of rules is kept: the first
matching rule wins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .language import FLAGS, KEYS, POINTS, TEXTS, WORDS, template

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from .language import Bios, Ios, KeyUse, Model, Rule

PLAN_VERSION = 1
MATCHES = ("pointer", "sector")


def compile_plan(model: Model, match: str = "pointer") -> dict[str, Any]:
    """The plan of a model without errors, as plain dicts and lists.

    ``match``: how the block model finds a request: by ``pointer`` for events with pointers, or by ``sector`` as if no
    event had a pointer.
    """
    if match not in MATCHES:
        raise ValueError(f"match is one of {MATCHES}, not {match!r}")
    points = _Points(model)
    return {
        "version": PLAN_VERSION,
        "model": model.name,
        "claims": list(model.claims),
        "linger_ns": model.linger_ns,
        "match": match,
        "key_spaces": [
            {"name": s.name, "scope": s.scope}
            | _present(by_order=s.by_order, **{"with": [points.spaces[w] for w in s.carries]})
            for s in model.keys
        ],
        "points": [points.point(rule, event) for rule in model.rules for event in rule.events],
        "stages": [
            {"name": stage.name, "from": source, "to": target} | _present(kind=stage.kind, behind=stage.behind)
            for stage in model.stages
            for source in stage.sources
            for target in stage.targets
        ],
    } | _present(
        bios=_own_ios(model.bios),
        requests=_own_ios(model.requests),
        facts=[
            {"name": f.name, "scope": f.scope, "of": f.of, "value": list(f.value), "unordered": f.unordered}
            for f in model.facts
        ],
    )


class _Points:
    """Makes the plan's points: there key spaces and facts are numbers."""

    def __init__(self, model: Model) -> None:
        self.spaces = {space.name: i for i, space in enumerate(model.keys)}
        self.facts = {fact.name: i for i, fact in enumerate(model.facts)}
        self.scopes = {space.name: space.scope for space in model.keys}
        self.default_fields = {space.name: space.fields for space in model.keys}

    def keys(self, uses: tuple[KeyUse, ...]) -> list[dict[str, Any]]:
        return [self.key(use) for use in uses]

    def key(self, use: KeyUse) -> dict[str, Any]:
        parts = [f.partition("@") for f in use.fields or self.default_fields[use.space]]
        known = [self.facts.get(fact) if at else None for _, at, fact in parts]
        compiled: dict[str, Any] = {"space": self.spaces[use.space], "fields": [field for field, _, _ in parts]}
        if any(fact is not None for fact in known):
            compiled["facts"] = [-1 if fact is None else fact for fact in known]
        return compiled

    def ios(self, i: Ios | None) -> dict[str, Any] | None:
        if i is None:
            return None
        return {
            "submit": self.key(i.submit) if i.submit else None,
            "wait": self.key(i.wait) if i.wait else None,
            "count": i.count_field,
            "least": i.least,
            "ring": i.ring,
            "submitted": i.submitted,
            "reaped": i.reaped,
            "names": i.names,
            "told": i.told,
            "taken": i.taken,
            "posted": i.posted,
        }

    def point(self, rule: Rule, event: str) -> dict[str, Any]:
        name, name_field = template(rule.name)
        begins = rule.role == "begin"
        by_name = {field: getattr(rule, field) for field in (*FLAGS, *TEXTS, *WORDS)}
        by_name |= {field: self.keys(getattr(rule, field)) for field in KEYS}
        by_name |= {field: list(getattr(rule, field)) for field in POINTS}
        if begins:
            by_name["bind"] = self.keys(rule.key + rule.bind)
        return {"name": name, "event": event} | _present(
            name_field=name_field,
            when=[{"field": c.field, "any": [_signed(v) for v in c.values]} for c in rule.when],
            role=rule.role,
            end_of=list(rule.end_of),
            find=[] if begins else self.keys(rule.key),
            batch=_batch(rule),
            ios=self.ios(rule.ios),
            quorum=rule.quorum,
            message=rule.message,
            identity=self.keys(identity_of(rule, self.scopes)) if rule.message else [],
            learn=None if rule.learn is None else self.facts[rule.learn],
            **by_name | {"class": _class(rule)},
        )


def identity_of(rule: Rule, scopes: Mapping[str, str]) -> tuple[KeyUse, ...]:
    """The key at both ends of a point's message: the named key, else the point's first global key; or none. ``scopes``:
    of each key space.
    """
    return rule.identity or tuple(use for use in (*rule.bind, *rule.key) if scopes.get(use.space) == "global")[:1]


def message_routes(model: Model) -> dict[str, int]:
    """For each point that sends or receives messages, a number: the same for a send and for its possible receives. A
    receive names its sends in `after`; else all sends with its key count. A request and its reply may carry one key:
    these are two routes.
    """
    scopes = {space.name: space.scope for space in model.keys}
    space = {rule.name: identity_of(rule, scopes)[0].space for rule in model.rules if rule.message}
    sends = {rule.name for rule in model.rules if rule.message == "send"}
    route = {name: n for n, name in enumerate(space)}
    for rule in model.rules:
        if rule.message != "receive":
            continue
        others = sends.intersection(rule.after) or {name for name in sends if space[name] == space[rule.name]}
        joined = {route[name] for name in (rule.name, *others)}
        route = {name: min(joined) if n in joined else n for name, n in route.items()}
    return route


def message_parts(model: Model) -> dict[str, frozenset[str]]:
    """For each point that receives a message in parts, the points of earlier parts: points in its `after` that receive
    messages, too.
    """
    receives = {rule.name for rule in model.rules if rule.message == "receive"}
    parts: dict[str, frozenset[str]] = {}
    for rule in model.rules:
        if rule.message == "receive":
            parts[rule.name] = parts.get(rule.name, frozenset()) | receives.intersection(rule.after)
    return parts


def quorums(model: Model) -> dict[str, int]:
    """For each point that ends a child's work, as named by `after`: the number of awaited children."""
    return {name: rule.quorum for rule in model.rules if rule.quorum is not None for name in rule.after}


def plan_rules(model: Model) -> list[tuple[Rule, str]]:
    """The rule and the event behind each of the plan's points, in the plan's order."""
    return [(rule, event) for rule in model.rules for event in rule.events]


def _own_ios(groups: Sequence[Bios]) -> list[dict[str, Any]]:
    """Groups of threads whose bios or requests are ops: the first fitting group counts."""
    return [{"class": g.op_class, "threads": list(g.threads), "except": list(g.exceptions)} for g in groups]


def _present(**fields: Any) -> dict[str, Any]:
    """Only the fields with a value: rare fields are left out of the plan if absent."""
    return {name: value for name, value in fields.items() if value is not None and value is not False and value != []}


def _batch(rule: Rule) -> dict[str, Any] | None:
    if rule.batch_do is None:
        return None
    return {"space": rule.batch_space, "do": rule.batch_do} | dict(rule.batch_says)


def _class(rule: Rule) -> dict[str, str] | None:
    if rule.class_field is not None:
        return {"field": rule.class_field}
    return None if rule.class_text is None else {"text": rule.class_text}


def _signed(value: int | str) -> int | str:
    # The core compares 64 bits, signed or not, and reads numbers as signed.
    return value - 2**64 if isinstance(value, int) and value >= 2**63 else value
