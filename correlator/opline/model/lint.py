# SPDX-License-Identifier: MIT
"""The problems of a model: takes a parsed ``Model``, gives ``Problem`` values.

Errors make a model unusable. A model with a warning can work, but probably not as intended; a note is worth a look.
"""

from __future__ import annotations

import fnmatch
import re
from typing import TYPE_CHECKING

from .compile import identity_of, plan_rules
from .language import ALL, BLOCK_STEPS, Ios, Problem
from .probes import lint_probes

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from .language import KeyUse, Model, Rule

MAX_KEY_SPACES = 64  # the core keeps a bit for each

OPENING = {"open", "open_or_work", "open_or_join"}
JOINING = {"join", "open_or_join"}
BEGINS = ("begin", "soft_begin")
ENDS = ("end", "soft_end")
BATCH_OWN = {"open", "open_or_work", "work", "close"}  # points without need of an op


def check(model: Model, advice: bool = True) -> list[Problem]:
    """All findings about a model without a trace, beyond the findings of ``reader.parse``. Without ``advice`` only
    errors are complete.
    """
    problems: list[Problem] = []
    for part in (_keys, _facts, _names, _roles, _batches, _ios, _windows, _stages, _messages):
        problems.extend(part(model))
    if advice and not model.broken_points:  # the meaning of a point with a mistake is unclear
        for part in (_unused_keys, _threads, _unreachable, _claims, _block_events, lint_probes):
            problems.extend(part(model))
    return sorted(set(problems))


def matches_any(event: str, globs: Iterable[str]) -> bool:
    """Whether the event's name matches one of the globs."""
    return any(fnmatch.fnmatchcase(event, g) for g in globs)


def about(rule: Rule, severity: str, what: str, line: int = 0) -> Problem:
    """A finding about a point."""
    return Problem(line or rule.line, severity, f"point {rule.name}: {what}")


def _keys(model: Model) -> Iterator[Problem]:
    spaces = {space.name: space for space in model.keys}
    lengths = {space.name: len(space.fields) for space in model.keys if space.fields}
    if len(model.keys) > MAX_KEY_SPACES:
        yield Problem(model.keys[MAX_KEY_SPACES].line, "error", f"at most {MAX_KEY_SPACES} key spaces are possible")
    for space in model.keys:
        for name in space.carries:
            if name not in spaces:
                yield Problem(space.line, "error", f"key space {space.name}: `with` names {name}, which is none")
    for rule, use, _ in _uses(model):
        if use.space not in spaces:
            yield about(rule, "error", f"there is no key space `{use.space}` in [keys]", use.line)
        elif not use.fields and not spaces[use.space].fields:
            what = f"key space {use.space} has no fields of its own: write `{use.space}(field)`"
            yield about(rule, "error", what, use.line)
        elif use.fields and lengths.setdefault(use.space, len(use.fields)) != len(use.fields):
            what = f"{len(use.fields)} fields for key space {use.space}, which has {lengths[use.space]}"
            yield about(rule, "error", what, use.line)


def _unused_keys(model: Model) -> Iterator[Problem]:
    used = {use.space for _, use, _ in _uses(model)}
    bound = {use.space for _, use, learns in _uses(model) if learns}
    for space in model.keys:
        if space.name not in used:
            yield Problem(space.line, "warning", f"key space {space.name} is not used")
        elif space.name not in bound:
            what = "is never bound: no `begin` carries it, no `bind`, and no point with another key"
            yield Problem(space.line, "warning", f"key space {space.name} {what}")


def _uses(model: Model) -> Iterator[tuple[Rule, KeyUse, bool]]:
    """Every use of a key, and whether the op can learn the key there."""
    for rule in model.rules:
        for use in rule.key:
            yield rule, use, rule.role in BEGINS or len(rule.key) > 1
        for use in (*rule.bind, *rule.wait):
            yield rule, use, True
        for use in (*rule.release, *rule.meet, *rule.sole, *rule.identity):
            yield rule, use, False
        for ios_use in (rule.ios.submit, rule.ios.wait) if rule.ios else ():
            if ios_use is not None:
                yield rule, ios_use, True


def _facts(model: Model) -> Iterator[Problem]:
    facts = {fact.name for fact in model.facts}
    taught = {rule.learn for rule in model.rules}
    fields = [(use.line, field) for _, use, _ in _uses(model) for field in use.fields]
    fields += [(space.line, field) for space in model.keys for field in space.fields]
    used = {field.partition("@")[2] for _, field in fields}
    for line, field in fields:
        name, at, fact = field.partition("@")
        if at and (not name or fact not in facts):
            yield Problem(line, "error", f"`{field}`: a field, `@` and a fact of [facts] are wanted")
    for rule in model.rules:
        if rule.learn is not None and rule.learn not in facts:
            yield about(rule, "error", f"there is no fact `{rule.learn}` in [facts]")
        if (rule.learn or rule.mark) and (rule.key or rule.bind or rule.role or rule.batch_do or rule.thread):
            yield about(
                rule, "error", "`learn` and `mark` are for events of no op: it has no key, role, thread or batch"
            )
        if rule.at is not None and rule.at not in {r.mark for r in model.rules}:
            yield about(rule, "error", f'`at = "{rule.at}"`: no point has that `mark`')
    for told in model.facts:
        if told.name not in taught and not model.broken_points:
            yield Problem(told.line, "warning", f'no point has learn = "{told.name}"')
        if told.name not in used:
            yield Problem(told.line, "warning", f"fact {told.name} is not used: write `space(field@{told.name})`")


def _names(model: Model) -> Iterator[Problem]:
    names = _point_names(model)
    for rule in model.rules:
        for name in rule.after:
            if wrong := _no_point(name, names):
                yield about(rule, "error", f"`after` names {name}, which {wrong}")
            elif name == rule.name:
                yield about(rule, "warning", "comes `after` itself")
        if "#" in rule.name:
            yield about(rule, "error", "`#` numbers a point that comes again and can't be part of a name")
        if rule.name in BLOCK_STEPS:
            yield about(rule, "error", "this is the name of a step of block requests")


def _roles(model: Model) -> Iterator[Problem]:
    begins = [rule for rule in model.rules if rule.role in BEGINS]
    ends = [rule for rule in model.rules if rule.role in ENDS]
    if model.rules and not begins and not model.broken_points:
        yield Problem(model.rules[0].line, "error", 'no point has role = "begin": there would be no op')
    if begins and not ends and not model.broken_points:
        yield Problem(begins[0].line, "warning", 'no point has role = "end": no op would be complete')
    for rule in begins:
        if not rule.key and not rule.bind and rule.thread not in ("enter", "switch"):
            yield about(rule, "warning", "nothing finds the op that begins here: it has no key, and no thread enters")
        if rule.thread == "leave":
            yield about(rule, "warning", "begins an op and leaves it at once")
    for rule in model.rules:
        if rule.end_of and rule.role not in ENDS:
            yield about(rule, "error", '`end_of` goes with role = "end"')
        if rule.role == "soft_begin" and not rule.key:
            yield about(rule, "error", "a soft begin needs a key: where no op is known by it, one begins")
        if rule.child and (rule.role in BEGINS or not rule.bind):
            yield about(rule, "error", "`child` is for a point of an op, with a `bind` that names the child")
        if rule.wait and any(use.space in {u.space for u in rule.meet} for use in rule.wait):
            yield about(rule, "warning", "waits and meets under one key")
        if rule.role is not None and rule.batch_do in BATCH_OWN and not rule.key:
            yield about(rule, "warning", "`role` on a batch's own point")


def _threads(model: Model) -> Iterator[Problem]:
    enters = [rule for rule in model.rules if rule.thread == "enter"]
    switches = [rule for rule in model.rules if rule.thread == "switch"]
    leaves = [rule for rule in model.rules if rule.thread == "leave"]
    if enters and not leaves:
        yield about(enters[0], "note", 'a thread enters and none ever leaves: is `thread = "switch"` meant?')
    if leaves and not enters and not switches:
        yield about(leaves[0], "warning", "a thread leaves, but none ever enters")
    if enters or switches:
        return
    for rule in model.rules:
        own = rule.sole or rule.learn or rule.mark or rule.ios or rule.role == "begin" or rule.batch_do in BATCH_OWN
        if not (rule.key or own):
            yield about(rule, "warning", "has no key, and no thread ever enters an op: it would be nobody's")


def _batches(model: Model) -> Iterator[Problem]:
    doings: dict[str, set[str]] = {}
    says: dict[str, set[str]] = {}
    for rule in model.rules:
        if rule.batch_do is not None and rule.batch_space is not None:
            doings.setdefault(rule.batch_space, set()).add(rule.batch_do)
            says.setdefault(rule.batch_space, set()).update(word for word, _ in rule.batch_says)
    for rule in model.rules:
        if rule.batch_space is None:
            continue
        done, said = doings[rule.batch_space], says[rule.batch_space]
        opens = rule.batch_do in OPENING
        if not done & OPENING and "reaches" not in said:
            yield about(rule, "error", f"no point opens the batch {rule.batch_space}")
        if opens and not done & JOINING and "needs" not in said:
            yield about(rule, "warning", f"opens the batch {rule.batch_space}, but no op ever joins it")
        if opens and not done & {"close", "leave"}:
            yield about(rule, "warning", f"opens the batch {rule.batch_space}, but it is never closed")
        yield from _orders(rule, said)


def _orders(rule: Rule, said: set[str]) -> Iterator[Problem]:
    """`needs` and `reaches` of a batch go together."""
    mine = {word for word, _ in rule.batch_says}
    if "needs" in mine and "reaches" not in said:
        yield about(
            rule, "error", f"needs a batch {rule.batch_space} that reaches so far, and none says what it reaches"
        )
    if "reaches" in mine and "needs" not in said:
        yield about(rule, "warning", f"the batch {rule.batch_space} says what it reaches, and no op needs it")
    if rule.batch_do == "leave" and "needs" not in said:
        yield about(rule, "error", f"leaves the batch {rule.batch_space}, which no op needs")


def _ios(model: Model) -> Iterator[Problem]:
    told = any(rule.ios is not None and rule.ios.told == "begin" for rule in model.rules)
    for rule in model.rules:
        ios = rule.ios
        if ios is None:
            continue
        if ios.told is not None:
            yield from _told(rule, ios)
            continue
        begins_each = told and rule.role is None
        if ios.submit is not None and not begins_each and (rule.role, rule.thread) != ("begin", "switch"):
            yield about(rule, "error", '`ios.submit` goes with role = "begin" and thread = "switch"')
        if ios.submit is None and rule.role is not None:
            yield about(rule, "error", "`role`: with `ios`, only a point that submits begins an op")
        if ios.entry == bool(ios.submitted or ios.reaped):
            what = "`ios` has `submit` or `wait` at a call's entry, `submitted` or `reaped` at its exit"
            yield about(rule, "error", what)
        if (ios.count_field or ios.ring) and ios.submit is None:
            yield about(rule, "error", "`ios.count` and `ios.ring` go with `submit`")
        if ios.least and ios.wait is None:
            yield about(rule, "error", "`ios.least` goes with `wait`")
        if ios.taken and not ios.entry:
            yield about(rule, "error", "`ios.taken` goes with `submit` or `wait`")
        if ios.posted:
            yield about(rule, "error", '`ios.posted` goes with told = "end"')
        if ios.names and ios.submit is None and ios.reaped in (None, ALL):
            yield about(rule, "error", "`ios.names` goes with `submit`, or with a field in `reaped`")
        if ios.submit and ios.wait and ios.submit.space != ios.wait.space:
            yield about(rule, "error", "`ios`: one call submits to and waits for one queue")
    entries = [rule for rule in model.rules if rule.ios and rule.ios.entry]
    if entries and not any(rule.ios and (rule.ios.submitted or rule.ios.reaped) for rule in model.rules):
        yield about(entries[0], "error", "`ios`: no point is the exit of this call (`submitted` or `reaped`)")


def _told(rule: Rule, ios: Ios) -> Iterator[Problem]:
    if ios != Ios(told=ios.told, posted=ios.posted if ios.told == "end" else None):
        yield about(rule, "error", "`ios.told` is about one I/O: it goes with no other word of `ios`")
    if (ios.told == "begin") != (rule.role == "begin") or not rule.key:
        yield about(rule, "error", '`ios.told`: "begin" goes with role = "begin", "end" with no role, both with a key')


def _windows(model: Model) -> Iterator[Problem]:
    """`io` marks bytes in flight, or the wait of a sync: every end needs a begin."""
    if model.broken_points:
        return
    for field in ("in_flight", "sync"):
        doing = [getattr(rule, field) for rule in model.rules]
        if "end" in doing and "begin" not in doing:
            rule = model.rules[doing.index("end")]
            yield about(rule, "warning", f'`io.{field} = "end"`: no point has `io.{field} = "begin"`')


def _messages(model: Model) -> Iterator[Problem]:
    """Both ends of a message have the message's key, on any host."""
    scopes = {space.name: space.scope for space in model.keys}
    ends: dict[str, set[str]] = {}
    for rule in model.rules:
        if rule.message is None:
            continue
        identity = identity_of(rule, scopes)
        if not identity:
            yield about(rule, "error", '`message` needs a key of scope "global": both ends have it')
        elif scopes.get(identity[0].space, "global") != "global":
            yield about(rule, "error", f'`message`: the key space {identity[0].space} is not of scope "global"')
        else:
            ends.setdefault(identity[0].space, set()).add(rule.message)
        if rule.learn or rule.mark or rule.ios:
            yield about(rule, "error", "`message` is for a point of an op: without `learn`, `mark` and `ios`")
    for space, seen in ends.items():
        for word in {"send", "receive"} - seen:
            rule = next(r for r in model.rules if r.message and identity_of(r, scopes)[0].space == space)
            yield about(rule, "warning", f'no point has message = "{word}" with the key {space}')


def _stages(model: Model) -> Iterator[Problem]:
    names = _point_names(model)
    known: dict[tuple[str, str], str] = {}
    for stage in model.stages:
        for field, points in (("from", stage.sources), ("to", stage.targets)):
            for name in points:
                if wrong := _no_point(name, names):
                    message = f"stage {stage.name}: `{field}` names {name}, which {wrong}"
                    yield Problem(stage.line, "error", message)
        for pair in ((s, t) for s in stage.sources for t in stage.targets):
            if pair in known:
                message = f"stage {stage.name}: {pair[0]} → {pair[1]} is called {known[pair]} already"
                yield Problem(stage.line, "warning", message)
            known.setdefault(pair, stage.name)


def _unreachable(model: Model) -> Iterator[Problem]:
    flat = plan_rules(model)
    fields = {space.name: space.fields for space in model.keys}
    needs = [needed_fields(rule, fields) for rule, _ in flat]
    for i, (rule, event) in enumerate(flat):
        for j, (earlier, other) in enumerate(flat[:i]):
            # A rule is skipped if the event lacks a needed field.
            if earlier.optional or any(_facts_of(earlier, fields)):
                continue
            if needs[j] <= needs[i] and covers_glob(other, event) and _implied(earlier, rule):
                who = "an earlier rule of it" if earlier.name == rule.name else f"point {earlier.name}"
                what = f"{event} never gets here: {who} (line {earlier.line}) takes all of it"
                yield about(rule, "warning", what)
                break


def _claims(model: Model) -> Iterator[Problem]:
    for rule in model.rules:
        if rule.mark:  # a better time for other points, which have their own time without the mark
            continue
        for event in rule.events:
            if model.claims and not any(covers_glob(claim, event) for claim in model.claims):
                yield about(rule, "warning", f"{event} is not in `claims`: `opline record` would not enable it")


def _block_events(model: Model) -> Iterator[Problem]:
    for rule in model.rules:
        for event in rule.events:
            if event.startswith("block_"):
                yield about(rule, "warning", f"{event} is the block model's, and never a point")


def _point_names(model: Model) -> dict[str, None]:
    """Names where a stage can be cut, with placeholders."""
    return dict.fromkeys([rule.name for rule in model.rules] + list(model.broken_points))


def _no_point(name: str, names: Collection[str]) -> str | None:
    """The reason why no point has the name; None if a point has the name, perhaps after filling a placeholder
    (``flag:{msg}``).
    """
    if "{" in name:
        return "has a placeholder: write the name with the field's value in it"
    if name in names or any("{" in n and re.fullmatch(_as_regex(n), name) for n in names):
        return None
    if re.search(r"#\d+$", name):
        return "has a number: write the name alone, it stands for every recurrence"
    import difflib

    close = difflib.get_close_matches(name, names, n=1)
    return "is no point" + (f" (did you mean {close[0]}?)" if close else "")


def _as_regex(name: str) -> str:
    before, _, rest = name.partition("{")
    return re.escape(before) + ".+" + re.escape(rest.partition("}")[2])


def covers_glob(cover: str, event: str) -> bool:
    """Whether ``cover`` matches every name matched by the glob ``event``. May say no although the truth is yes."""
    if cover == event:
        return True
    if not re.search(r"[*?\[]", cover) or (re.search(r"[*?\[]", event) and re.search(r"[?\[]", cover)):
        return False
    return fnmatch.fnmatchcase(event, cover)


def needed_fields(rule: Rule, fields: Mapping[str, tuple[str, ...]]) -> frozenset[str]:
    """The fields needed by the core, else the rule is skipped (object, offset and length may be absent)."""
    needed = {c.field for c in rule.when}
    for use in (*rule.key, *rule.bind, *rule.release, *rule.wait, *rule.meet, *rule.sole, *rule.identity):
        needed.update(f.partition("@")[0] for f in use.fields or fields.get(use.space, ()) if f != ALL)
    needed.update(f for f in (rule.name_field, rule.class_field) if f is not None)
    if rule.ios:
        for ios_use in (rule.ios.submit, rule.ios.wait):
            needed.update((ios_use.fields or fields.get(ios_use.space, ())) if ios_use else ())
        needed.update(
            f
            for f in (rule.ios.count_field, rule.ios.least, rule.ios.submitted, rule.ios.reaped)
            if f not in (None, "*")
        )
    return frozenset(needed)


def _facts_of(rule: Rule, fields: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    """The facts needed by the core, else the rule is skipped."""
    for use in rule.key:
        yield from (fact for f in use.fields or fields.get(use.space, ()) if (fact := f.partition("@")[2]))


def _implied(earlier: Rule, later: Rule) -> bool:
    """Whether the earlier rule's conditions hold wherever the later one's do."""
    have = {c.field: set(c.values) for c in later.when}
    return all(c.field in have and have[c.field] <= set(c.values) for c in earlier.when)
