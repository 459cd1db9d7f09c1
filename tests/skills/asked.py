"""What people say, and what is known when they do."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from voiceloop.skills.answer import answer
from voiceloop.skills.known import Answer, SkillContext

CODES = ("en", "de", "es")
NONE = "none"
NOW = datetime(2026, 11, 26, 15, 42, tzinfo=ZoneInfo("Europe/Lisbon"))
FOLDER = Path(__file__).parents[1] / "data" / "skills"


def said(code: str) -> Mapping[str, Sequence[str]]:
    """What is said, by the kind of request that it is."""
    return tomllib.loads((FOLDER / f"{code}.toml").read_text(encoding="utf-8"))


def told(text: str, code: str = "en", known: SkillContext | None = None) -> Answer:
    """The answer that there has to be."""
    found = answer(text, code, known or SkillContext(NOW))
    assert found is not None, f"no rule knows '{text}'"
    return found
