"""Templates of requests, and how words are matched with them.

    (turn it|turn the volume) up [a bit]      one of two; the words in [] may be left out
    set a timer for {duration}                a slot: words that mean a value of that kind
    what is {a:number} plus {b:number}        two slots of one kind, each with its own name
    remind me to {what:words}                 a slot of any words, whose value is their position
    remember {what:own}                       the same, with a first word about the user (my, i)
    remind me {what:deed}                     the same, with an infinitive as its first word
    <polite> stop                             another template, by name
    (stop )+                                  once or more
    ^ again                                   only at the beginning of the text

A template matches words from an index on. It yields each index at which the match may end, with the
values of its slots. This module knows neither languages nor the meaning of requests.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, reduce
from typing import NamedTuple, TypeVar

from voiceloop.skills.words import plain

Words = tuple[str, ...]
Values = Mapping[str, object]
"""Meanings of slots, by the slots' names."""
Kind = Callable[[Words], object]
"""A kind of slot: a function that takes words and returns their meaning, or None if they have no
meaning of this kind."""
Ends = Iterator[tuple[int, Values]]
LONGEST_SLOT = 16
"""Maximum number of words in a slot, enough for a sum of five numbers."""
_PIECE = re.compile(r"\s*([()\[\]|+]|\{[\w:]+\}|<[\w ]+>|[^\s()\[\]|+{}<>]+)")
PLACES = ("words", "label", "noun", "own", "deed")
"""Kinds of slots whose value is the position of their words. Answers repeat these words as they
were written."""
NOTHING: Values = {}
T = TypeVar("T")


class WordSpan(NamedTuple):
    """The position of some words: the indexes of the first, and of the word after the last."""

    start: int
    end: int


class Template(NamedTuple):
    """A pattern of words."""

    ends: Callable[[Words, int, Values], Ends]
    """Yields each index at which a match that begins at an index of the words may end, with the
    given values and those of the slots in the match."""
    firsts: frozenset[str] | None
    """Words with which a match may begin, and "" if a match may have no words. None if it may begin
    with any word."""


ByFirstWord = Callable[[str], Sequence[tuple[T, Template]]]


@lru_cache(maxsize=4096)
def meaning(kind: Kind, words: Words) -> object:
    """Return `kind(words)` from a cache, because many templates try the same slots."""
    return kind(words)


def _word(text: str) -> Template:
    def ends(words: Words, at: int, values: Values) -> Ends:
        if at < len(words) and words[at] == text:
            yield at + 1, values

    return Template(ends, frozenset((text,)))


def _start() -> Template:
    def ends(words: Words, at: int, values: Values) -> Ends:
        if at == 0:
            yield at, values

    return Template(ends, frozenset(("",)))


def _slot(name: str, kind: Kind) -> Template:
    def ends(words: Words, at: int, values: Values) -> Ends:
        # The longest first: otherwise "at 6 in the evening" is understood as "at 6".
        for end in range(min(len(words), at + LONGEST_SLOT), at, -1):
            value = meaning(kind, words[at:end])
            if value is not None:
                yield end, {**values, name: value}

    return Template(ends, None)


def _place(name: str, kind: Kind) -> Template:
    """Return a slot whose value is the position of its words."""

    def ends(words: Words, at: int, values: Values) -> Ends:
        for end in range(at + 1, min(len(words), at + LONGEST_SLOT) + 1):
            if meaning(kind, words[at:end]):
                yield end, {**values, name: WordSpan(at, end)}

    return Template(ends, None)


def _nothing(words: Words, at: int, values: Values) -> Ends:
    yield at, values


EMPTY = Template(_nothing, frozenset(("",)))


def _then(rest: Template, first: Template) -> Template:
    """Return the template that matches `first`, and then `rest`."""

    def ends(words: Words, at: int, values: Values) -> Ends:
        for end, known in first.ends(words, at, values):
            yield from rest.ends(words, end, known)

    firsts = first.firsts
    if firsts is not None and "" in firsts:
        firsts = None if rest.firsts is None else firsts - {""} | rest.firsts
    return Template(ends, firsts)


def _sequence(parts: Sequence[Template]) -> Template:
    return reduce(_then, reversed(parts), EMPTY)


def by_first_word(pairs: Sequence[tuple[T, Template]]) -> ByFirstWord[T]:
    """Return a function that returns, for a word, those of `pairs` whose template may match words
    that begin with it, in order."""
    every = frozenset[str]().union(*(template.firsts or () for _, template in pairs))
    by_word = {
        word: [one for one in pairs if not one[1].firsts or one[1].firsts & {"", word}]
        for word in every | {""}
    }
    return lambda word: by_word.get(word, by_word[""])


def _either(choices: Sequence[Template]) -> Template:
    beginning = by_first_word([("", choice) for choice in choices])

    def ends(words: Words, at: int, values: Values) -> Ends:
        plain_ends = set[int]()
        for _, choice in beginning(words[at] if at < len(words) else ""):
            for end, known in choice.ends(words, at, values):
                # Yield one match without slots for each end: otherwise their number would multiply.
                if known is not values or end not in plain_ends:
                    plain_ends.add(end)
                    yield end, known

    firsts = [choice.firsts for choice in choices if choice.firsts]
    return Template(ends, frozenset[str]().union(*firsts) if len(firsts) == len(choices) else None)


def _repeated(inner: Template) -> Template:
    def ends(words: Words, at: int, values: Values) -> Ends:
        reached, found = set[int](), [(at, values)]
        for place, known in found:  # the list grows meanwhile
            for end, more in inner.ends(words, place, known):
                if end not in reached:
                    reached.add(end)
                    found.append((end, more))
                    yield end, more

    return Template(ends, inner.firsts)


def compiled(text: str, named: Mapping[str, Template], kinds: Mapping[str, Kind]) -> Template:
    """Compile the template `text`. It may call the templates `named`; `kinds` are the kinds of
    slots by name."""
    pieces = [piece[1] for piece in _PIECE.finditer(text)]
    assert re.sub(r"\s", "", "".join(pieces)) == re.sub(r"\s", "", text), f"not understood: {text}"
    assert all(pieces.count(one) == pieces.count(other) for one, other in ("()", "[]")), text

    def part(piece: str) -> Template:
        if piece.startswith("<"):
            return named[piece[1:-1]]
        if piece.startswith("{"):
            name, _, kind = piece[1:-1].partition(":")
            kind = kind or name
            return (_place if kind in PLACES else _slot)(name, kinds[kind])
        return _start() if piece == "^" else _word(plain(piece))

    return _choices(iter(pieces), part)


def _choices(pieces: Iterator[str], part: Callable[[str], Template]) -> Template:
    """Compile the next pieces up to a closing bracket, each by `part` if it is no sign."""
    choices, parts = list[Template](), list[Template]()
    for piece in pieces:
        match piece:
            case ")" | "]":
                break
            case "|":
                choices.append(_sequence(parts))
                parts = []
            case "(":
                parts.append(_choices(pieces, part))
            case "[":
                parts.append(_either((_choices(pieces, part), EMPTY)))
            case "+":
                parts.append(_repeated(parts.pop()))
            case _:
                parts.append(part(piece))
    last = _sequence(parts)
    return _either((*choices, last)) if choices else last


def whole(template: Template, words: Words) -> Values | None:
    """Return the values of the slots if the template matches all `words`, otherwise None."""
    for end, values in template.ends(words, 0, NOTHING):
        if end == len(words):
            return values
    return None
