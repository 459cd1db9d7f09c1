"""Answers about the conversation itself: what was said, how replies sound, and how it ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from voiceloop.skills.known import Answer, SkillContext
from voiceloop.skills.phrases.phrases import Phrases
from voiceloop.skills.values import SkillRequest

ENDS = ".!?…"
MOST_STEPS = 9
"""Maximum number of steps by which the voice changes at once."""
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


def _repeat_changed(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer:
    """Repeat the last reply slower, or louder."""
    change = _change(replace(request, kind=request.kind.removeprefix("repeat_")), known, phrases)
    if change.voice is None:  # it goes no further, and the answer says so
        return replace(change, text=f"{change.text} {known.heard}".strip())
    return replace(_repeat(request, known, phrases), voice=change.voice)


def _spell(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer | None:
    """Say the letters of a word."""
    word = request.values["word"]
    letters = (letter if letter == "ß" else letter.upper() for letter in word)
    return Answer(f"{', '.join(letters)}.") if word.isalpha() else None


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
    voice = known.voice
    for _ in range(min(request.values.get("n", 1), MOST_STEPS)):
        voice = voice.changed(change)
    if voice == known.voice and change in _FURTHEST:
        return Answer(phrases.says[_FURTHEST[change]], aside=True)
    return Answer(phrases.says[change], voice=voice, aside=True)


def _volume(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer | None:
    """Set the volume to a percentage of its range, to a level from 0 to 10, or to the middle."""
    percent: int = request.values.get("percent", 10 * request.values.get("n", 5))
    percent = {"loudest": 100, "softest": 0}.get(request.kind, percent)
    said = phrases.says[request.kind].format(percent=percent)
    return Answer(said, voice=known.voice.at(percent), aside=True) if percent <= 100 else None


def _told(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer:
    """Answer questions about the assistant, and wishes about its voice that it cannot fulfil."""
    return Answer(phrases.says[request.kind], ends=request.kind == "sleep", aside=True)


ANSWERS: Mapping[str, Any] = {
    "recall": _recall,
    "recall_first": _recall,
    "repeat": _repeat,
    "stop": _stop,
    **dict.fromkeys(("thanks", "done", "goodbye", "night"), _courtesy),
    **dict.fromkeys(("louder", "softer", "slower", "faster", "normal"), _change),
    **dict.fromkeys(("repeat_slower", "repeat_louder"), _repeat_changed),
    **dict.fromkeys(("volume", "loudest", "softest"), _volume),
    **dict.fromkeys(("here", "mute", "whisper", "other_voice", "other_language", "sleep"), _told),
    "spell": _spell,
}
