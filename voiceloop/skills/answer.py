"""Makes the answer to a request: the text to say, and effects such as a timer to start."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from voiceloop.skills import clock, facts, measures, running, talk, timers
from voiceloop.skills.known import Answer, SkillContext
from voiceloop.skills.phrases import PHRASES
from voiceloop.skills.phrases.phrases import Phrases
from voiceloop.skills.understand import understand
from voiceloop.skills.values import SkillRequest

Answers = Callable[[SkillRequest, SkillContext, Phrases], Answer | None]
_BY_KIND: Mapping[str, Answers] = {
    **clock.ANSWERS,
    **measures.ANSWERS,
    **timers.ANSWERS,
    **running.ANSWERS,
    **facts.ANSWERS,
    **talk.ANSWERS,
}


def answer(text: str, code: str, known: SkillContext) -> Answer | None:
    """Return the answer to the user's words `text` in the language `code`, e.g. `en`. Return None
    if the language model has to answer."""
    replies = (reply_to(request, code, known) for request in understand(text, code))
    return next((one for one in replies if one is not None), None)


def reply_to(request: SkillRequest, code: str, known: SkillContext) -> Answer | None:
    """Return the answer to `request` in the language `code`, e.g. `en`. Return None if the request
    means something else in this conversation."""
    return _BY_KIND[request.kind](request, known, PHRASES[code])
