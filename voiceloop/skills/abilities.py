"""Answers to who the assistant is and what it can do, and to wishes that it cannot fulfil.

If a tool of the user's own may fulfil a wish, the language model answers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from voiceloop.skills.known import Answer, SkillContext
from voiceloop.skills.phrases.phrases import Phrases
from voiceloop.skills.requests import templates
from voiceloop.skills.values import SkillRequest
from voiceloop.skills.words import plain

LACKS: Mapping[str, str] = {"web": "internet", "sight": "camera", "calls": "phone"}
"""What a system prompt says that the assistant does not have, by the kind of the wish."""
CONTROLS: Mapping[str, str] = {
    "music": "play no music",
    "home": "control no lights or other devices",
}
"""What a system prompt says that the assistant does not do, by the kind of the wish."""
MOST_TOOLS = 5
"""Maximum number of tools that an answer names."""


def cannot(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer:
    """Say that a wish cannot be fulfilled, and what can be done in its place."""
    return Answer(phrases.says[request.kind])


def serve(tools: Sequence[str], kind: str, code: str) -> bool:
    """Return whether one of `tools` may fulfil a wish of this kind, by the words in its text."""
    stems = f"{templates('en').tools[kind]} {templates(code).tools[kind]}".split()
    text = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", " ".join(tools))
    words = re.findall(r"[^\W\d_]+", text)
    return any(plain(word).startswith(tuple(stems)) for word in words)


def limits(tools: Sequence[str]) -> str:
    """Return the sentences of the system prompt that say what the assistant cannot do. `tools` are
    those that the language model may call, each as `name: description`."""
    lacks, controls = (
        [what for kind, what in kinds.items() if not serve(tools, kind, "en")]
        for kinds in (LACKS, CONTROLS)
    )
    said = f"You have no {_either(lacks)}." if lacks else ""
    said += f" You {' and '.join(controls)}." if controls else ""
    if not said:
        return ""
    # Without the last sentence, a small model refuses to help with what it is only told.
    asked = "If asked to do one of these, say that you cannot."
    return f"{said.strip()} {asked} To anything else, reply like a friend."


def _either(things: Sequence[str]) -> str:
    return f"{', '.join(things[:-1])} or {things[-1]}" if things[1:] else things[0]


def _abilities(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer | None:
    """Say what the rules can do, and the names of tools."""
    if known.acts:
        return None
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
