"""Finds the claims of a reply that something was done, such as "I turned on the lights", while the
reply is being written. What could still become such a claim is held back.

The patterns of each language are the table `claims` of its pack. A text of the user that asks for a
story, a letter or an explanation exempts the reply, because such sentences may stand there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Any

import regex

from voiceloop.languages.language import installed, table
from voiceloop.types import TokenBurst

LONGEST = 240
"""Maximum number of characters that are looked at together. A longer sentence is looked at in
parts that overlap by half."""
_QUOTE = regex.compile(r"[\"“”„«»]")
_END = regex.compile(r"[.!?…\n][\"'”)\]*_]*\s")
_TAIL = regex.compile(r"\W++$")


@dataclass(frozen=True, slots=True)
class Claims:
    """How replies in one or more languages claim that something was done."""

    instead: str
    """What is said instead of the claim."""
    lead: Any
    """Pattern of words at the beginning of a sentence that a claim may follow."""
    claim: Any
    """Pattern of all claims, which begin anywhere in a sentence or, with ^, after its `lead`."""


@cache
def claims(*codes: str) -> Claims | None:
    """Return the claims of one or more languages together; None if none is known. The first one
    that is known gives what is said instead."""
    found = [_given(code) for code in dict.fromkeys(codes) if code in installed()]
    if not found:
        return None
    lead = "|".join(one["lead"] for one in found)
    claim = "|".join(chain.from_iterable(map(_written, found)))
    compiled = (regex.compile(one, regex.IGNORECASE) for one in (lead, claim))
    return Claims(found[0]["instead"], *compiled)


@cache
def _given(code: str) -> dict[str, Any]:
    return table(code, "claims")


def _written(given: Mapping[str, Any]) -> list[str]:
    """Return the patterns of the claims of one language, with their words filled in."""
    words = dict[str, str]()
    for name, pattern in given["words"].items():
        words[name] = _filled(pattern, words)
    return [_filled(one, words) for several in given["claims"].values() for one in several]


def _filled(pattern: str, words: Mapping[str, str]) -> str:
    for name, text in words.items():
        pattern = pattern.replace(f"{{{name}}}", text)
    return pattern


@cache
def _exempt() -> Any:
    """Return a pattern of the user's words after which nothing counts as a claim, since they ask
    for a text or an explanation, in any language."""
    every = "|".join(_given(code)["exempt"] for code in installed())
    return regex.compile(every, regex.IGNORECASE)


def _unquoted(text: str, quoted: bool) -> str:
    """Return `text` with dots in place of quotations. `quoted` tells whether it begins within
    one."""
    found, at = list[str](), 0
    for mark in _QUOTE.finditer(text):
        found.append("·" * (mark.start() - at) if quoted else text[at : mark.start()])
        found.append(mark[0])
        quoted, at = not quoted, mark.end()
    rest = text[at:]
    return "".join(found) + ("·" * len(rest) if quoted else rest)


class ClaimGuard:
    """Passes on the text of one reply until it claims that something was done."""

    def __init__(self, asked: str, *codes: str) -> None:
        """Watch the reply to the user's words `asked`, in the languages `codes`. The first is the
        voice's."""
        found = claims(*codes)
        self._known = None if found is None or _exempt().search(asked[:LONGEST]) else found
        self._quoted: bool | None = False
        """Whether the last sentence begins within a quotation, in which nothing is a claim. None if
        the reply begins with a quotation mark: some models quote all that they say."""
        self._sentence: str = ""
        """The last sentence so far."""
        self._said = False
        self._held = deque[TokenBurst]()
        self.claimed = False
        """Whether the text that is held back claims something."""

    @property
    def instead(self) -> str:
        """What is said instead of the claim."""
        return self._known.instead if self._known else ""

    def push(self, burst: TokenBurst) -> list[TokenBurst]:
        """Take more text, and return the bursts that may be heard by now."""
        if self._known is None:
            return [burst]
        self._held.append(burst)
        if self.claimed:
            return []
        if not self._said and burst.text.strip():
            self._said = True
            self._quoted = None if _QUOTE.match(burst.text.lstrip()) else False
        self._sentence += burst.text.replace("\xa0", " ")
        return self._before(self._suspected(self._known))

    def finish(self) -> None:
        """Judge the last sentence, after which no text comes."""
        if self._known and not self.claimed:
            self._suspected(self._known, over=True)

    def release(self) -> list[TokenBurst]:
        """Return the bursts that are held back, and begin anew after them."""
        passed = [*self._held]
        self._held.clear()
        self._sentence, self.claimed, self._said, self._quoted = "", False, False, False
        return passed

    def allow(self) -> None:
        """Note that something was done in this reply, so that it may say so."""
        self._known = None

    def _suspected(self, known: Claims, *, over: bool = False) -> int:
        """Return how many characters at the end of the text are, or may become, a claim. The rest
        of a sentence may show that it is none, unless the text is `over`."""
        at = 0
        while True:
            sentence = self._sentence[at : at + 2 * LONGEST]
            if self._quoted is not None:
                sentence = _unquoted(sentence, self._quoted)
            lead = known.lead.match(sentence)
            begin = lead.end() if lead else 0
            if end := _END.search(sentence, begin):
                rest = sentence[begin : end.end()]
                done: int = end.end()
            else:
                rest = sentence[begin:LONGEST]
                done = LONGEST // 2 if len(sentence) >= LONGEST else 0
            whole = end is not None or over
            # A word boundary of a pattern needs a word before it, even where the text goes on.
            part = rest.rstrip() if whole else _TAIL.sub("", rest)
            found = known.claim.search(part, partial=not whole)
            if found and not found[0]:  # a claim may begin anywhere
                found = None
            if found and not found.partial and (done or over):
                self.claimed = True
            elif done:
                if self._quoted is not None:
                    self._quoted ^= len(_QUOTE.findall(self._sentence, at, at + done)) % 2 == 1
                at += done
                continue
            self._sentence = self._sentence[at:]
            may_lead = not rest or known.lead.fullmatch(rest, partial=True)
            if may_lead or (found and not found.start()):
                return len(self._sentence)
            return len(self._sentence) - begin - found.start() if found else 0

    def _before(self, characters: int) -> list[TokenBurst]:
        """Return the held bursts that end before the last `characters` of the text."""
        held = sum(len(burst.text) for burst in self._held)
        passed = list[TokenBurst]()
        while self._held and held - len(self._held[0].text) >= characters:
            held -= len(self._held[0].text)
            passed.append(self._held.popleft())
        return passed
