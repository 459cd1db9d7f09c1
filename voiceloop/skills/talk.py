"""Answers about the conversation itself: what was said, how replies sound, and how it ends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from voiceloop.skills.known import Answer, SkillContext
from voiceloop.skills.phrases.phrases import Phrases
from voiceloop.skills.values import SkillRequest

ENDS = ".!?…"
_FURTHEST = {"louder": "loudest", "softer": "softest", "slower": "slowest", "faster": "fastest"}


def _recall(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer:
    """Repeat what the user asked last, or first."""
    if not known.asked:
        return Answer(phrases.says["asked nothing"], aside=True)
    said = known.asked[0 if request.kind == "recall_first" else -1].strip()
    key = "asked" if said.endswith("?") else "said"
    said = said if said.endswith(tuple(ENDS)) else f"{said}."
    return Answer(phrases.says[key].format(said=said), aside=True)


def _repeat(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer:
    return Answer(known.heard or phrases.says["nothing said"], aside=True)


def _stop(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer:
    return Answer("", aside=True)


def _courtesy(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer:
    """Answer thanks, or a goodbye."""
    return Answer(phrases.says[request.kind], ends=request.kind != "thanks", aside=True)


def _change(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer:
    """Make this reply and later ones louder, softer, slower, faster, or normal again."""
    change = request.kind
    if change in ("slower", "faster") and not known.paced:
        return Answer(phrases.says["one pace"], aside=True)
    voice = known.voice.changed(change)
    if voice == known.voice and change in _FURTHEST:
        return Answer(phrases.says[_FURTHEST[change]], aside=True)
    return Answer(phrases.says[change], voice=voice, aside=True)


ANSWERS: Mapping[str, Any] = {
    "recall": _recall,
    "recall_first": _recall,
    "repeat": _repeat,
    "stop": _stop,
    **dict.fromkeys(("thanks", "done", "goodbye", "night"), _courtesy),
    **dict.fromkeys(("louder", "softer", "slower", "faster", "normal"), _change),
}
