"""Makes the answer to a request: the text to say, and effects such as a timer to start."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache

from voiceloop.skills import abilities, chance, clock, facts, measures, talk, timers
from voiceloop.skills.known import Answer, SkillContext
from voiceloop.skills.phrases import PHRASES
from voiceloop.skills.phrases.phrases import Phrases
from voiceloop.skills.requests import templates
from voiceloop.skills.understand import understand
from voiceloop.skills.values import SkillRequest

Answers = Callable[[SkillRequest, SkillContext, Phrases], Answer | None]
_BY_KIND: Mapping[str, Answers] = {
    **clock.ANSWERS,
    **measures.ANSWERS,
    **timers.ANSWERS,
    **facts.ANSWERS,
    **talk.ANSWERS,
    **chance.ANSWERS,
    **abilities.ANSWERS,
}


def answer(text: str, code: str, known: SkillContext) -> Answer | None:
    """Return the answer to the user's words `text` in the language `code`, e.g. `en`. Return None
    if the language model has to answer."""
    request = understand(text, code)
    return None if request is None else reply_to(request, code, known)


def reply_to(request: SkillRequest, code: str, known: SkillContext) -> Answer | None:
    """Return the answer to `request` in the language `code`, e.g. `en`. Return None if the language
    model has to answer."""
    return _BY_KIND.get(request.kind, abilities.cannot)(request, known, _phrases(code))


@cache
def _phrases(code: str) -> Phrases:
    """Return the phrases of a language, with the answers that stand beside its templates."""
    phrases = PHRASES[code]
    return replace(phrases, says={**phrases.says, **templates(code).says})
