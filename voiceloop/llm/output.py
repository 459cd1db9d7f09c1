"""What becomes of a reply's tokens: text to speak, tool calls, or nothing.

Text leaves as soon as it is certain: characters whose bytes are not complete wait, and so does
what may turn out to be the beginning of a tag. Tool calls come in the form of the Hermes and Qwen
families, `<tool_call>{"name": …, "arguments": {…}}</tool_call>`; one that cannot be read is handed
over with the reason, for the model to be told. `<think>` spans are never spoken. This module knows
no models.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from voiceloop.llm.template import special_tokens

_TAGS = {"<tool_call>": "</tool_call>", "<think>": "</think>"}


@dataclass(frozen=True, slots=True)
class Speech:
    """Tokens to be spoken, and the text that has become certain with them."""

    ids: tuple[int, ...]
    places: tuple[int, ...]
    """Index of each among all tokens that were pushed."""
    text: str
    ends: tuple[int, ...]
    """Characters of `text` up to the end of each token's."""


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call, with the tokens that spelled it."""

    ids: tuple[int, ...]
    name: str
    arguments: Mapping[str, object]
    problem: str = ""
    """Why the call cannot be read; empty where it can."""


class Detokenizer:
    """Text of a growing sequence of tokens: all pieces joined are the text of all tokens.

    Special tokens have no text. A last character that is not complete is left out.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        tags = {*_TAGS, *_TAGS.values()}
        special = special_tokens(tokenizer)
        self._silent = frozenset(index for index, text in special.items() if text not in tags)
        self._ids: list[int] = []
        """Those whose text is not certain yet, and before them what their text may depend on."""
        self._known = 0
        """How many of them are there for that alone."""
        self._single: dict[int, str] = {}
        """Texts of single tokens."""

    def push(self, token: int) -> str:
        """The text that is certain once `token` has followed."""
        if token in self._silent:
            return ""
        self._ids.append(token)
        # A token's text can depend on the one before (a leading space): decode it with context.
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
    """Separates what is spoken from what is not, token by token, up to a stop string."""

    def __init__(self, tokenizer: Any, *, thinking: bool = False, stop: Sequence[str] = ()) -> None:
        """`thinking` says that the reply begins in a thinking span; what is spoken ends before the
        first of the `stop` strings to be complete, none of which may be empty."""
        self.stopped: int | None = None
        """Once a stop string has come: index among all that were pushed of the first token that
        is not part of the reply."""
        self._stops = tuple(stop)
        self._marks = (*_TAGS, *stop)
        self._detokenizer = Detokenizer(tokenizer)
        self._end = _TAGS["<think>"] if thinking else ""
        """The tag that ends the span we are in; empty outside of spans."""
        self._pending: list[_Piece] = []
        """Tokens whose fate is not known."""
        self._pushed = 0

    def push(self, ids: Sequence[int]) -> list[Speech | Call]:
        """What has become certain once `ids` have followed, in order."""
        items: list[Speech | Call] = []
        for token in ids:
            if self.stopped is not None:
                break
            self._pending.append(_Piece(token, self._pushed, self._detokenizer.push(token)))
            self._pushed += 1
            items += self._settle()
        return list(_joined(items))

    def finish(self) -> list[Speech | Call]:
        """What is left at the end of the reply."""
        left, self._pending = self._pending, []
        if self._end == _TAGS["<tool_call>"]:
            return [Call(_ids(left), "", {}, "the reply ends before it does")]
        return [_speech(left)] if left and not self._end else []

    def _settle(self) -> Iterator[Speech | Call]:
        """Take off `_pending` what its last token has made certain."""
        while self._pending:
            text = _text(self._pending)
            if self._end:
                at = text.find(self._end)
                if at < 0:
                    return
                tag, self._end = self._end, ""
                span = self._take(at + len(tag))
                if tag == _TAGS["<tool_call>"]:
                    yield _call(span)
                continue
            # The first to be complete counts, however the text came in pieces.
            found = [
                (at + len(mark), at, mark) for mark in self._marks if (at := text.find(mark)) >= 0
            ]
            rest = len(text) - _overlap(text, self._marks)
            _, at, mark = min(found, default=(0, rest, ""))
            if at or not text:
                yield _speech(self._take(at))
            if mark in self._stops:
                whole = [piece.place for piece in self._pending if piece.place is not None]
                self.stopped = min(whole, default=self._pushed)
                self._pending.clear()
            if mark not in _TAGS:
                return
            self._end = _TAGS[mark]  # the opening tag stays, and goes with its span

    def _take(self, length: int) -> list[_Piece]:
        """Remove the first `length` characters of what is pending, and the tokens they begin in.

        A token that lies across the cut goes with what is before it; the rest of its text stays.
        """
        taken: list[_Piece] = []
        while self._pending and (length > 0 or not self._pending[0].text):
            piece = self._pending.pop(0)
            taken.append(_Piece(piece.token, piece.place, piece.text[:length]))
            if len(piece.text) > length:
                self._pending.insert(0, _Piece(piece.token, None, piece.text[length:]))
            length -= min(length, len(piece.text))
        return taken


@dataclass(frozen=True, slots=True)
class _Piece:
    token: int
    place: int | None
    """None for the rest of a token that has been counted already."""
    text: str


def _text(pieces: Sequence[_Piece]) -> str:
    return "".join(piece.text for piece in pieces)


def _ids(pieces: Sequence[_Piece]) -> tuple[int, ...]:
    return tuple(piece.token for piece in pieces if piece.place is not None)


def _speech(pieces: Sequence[_Piece]) -> Speech:
    places = tuple(piece.place for piece in pieces if piece.place is not None)
    lengths = accumulate(len(piece.text) for piece in pieces)
    counted = [
        length for length, piece in zip(lengths, pieces, strict=True) if piece.place is not None
    ]
    return Speech(_ids(pieces), places, _text(pieces), tuple(counted))


def _overlap(text: str, marks: Sequence[str]) -> int:
    """Length of the longest end of `text` with which one of `marks` may begin."""
    if not any(mark[0] in text for mark in marks):
        return 0
    longest = max(map(len, marks)) - 1
    return next(
        (
            n
            for n in range(min(longest, len(text)), 0, -1)
            if any(mark.startswith(text[-n:]) for mark in marks)
        ),
        0,
    )


def _call(span: Sequence[_Piece]) -> Call:
    body = _text(span).removeprefix("<tool_call>").removesuffix("</tool_call>").strip()
    return Call(_ids(span), *_read(body))


def _read(body: str) -> tuple[str, Mapping[str, object], str]:
    """Name and arguments of a call, and what is wrong with it.

    Models also write the arguments under the name `parameters`, or as a text that holds JSON.
    """
    value = _json(body)
    if value is _NO_JSON:
        return "", {}, "it is no JSON"
    name = value.get("name") if isinstance(value, dict) else None
    if not isinstance(name, str):
        return "", {}, "it has no name"
    given = value.get("arguments", value.get("parameters"))
    if isinstance(given, str):
        given = _json(given) if given.strip() else None
    arguments = {} if given is None else given
    if not isinstance(arguments, dict):
        return name, {}, "its arguments are no object"
    return name, arguments, ""


_NO_JSON: Any = object()


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return _NO_JSON


def _joined(items: Sequence[Speech | Call]) -> Iterator[Speech | Call]:
    """`items` with neighbouring speech in one piece."""
    speech: Speech | None = None
    for item in items:
        if isinstance(item, Speech):
            speech = _both(speech, item) if speech else item
            continue
        if speech:
            yield speech
        speech = None
        yield item
    if speech:
        yield speech


def _both(a: Speech, b: Speech) -> Speech:
    ends = a.ends + tuple(len(a.text) + end for end in b.ends)
    return Speech(a.ids + b.ids, a.places + b.places, a.text + b.text, ends)
