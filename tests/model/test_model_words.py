# SPDX-License-Identifier: MIT
"""Each word of the model language serves several shipped models, or has its reason in docs/internals/model.md."""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from opline.model import read_text, shipped_models
from opline.model.language import (
    IO_FIELDS,
    JOIN_FIELDS,
    KEY_FIELDS,
    MODEL_FIELDS,
    POINT_FIELDS,
    STAGE_FIELDS,
    STAMP_FIELDS,
)

PAGE = Path(__file__).resolve().parents[2] / "docs" / "internals" / "model.md"
PARTS = {"join": JOIN_FIELDS, "stamp": STAMP_FIELDS, "io": IO_FIELDS}
WORDS = {*MODEL_FIELDS, *POINT_FIELDS, *KEY_FIELDS, *STAGE_FIELDS, *JOIN_FIELDS, *STAMP_FIELDS, *IO_FIELDS}


def points(value: Any) -> Iterator[dict[str, Any]]:
    """The tables of points, which may be in lists and in groups with dotted names."""
    if isinstance(value, list):
        for part in value:
            yield from points(part)
    elif isinstance(value, dict) and "event" in value:
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from points(part)


def tables(document: dict[str, Any], name: str) -> Iterator[dict[str, Any]]:
    for value in document.get(name, {}).values():
        yield from (part for part in (value if isinstance(value, list) else [value]) if isinstance(part, dict))


def words_of(document: dict[str, Any]) -> set[str]:
    found = {*document}
    for name in ("keys", "stages"):
        found |= {word for table in tables(document, name) for word in table}
    for point in points(document.get("points", {})):
        found |= {*point}
        found |= {word for part, words in PARTS.items() for word in words if word in (point.get(part) or ())}
    return found & WORDS


def test_a_word_that_one_shipped_model_uses_has_its_reason() -> None:
    users: dict[str, set[str]] = defaultdict(set)
    for model in shipped_models():
        for word in words_of(tomllib.loads(read_text(model)[0])):
            users[word].add(model)
    rows = [row.split("|")[1:3] for row in PAGE.read_text().splitlines() if row.startswith("| ")]
    reasons = {word: model.strip() for words, model in rows for word in re.findall(r"`(\w+)", words)}
    lone = {word: model for word, (model, *others) in users.items() if not others}
    assert len(lone) > 5
    assert {word: model for word, model in lone.items() if reasons.get(word) != model} == {}
