"""Makes the answer to a request: the text to say, and effects such as a timer to start."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from functools import cache

from voiceloop.skills import abilities, chance, clock, facts, measures, running, talk, timers
from voiceloop.skills.known import Answer, Effect, SkillContext
from voiceloop.skills.phrases import PHRASES
from voiceloop.skills.phrases.phrases import Phrases
from voiceloop.skills.requests import templates
from voiceloop.skills.running import which as running_timer
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
    **chance.ANSWERS,
    **abilities.ANSWERS,
}


def answer(text: str, code: str, known: SkillContext) -> Answer | None:
    """Return the answer to the user's words `text` in the language `code`, e.g. `en`. Return None
    if the language model has to answer."""
    for request in understand(text, code):
        refused = request.kind in templates(code).tools
        if refused and (known.acts or abilities.serve(known.tools, request.kind, code)):
            return None
        if (found := reply_to(request, code, known)) is not None:
            return found
    return None


def reply_to(request: SkillRequest, code: str, known: SkillContext) -> Answer | None:
    """Return the answer to `request` in the language `code`, e.g. `en`. Return None if the request
    means something else in this conversation."""
    phrases = _phrases(code)
    found = _BY_KIND.get(request.kind, abilities.cannot)(request, known, phrases)
    return found and replace(found, effect=_effect(request.kind, found, known, phrases))


@cache
def _phrases(code: str) -> Phrases:
    """Return the phrases of a language, with the answers that stand beside its templates."""
    phrases = PHRASES[code]
    return replace(phrases, says={**phrases.says, **templates(code).says})


def _effect(kind: str, found: Answer, known: SkillContext, phrases: Phrases) -> Effect | None:
    """Return what an answer does, and the state after it; None if it only says something."""
    if found.about is not None:
        gone = {*found.cancels, *(one.number for one in found.sets)}
        running = [one for one in known.timers if one.number not in gone]
        state = {
            running_timer(one, phrases): phrases.time(one.due) for one in (*running, *found.sets)
        }
        return Effect("voiceloop_timers", kind, {"set": state})
    if found.voice is not None:
        return Effect("voiceloop_voice", kind, asdict(found.voice))
    if found.remembers or found.strikes:
        return Effect("voiceloop_memory", kind, {"remembered": found.remembers})
    return None
