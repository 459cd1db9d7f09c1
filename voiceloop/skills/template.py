"""Templates of requests, and how words are matched with them.

    (turn it|turn the volume) up [a bit]      one of two; the words in [] may be left out
    set a timer for {duration}                a slot: words that mean a value of that kind
    what is {a:number} plus {b:number}        two slots of one kind, each with its own name
    remind me to {what:words}                 a slot of any words, whose value is their position
    remember {what:own}                       the same, with a first word about the user (my, i)
    <polite> stop                             another template, by name
    (stop )+                                  once or more
    ^ again                                   only at the beginning of the text

A template matches words from an index on. It yields each index at which the match may end, with the
values of its slots. This module knows neither languages nor the meaning of requests.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Generic, NamedTuple, Protocol, TypeVar

from voiceloop.skills.words import plain

Values = Mapping[str, object]
"""Meanings of slots, by the slots' names."""
Kind = Callable[[tuple[str, ...]], object]
"""A kind of slot: a function that takes words and returns their meaning, or None if they have no
meaning of this kind."""
LONGEST_SLOT = 16
"""Maximum number of words in a slot, enough for a sum of five numbers."""
_PIECE = re.compile(r"\s*([()\[\]|+]|\{[\w:]+\}|<[\w ]+>|[^\s()\[\]|+{}<>]+)")
PLACES = ("words", "label", "noun", "own")
"""Kinds of slots whose value is the position of their words. Answers repeat these words as they
were written."""
NOTHING: Values = {}
T = TypeVar("T")


class WordSpan(NamedTuple):
    """The position of some words: the indexes of the first, and of the word after the last."""

    start: int
    end: int


class Template(Protocol):
    """A pattern of words."""

    def ends(self, words: tuple[str, ...], at: int, values: Values) -> Iterator[tuple[int, Values]]:
        """Yield each index at which a match that begins at `at` may end, with `values` and the
        values of the slots in the match."""
        ...


@lru_cache(maxsize=4096)
def meaning(kind: Kind, words: tuple[str, ...]) -> object:
    """Return `kind(words)` from a cache, because many templates try the same slots."""
    return kind(words)


@dataclass(frozen=True, slots=True)
class _WordPattern:
    text: str

    def ends(self, words: tuple[str, ...], at: int, values: Values) -> Iterator[tuple[int, Values]]:
        if at < len(words) and words[at] == self.text:
            yield at + 1, values


@dataclass(frozen=True, slots=True)
class _Start:
    def ends(self, words: tuple[str, ...], at: int, values: Values) -> Iterator[tuple[int, Values]]:
        if at == 0:
            yield at, values


@dataclass(frozen=True, slots=True)
class _Slot:
    name: str
    kind: Kind

    def ends(self, words: tuple[str, ...], at: int, values: Values) -> Iterator[tuple[int, Values]]:
        for end in range(at + 1, min(len(words), at + LONGEST_SLOT) + 1):
            value = meaning(self.kind, words[at:end])
            if value is not None:
                yield end, {**values, self.name: value}


@dataclass(frozen=True, slots=True)
class _PositionSlot:
    """A slot whose value is the position of its words."""

    name: str
    kind: Kind

    def ends(self, words: tuple[str, ...], at: int, values: Values) -> Iterator[tuple[int, Values]]:
        for end in range(at + 1, min(len(words), at + LONGEST_SLOT) + 1):
            if meaning(self.kind, words[at:end]):
                yield end, {**values, self.name: WordSpan(at, end)}


@dataclass(frozen=True, slots=True)
class _Sequence:
    parts: Sequence[Template]

    def ends(self, words: tuple[str, ...], at: int, values: Values) -> Iterator[tuple[int, Values]]:
        return self._rest(0, words, at, values)

    def _rest(
        self, part: int, words: tuple[str, ...], at: int, values: Values
    ) -> Iterator[tuple[int, Values]]:
        if part == len(self.parts):
            yield at, values
            return
        for end, known in self.parts[part].ends(words, at, values):
            yield from self._rest(part + 1, words, end, known)


class ByFirstWord(Generic[T]):
    """Things in order, each with a template. The key of a thing is any word with which a match of
    its template may begin."""

    def __init__(self, things: Sequence[tuple[T, Template]]) -> None:
        pairs = [(thing, _first_words(template)) for thing, template in things]
        every = frozenset[str]().union(*(firsts or () for _, firsts in pairs))
        self.firsts = every if all(firsts for _, firsts in pairs) else None
        """First words of all templates together, as `_first_words` returns them."""
        self._by_word = {
            word: [thing for thing, firsts in pairs if not firsts or "" in firsts or word in firsts]
            for word in every | {""}
        }

    def __getitem__(self, word: str) -> Sequence[T]:
        return self._by_word.get(word) or self._by_word[""]


@dataclass(frozen=True, slots=True)
class _Either:
    choices: Sequence[Template]
    by_first: ByFirstWord[Template] = field(init=False)

    def __post_init__(self) -> None:
        pairs = [(choice, choice) for choice in self.choices]
        object.__setattr__(self, "by_first", ByFirstWord(pairs))

    def ends(self, words: tuple[str, ...], at: int, values: Values) -> Iterator[tuple[int, Values]]:
        plain_ends = set[int]()
        for choice in self.by_first[words[at] if at < len(words) else ""]:
            for end, known in choice.ends(words, at, values):
                # Yield one match without slots for each end: otherwise their number would multiply.
                if known is not values or end not in plain_ends:
                    plain_ends.add(end)
                    yield end, known


@dataclass(frozen=True, slots=True)
class _Repeated:
    inner: Template

    def ends(self, words: tuple[str, ...], at: int, values: Values) -> Iterator[tuple[int, Values]]:
        reached, found = set[int](), [(at, values)]
        for place, known in found:  # the list grows meanwhile
            for end, more in self.inner.ends(words, place, known):
                if end not in reached:
                    reached.add(end)
                    found.append((end, more))
                    yield end, more


def _first_words(template: Template) -> frozenset[str] | None:
    """Return the words with which a match of `template` may begin, and "" if a match may have no
    words. Return None if it may begin with any word."""
    match template:
        case _WordPattern():
            return frozenset((template.text,))
        case _Start():
            return frozenset(("",))
        case _Repeated():
            return _first_words(template.inner)
        case _Either():
            return template.by_first.firsts
        case _Sequence():
            words = frozenset(("",))
            for part in template.parts:
                begins = _first_words(part)
                if begins is None:
                    return None
                words = words - {""} | begins
                if "" not in begins:
                    break
            return words
        case _:
            return None


def compiled(text: str, named: Mapping[str, Template], kinds: Mapping[str, Kind]) -> Template:
    """Compile the template `text`. It may call the templates `named`; `kinds` are the kinds of
    slots by name."""
    pieces = [piece[1] for piece in _PIECE.finditer(text)]
    assert re.sub(r"\s", "", "".join(pieces)) == re.sub(r"\s", "", text), f"not understood: {text}"
    template, end = _choices(pieces, 0, named, kinds)
    assert end == len(pieces), f"brackets do not match: {text}"
    return template


def _choices(
    pieces: Sequence[str], at: int, named: Mapping[str, Template], kinds: Mapping[str, Kind]
) -> tuple[Template, int]:
    choices, parts = list[Template](), list[Template]()
    while at < len(pieces) and pieces[at] not in ")]":
        match piece := pieces[at]:
            case "|":
                choices.append(_Sequence(parts))
                parts = []
            case "(" | "[":
                inner, at = _choices(pieces, at + 1, named, kinds)
                parts.append(inner if piece == "(" else _Either((inner, _Sequence(()))))
            case "+":
                parts[-1] = _Repeated(parts[-1])
            case _:
                parts.append(_part(piece, named, kinds))
        at += 1
    last = _Sequence(parts)
    return (_Either((*choices, last)) if choices else last), at


def _part(piece: str, named: Mapping[str, Template], kinds: Mapping[str, Kind]) -> Template:
    if piece.startswith("<"):
        return named[piece[1:-1]]
    if piece.startswith("{"):
        name, _, kind = piece[1:-1].partition(":")
        chosen = kind or name
        return (_PositionSlot if chosen in PLACES else _Slot)(name, kinds[chosen])
    return _Start() if piece == "^" else _WordPattern(plain(piece))


def whole(template: Template, words: tuple[str, ...]) -> Values | None:
    """Return the values of the slots if the template matches all `words`, otherwise None."""
    for end, values in template.ends(words, 0, NOTHING):
        if end == len(words):
            return values
    return None
