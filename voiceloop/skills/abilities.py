"""Answers to who the assistant is and what it can do, and to wishes that it cannot fulfil.

If a tool of the user's own may fulfil a wish, the language model answers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from voiceloop.skills.known import Answer, SkillContext
from voiceloop.skills.phrases.phrases import Phrases
from voiceloop.skills.requests import templates
from voiceloop.skills.values import SkillRequest
from voiceloop.skills.words import plain

MOST_TOOLS = 5
"""Maximum number of tools that an answer names."""


def cannot(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer | None:
    """Say that a wish cannot be fulfilled, and what can be done in its place."""
    stems = templates("en").tools[request.kind], templates(phrases.code).tools[request.kind]
    text = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", " ".join(known.tools))
    words = [plain(word) for word in re.findall(r"[^\W\d_]+", text)]
    served = any(word.startswith(tuple(" ".join(stems).split())) for word in words)
    return None if served else Answer(phrases.says[request.kind])


def _abilities(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer:
    """Say what the rules can do, and the names of tools."""
    names = [tool.partition(":")[0].replace("_", " ").strip() for tool in known.tools[:MOST_TOOLS]]
    more = phrases.says["tools"].format(list=phrases.listed(names)) if names else ""
    return Answer(f"{phrases.says['abilities']} {more}".strip(), aside=True)


def _self(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer | None:
    """Say who the assistant is, unless the user's system prompt says that."""
    return None if known.persona else Answer(phrases.says[request.kind], aside=True)


def _keeping(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer:
    """Say how long facts are remembered, and how to have one remembered."""
    return Answer(phrases.says["keeping" if known.keeps else "keeping for now"], aside=True)


ANSWERS: Mapping[str, Any] = {
    "abilities": _abilities,
    **dict.fromkeys(("who", "name"), _self),
    "keeping": _keeping,
}
