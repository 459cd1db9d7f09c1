"""Makes the answer to a request: the text to say, and effects such as a timer to start."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, replace
from functools import cache

from voiceloop.skills import abilities, chance, clock, facts, measures, running, talk, timers
from voiceloop.skills.known import Answer, Effect, SkillContext
from voiceloop.skills.phrases import PHRASES
from voiceloop.skills.phrases.phrases import Phrases
from voiceloop.skills.requests import templates
from voiceloop.skills.running import which as running_timer
from voiceloop.skills.understand import MOST_CHARS, understand
from voiceloop.skills.values import SkillRequest
from voiceloop.skills.words import spelled

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
# A choice may be any name.
_LOOSE = {"choice", "unsure", "unsure_follow", "unsure_named"}
_TIMERS = {*timers.ANSWERS, *running.ANSWERS} - _LOOSE
MOST_PIECES = 4
"""Maximum number of sentences, or of clauses, in a text of which one may be a request."""


def answer(text: str, code: str, known: SkillContext) -> Answer | None:
    """Return the answer to the user's words `text` in the language `code`, e.g. `en`. Return None
    if the language model has to answer."""
    guarded = list[SkillRequest]()
    for request in understand(text, code):
        if request.kind in templates(code).guards:
            guarded.append(request)
            continue
        refused = request.kind in templates(code).tools
        if refused and (known.acts or abilities.serve(known.tools, request.kind, code)):
            return None
        if (found := reply_to(request, code, known)) is not None:
            return found
    return _of_sentence(text, code, known) or _first(guarded, code, known)


def _of_sentence(text: str, code: str, known: SkillContext) -> Answer | None:
    """Return the answer to the one sentence or clause of several that is about timers. Return None
    if another one may contradict it, or if it may be quoted or conditional."""
    if code not in PHRASES or len(text) > MOST_PIECES * MOST_CHARS:
        return None
    words = [word.text for word in spelled(text)]
    named = tuple(templates(code).names.split())
    # Most texts are about something else, and understanding each of their parts takes long.
    if not (running.fresh(known) or any(word.startswith(named) for word in words)):
        return None
    doubts = set(templates(code).doubts.split())
    for ends in (r"[.!?]", r"[.!?,;:]"):
        pieces = re.split(rf"(?<={ends})\s+", text)
        if not 1 < len(pieces) <= MOST_PIECES:
            continue
        made = [[one for one in understand(piece, code) if one.kind in _TIMERS] for piece in pieces]
        about = [requests for requests in made if requests]
        beside = " ".join(piece for piece, found in zip(pieces, made, strict=True) if not found)
        if len(about) == 1 and doubts.isdisjoint(word.text for word in spelled(beside)):
            return _first(about[0], code, known)
    return None


def _first(requests: Iterable[SkillRequest], code: str, known: SkillContext) -> Answer | None:
    """Return the answer to the first of the requests that has one."""
    answers = (reply_to(request, code, known) for request in requests)
    return next((one for one in answers if one is not None), None)


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
