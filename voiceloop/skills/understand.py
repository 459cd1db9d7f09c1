"""Understands requests by rules. A rule is sure only if all words fit it, aside from fillers and
from phrases such as "please" before and after the request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from voiceloop.skills.grammar import Grammar
from voiceloop.skills.phrases import PHRASES
from voiceloop.skills.template import NOTHING, ByFirstWord, Template, Values, WordSpan, meaning
from voiceloop.skills.values import SkillRequest
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
    return Grammar(PHRASES[code]) if code in PHRASES else None


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
