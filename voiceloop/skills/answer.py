"""Understands requests by rules, and makes the answers: the text to say, and effects such as a
timer to start.

A rule is sure only if all words fit it, aside from fillers and from phrases such as "please" before
and after the request.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from functools import cache
from typing import Any

from voiceloop.languages import installed
from voiceloop.skills import clock, running, sums, talk, timers
from voiceloop.skills.grammar import Grammar
from voiceloop.skills.known import Answer, Effect, SkillContext, SkillRequest
from voiceloop.skills.phrases import phrases_of, templates
from voiceloop.skills.template import NOTHING, ByFirstWord, Template, Values, WordSpan, meaning
from voiceloop.skills.words import RequestWord, counted, parted, spelled

MOST_WORDS = 30
"""Maximum number of words in a text with a request. A longer text probably contains more than
one."""
MOST_CHARS = 20 * MOST_WORDS
"""Maximum number of characters in such a text."""
MOST_TRIMMED = 8
"""Maximum number of words that are ignored after a request, such as `please`. In front of a request
it is the greatest index at which an ignored phrase may begin."""


@cache
def grammar(code: str) -> Grammar | None:
    """Return the grammar of a language; None if it has none."""
    return Grammar(phrases_of(code)) if code in installed() else None


def understand(text: str, code: str, known: SkillContext) -> Iterator[SkillRequest]:
    """Yield the requests that `text` may make in the language `code`, the likeliest first. Nothing
    is yielded if no rule is sure."""
    rules = grammar(code)
    if rules is None or len(text) > MOST_CHARS:
        return
    phrases = rules.phrases
    said = counted(parted(spelled(text), phrases.seams), phrases.words)
    if not 0 < len(said) <= MOST_WORDS:
        return
    shorter = _without(phrases.fillers, said)
    try:
        for group in rules.by_first:
            for words in (said, shorter) if len(shorter) < len(said) else (said,):
                for kind, values in _matches(words, rules, group):
                    found = _with_texts(values, words, text)
                    yield SkillRequest(kind, found, phrases, known)
    finally:
        meaning.cache_clear()  # keep nothing that was said


def _matches(
    said: Sequence[RequestWord], rules: Grammar, group: ByFirstWord[str]
) -> Iterator[tuple[str, Values]]:
    """Yield the kind and the values of each template of `group` that matches `said` between the
    ignored phrases before and after it."""
    words = tuple(word.text for word in said)
    starts, ends = _starts(rules.leads, words), _ends(rules.tails, words)
    for start in starts:
        for kind, template in group(words[start]):
            for end, values in template.ends(words, start, NOTHING):
                if end in ends:
                    yield kind, values


def _without(fillers: frozenset[str], words: Sequence[RequestWord]) -> list[RequestWord]:
    """Return `words` without fillers. A filler after a number is kept. If all words are fillers,
    return all of them."""
    pairs = zip(words, [None, *words[:-1]], strict=True)
    kept = [
        word
        for word, before in pairs
        if word.text not in fillers or (before and before.text[0].isdigit())
    ]
    return kept or list(words)


def _starts(leads: Template, words: tuple[str, ...]) -> list[int]:
    """Return the indexes at which a request may begin, in order: 0, and each index up to which
    `leads` match all words."""
    found = [0]
    for start in found:
        if start <= MOST_TRIMMED:
            found += [end for end, _ in leads.ends(words, start, NOTHING) if end not in found]
    return sorted(start for start in set(found) if start < len(words))


def _ends(tails: Template, words: tuple[str, ...]) -> set[int]:
    """Return the indexes at which a request may end: the end of `words`, and each index from which
    on `tails` match all words."""
    found = {len(words)}
    for start in range(len(words) - 1, max(0, len(words) - MOST_TRIMMED) - 1, -1):
        if any(end in found for end, _ in tails.ends(words, start, NOTHING)):
            found.add(start)
    return found - {0}


def _with_texts(values: Values, said: Sequence[RequestWord], text: str) -> dict[str, Any]:
    """Return `values`, with each `WordSpan` replaced by its words as they stand in `text`."""
    found = dict[str, Any](values)
    for name, place in values.items():
        if isinstance(place, WordSpan):
            found[name] = text[said[place.start].start : said[place.end - 1].end]
    return found


_TIMERS = timers.ANSWERS | running.ANSWERS
_BY_KIND = clock.ANSWERS | sums.ANSWERS | talk.ANSWERS | _TIMERS
# A choice may be any name.
_OF_TIMERS = _TIMERS.keys() - {"choice", "unsure", "unsure_follow", "unsure_named"}
MOST_PIECES = 4
"""Maximum number of sentences, or of clauses, in a text of which one may be a request."""


def answer(text: str, code: str, known: SkillContext) -> Answer | None:
    """Return the answer to the user's words `text` in the language `code`, e.g. `en`. Return None
    if the language model has to answer."""
    guarded = list[SkillRequest]()
    for request in understand(text, code, known):
        if request.kind in templates(code).guards:
            guarded.append(request)
        elif request.kind in templates(code).tools and talk.left_to_model(request):
            return None
        elif (found := reply_to(request)) is not None:
            return found
    return _of_sentence(text, code, known) or _first(guarded)


def _of_sentence(text: str, code: str, known: SkillContext) -> Answer | None:
    """Return the answer to the one sentence or clause of several that is about timers. Return None
    if another one may contradict it, or if it may be quoted or conditional."""
    if code not in installed() or len(text) > MOST_PIECES * MOST_CHARS:
        return None
    given, words = templates(code), [word.text for word in spelled(text)]
    # Most texts are about something else, and understanding each of their parts takes long.
    if not (running.fresh(known) or any(word.startswith(given.names) for word in words)):
        return None
    for ends in (r"[.!?]", r"[.!?,;:]"):
        pieces = re.split(rf"(?<={ends})\s+", text)
        if not 1 < len(pieces) <= MOST_PIECES:
            continue
        made = [
            [one for one in understand(piece, code, known) if one.kind in _OF_TIMERS]
            for piece in pieces
        ]
        about = [requests for requests in made if requests]
        beside = " ".join(piece for piece, found in zip(pieces, made, strict=True) if not found)
        if len(about) == 1 and given.doubts.isdisjoint(word.text for word in spelled(beside)):
            return _first(about[0])
    return None


def _first(requests: Iterable[SkillRequest]) -> Answer | None:
    """Return the answer to the first of the requests that has one."""
    return next((found for found in map(reply_to, requests) if found is not None), None)


def reply_to(request: SkillRequest) -> Answer | None:
    """Return the answer to `request`. Return None if the request means something else in this
    conversation."""
    found = _BY_KIND.get(request.kind, talk.cannot)(request)
    return found and replace(found, effect=_effect(found, request))


def _effect(found: Answer, request: SkillRequest) -> Effect | None:
    """Return what an answer does, and the state after it; None if it only says something."""
    if found.about is not None:
        gone = {*found.cancels, *(one.number for one in found.sets)}
        runs = [one for one in request.known.timers if one.number not in gone]
        phrases = request.phrases
        state = {running.which(one, phrases): phrases.time(one.due) for one in (*runs, *found.sets)}
        return Effect("voiceloop_timers", request.kind, {"set": state})
    if found.voice is not None:
        return Effect("voiceloop_voice", request.kind, asdict(found.voice))
    if found.remembers or found.strikes:
        return Effect("voiceloop_memory", request.kind, {"remembered": found.remembers})
    return None
