"""Understands requests by rules, and makes the answers: the text to say, and effects such as a
timer to start.

A rule is sure only if all words fit it, aside from fillers and from phrases such as "please" before
and after the request.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cache
from typing import Any

from voiceloop.languages import installed
from voiceloop.skills import clock, measures, running, talk, timers
from voiceloop.skills.grammar import Grammar
from voiceloop.skills.known import Answer, Effect, SkillContext, SkillRequest
from voiceloop.skills.phrases import Phrases, phrases_of, templates
from voiceloop.skills.running import which as running_timer
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


def understand(text: str, code: str) -> Iterator[SkillRequest]:
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
            yield from _requests(said, text, rules, group)
            if len(shorter) < len(said):
                yield from _requests(shorter, text, rules, group)
    finally:
        meaning.cache_clear()  # keep nothing that was said


def _requests(
    said: Sequence[RequestWord],
    text: str,
    rules: Grammar,
    group: ByFirstWord[tuple[str, Template]],
) -> Iterator[SkillRequest]:
    """Yield a request for each template of `group` that matches `said` between the ignored phrases
    before and after it. `text` is the text that `said` was made from."""
    words = tuple(word.text for word in said)
    starts, ends = _starts(rules.leads, words), _ends(rules.tails, words)
    for start in starts:
        for kind, template in group[words[start]]:
            for end, values in template.ends(words, start, NOTHING):
                if end in ends:
                    yield SkillRequest(kind, _with_texts(values, said, text))


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


Answers = Callable[[SkillRequest, SkillContext, Phrases], Answer | None]
_BY_KIND: Mapping[str, Answers] = {
    **clock.ANSWERS,
    **measures.ANSWERS,
    **timers.ANSWERS,
    **running.ANSWERS,
    **talk.ANSWERS,
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
        if refused and (known.acts or talk.serve(known.tools, request.kind, code)):
            return None
        if (found := reply_to(request, code, known)) is not None:
            return found
    return _of_sentence(text, code, known) or _first(guarded, code, known)


def _of_sentence(text: str, code: str, known: SkillContext) -> Answer | None:
    """Return the answer to the one sentence or clause of several that is about timers. Return None
    if another one may contradict it, or if it may be quoted or conditional."""
    if code not in installed() or len(text) > MOST_PIECES * MOST_CHARS:
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
    phrases = phrases_of(code)
    found = _BY_KIND.get(request.kind, talk.cannot)(request, known, phrases)
    return found and replace(found, effect=_effect(request.kind, found, known, phrases))


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
