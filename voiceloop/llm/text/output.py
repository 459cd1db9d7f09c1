"""Sort a reply's tokens into text to speak, tool calls, and silent text.

The module `parts` splits the text. This module finds the tokens that spell each part. A character
of several tokens waits until all its bytes have come. Two rules of spoken replies are here too:
they end with a sentence, and they do not only echo the user. This module knows no models.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple

from voiceloop.llm.text.calls import SPELLING
from voiceloop.llm.text.parts import MARKS, Parts, ReplyPart
from voiceloop.llm.text.template import special_tokens

_END = re.compile(r"[.!?…][\"'”’»)\]]*(?=\s)|[。！？।؟]|\n")  # noqa: RUF001
"""A pattern of the end of a sentence. Marks such as `.` match only before whitespace."""
_LAST_WORD = re.compile(r"(\w+)\W*$")
_SHORT = frozenset("mr mrs ms dr prof st vs no etc dra sra sr nr bzw ca".split())
"""Abbreviations with a period that does not end a sentence. A period after a single letter does not
end one either."""
ECHO_WORDS = 3
"""Minimum number of words of an echo. A shorter reply, such as a greeting, may repeat the user."""


@dataclass(frozen=True, slots=True)
class SpeechOutput:
    """Tokens to speak, and their text."""

    ids: tuple[int, ...]
    places: tuple[int, ...]
    """Index of each token among all pushed tokens."""
    text: str
    ends: tuple[int, ...]
    """For each token, the index in `text` at which the token ends."""


@dataclass(frozen=True, slots=True)
class CallOutput:
    """A tool call with its tokens. If several calls share tokens, all these tokens belong to the
    first call."""

    ids: tuple[int, ...]
    name: str
    arguments: Mapping[str, object]
    problem: str = ""
    """Why the call cannot be read; empty if it can."""


class Detokenizer:
    """A decoder that turns a growing sequence of tokens into text, piece by piece.

    All pieces together are the text of all tokens. Special tokens have no text. An incomplete last
    character is left out.
    """

    def __init__(self, tokenizer: Any, marks: Collection[str] = MARKS) -> None:
        """`marks` are the special tokens that do have text."""
        self._tokenizer = tokenizer
        special = special_tokens(tokenizer)
        self._silent = frozenset(index for index, text in special.items() if text not in marks)
        self._ids: list[int] = []
        """Tokens whose text is not certain yet. Before them, the list has tokens that only give
        context."""
        self._known = 0
        """Number of tokens at the start of `_ids` that are context only."""
        self._single: dict[int, str] = {}
        """Cached texts of single tokens."""

    def push(self, token: int) -> str:
        """Add `token` and return the text that has become certain."""
        if token in self._silent:
            return ""
        self._ids.append(token)
        # The text of a token, such as its leading space, can depend on the token before it.
        known = self._decode_known()
        text = self._decode(self._ids)
        if text.endswith("\ufffd") or len(text) <= len(known):
            return ""
        del self._ids[: self._known]
        self._known = len(self._ids)
        return text[len(known) :]

    def _decode_known(self) -> str:
        known = self._ids[: self._known]
        if len(known) != 1:
            return self._decode(known)
        (token,) = known
        if token not in self._single:
            self._single[token] = self._decode(known)
        return self._single[token]

    def _decode(self, ids: list[int]) -> str:
        return self._tokenizer.decode(
            ids, skip_special_tokens=False, clean_up_tokenization_spaces=False
        )


class Output:
    """A filter that separates spoken from silent tokens of a reply, up to a stop string."""

    def __init__(
        self,
        tokenizer: Any,
        *,
        thinking: bool = False,
        stop: Sequence[str] = (),
        call: tuple[str, str] = ("", ""),
    ) -> None:
        """Pass all arguments except `tokenizer` on to `Parts`."""
        self.stopped: int | None = None
        """Index, among all pushed tokens, of the first token after the reply; None until a stop
        string has come."""
        self._parts = Parts(thinking=thinking, stop=stop, call=call)
        self._detokenizer = Detokenizer(tokenizer, {*MARKS, *SPELLING, *call})
        self._pending = deque[_Piece]()
        """Tokens whose part of the reply is not known yet."""
        self._pushed = 0

    def push(self, ids: Sequence[int]) -> list[SpeechOutput | CallOutput]:
        """Add `ids` and return the output that has become certain, in order."""
        items: list[SpeechOutput | CallOutput] = []
        for token in ids:
            if self.stopped is not None:
                break
            text = self._detokenizer.push(token)
            self._pending.append(_Piece(token, self._pushed, len(text)))
            self._pushed += 1
            for part in self._parts.push(text):
                items += self._items(part)
            if self._parts.stopped:
                whole = [piece.place for piece in self._pending if piece.place is not None]
                self.stopped = min(whole, default=self._pushed)
                self._pending.clear()
            elif self._parts.speaking and not any(piece.length for piece in self._pending):
                items += self._items(ReplyPart("", spoken=True))  # for tokens without text
        return _joined(items)

    def finish(self) -> list[SpeechOutput | CallOutput]:
        """Return the rest of the output at the end of the reply."""
        speaking, parts = self._parts.speaking, self._parts.finish()
        if speaking:
            parts.append(ReplyPart("", spoken=True))  # for tokens without text
        return _joined(item for part in parts for item in self._items(part))

    def _items(self, part: ReplyPart) -> Iterator[SpeechOutput | CallOutput]:
        """Yield the output of `part`, with the pending tokens that spell it."""
        taken = self._take(len(part.text))
        if part.spoken and taken:
            yield _speech(part.text, taken)
        ids = tuple(piece.token for piece in taken if piece.place is not None)
        for called in part.calls:
            yield CallOutput(ids, *called)
            ids = ()

    def _take(self, length: int) -> list[_Piece]:
        """Remove the first `length` characters of the pending tokens, and return the tokens that
        spell them.

        If only a part of a token's text is removed, the token is returned, and the rest of its text
        stays pending.
        """
        taken: list[_Piece] = []
        while self._pending and (length > 0 or not self._pending[0].length):
            piece = self._pending.popleft()
            taken.append(piece._replace(length=min(piece.length, length)))
            if piece.length > length:
                self._pending.appendleft(piece._replace(place=None, length=piece.length - length))
            length -= min(length, piece.length)
        return taken


class _Piece(NamedTuple):
    token: int
    place: int | None
    """Index of the token among all pushed tokens; None for the rest of a token that was already
    returned."""
    length: int
    """Number of characters of the token that are pending."""


def _speech(text: str, pieces: Sequence[_Piece]) -> SpeechOutput:
    ends = accumulate(piece.length for piece in pieces)
    counted = [
        (piece.token, piece.place, end)
        for end, piece in zip(ends, pieces, strict=True)
        if piece.place is not None
    ]
    ids, places, stops = zip(*counted, strict=True) if counted else ((), (), ())
    return SpeechOutput(ids, places, text, stops)


def _joined(items: Iterable[SpeechOutput | CallOutput]) -> list[SpeechOutput | CallOutput]:
    """Return `items`, with successive pieces of speech merged into one."""
    found = list[SpeechOutput | CallOutput]()
    for item in items:
        if found and isinstance(item, SpeechOutput) and isinstance(found[-1], SpeechOutput):
            found[-1] = _both(found[-1], item)
        else:
            found.append(item)
    return found


def _both(a: SpeechOutput, b: SpeechOutput) -> SpeechOutput:
    ends = a.ends + tuple(len(a.text) + end for end in b.ends)
    return SpeechOutput(a.ids + b.ids, a.places + b.places, a.text + b.text, ends)


def to_sentence_end(
    items: list[SpeechOutput | CallOutput], said: str, last: int
) -> tuple[list[SpeechOutput | CallOutput], int | None]:
    """Cut `items` after the sentence that contains the token with the index `last` among all pushed
    tokens.

    `said` is the reply's text before `items`. Return the items before the cut, and the index of the
    first token after it. The index is None if nothing is cut.
    """
    for number, item in enumerate(items):
        if not isinstance(item, SpeechOutput):
            continue
        # A mark at the end of the earlier text ends a sentence only if a space follows, and that
        # may be in this item.
        before, ends = len(said), [0, *item.ends]
        said += item.text
        start = next((at for at, place in enumerate(item.places) if place >= last), None)
        end = None if start is None else sentence_end(said, before + ends[start])
        if end is None:
            continue
        kept = sum(before + stop <= end for stop in item.ends)
        if kept < len(item.places):
            cut = SpeechOutput(
                item.ids[:kept], item.places[:kept], item.text[: ends[kept]], item.ends[:kept]
            )
            return [*items[:number], *([cut] if kept else [])], item.places[kept]
    return items, None


def sentence_end(text: str, start: int) -> int | None:
    """Return the index after the first sentence of `text` that ends at index `start` or later. None
    if no end is certain: a mark such as a period ends a sentence only if whitespace follows."""
    for found in _END.finditer(text):
        word = _LAST_WORD.search(text, 0, found.start())
        short = word is not None and (len(word[1]) == 1 or word[1].casefold() in _SHORT)
        if found.end() >= start and not (short and text[found.start()] == "."):
            return found.end()
    return None


class Echo:
    """A detector of replies that only repeat the user's words."""

    def __init__(self, said: str) -> None:
        words = _words(said)
        self._said = "".join(words) if len(words) >= ECHO_WORDS else ""
        self._reply = ""

    def push(self, text: str) -> bool:
        """Add `text` to the reply. Return whether the whole reply may still be an echo."""
        self._reply += text
        return bool(self._said) and self._said.startswith("".join(_words(self._reply)))

    @property
    def whole(self) -> bool:
        """Whether the reply so far is an echo."""
        return bool(self._said) and self._said == "".join(_words(self._reply))


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())
