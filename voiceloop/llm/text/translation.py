"""Translate a growing sequence of one tokenizer's tokens into tokens of another tokenizer.

Both sequences have the same text. Text is passed on once it is certain, in whole words if possible.
When the last word grows, the whole word is encoded again, because the other tokenizer may split the
longer word at other places. The tokens before that word do not change.

Of a vocabulary, the tokens that cannot be spoken are found too: emoji and other pictures, and parts
of them. Models decorate their replies for readers, but a voice cannot say these tokens. So they are
banned (`Sampling.banned`). This module knows no models.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from voiceloop.llm.text.template import special_tokens

ANCHOR = "\n"
"""Text that is put before a word to encode it as if it followed other text. Hardly any token
contains both this text and the beginning of a word."""
LONGEST = 64
"""Number of characters after which a word is complete, even if no space follows."""

PICTURES = re.compile(
    "[\u2190-\u21ff\u2300-\u23ff\u2500-\u27bf\u2b00-\u2bff\ufe0f\U0001f000-\U0001fbff]"
)
"""A pattern of arrows, technical and geometric signs, lines, dingbats, emoji, and the character
that turns a sign into an emoji. Signs that are read aloud by name (° © € ½ +) do not match."""
_BEGUN = re.compile(rb"(?:\xf0(?:\x9f.?)?|\xe2[\x94-\x9e\xac-\xaf]|\xef\xb8)\Z", re.DOTALL)
"""A pattern of the first bytes of a picture at the end of a token. The next token has the other
bytes. A few rare ideographs begin with the same byte as emoji (0xF0), so tokens with their first
bytes match too."""


@dataclass(frozen=True, slots=True)
class _Point:
    """State of the translation after a prefix of the sequence."""

    tail: tuple[int, ...] = ()
    """Tokens whose text is not certain yet. Before them, there are tokens that only give
    context."""
    known: int = 0
    """Number of tokens at the start of `tail` that are context only."""
    word: str = ""
    """Text of the last word, which may still grow."""
    words: int = 0
    """Number of the other tokenizer's tokens for all text before `word`."""


class Translation:
    """A translation of a sequence of tokens that may grow or be cut back."""

    def __init__(self, source: Any, other: Any) -> None:
        """`source` and `other` are tokenizers of transformers, or `tokens.Tokenizer`."""
        self._source, self._other = source, other
        self._special = special_tokens(source)
        self._specials = {text: index for index, text in special_tokens(other).items()}
        self._pieces: dict[str, list[int]] = {}
        """Cached tokens of the other tokenizer, by word."""
        # Some tokenizers put a space before any text that they encode.
        alone = {text: self._plain(text) for text in (ANCHOR, " b", "b", "\n")}
        self._anchored = any(
            self._plain(ANCHOR + text) != alone[ANCHOR] + ids for text, ids in alone.items()
        )
        self._words = [*other.encode("", add_special_tokens=True)]
        """The other tokenizer's tokens for complete words. Only the first `_points[-1].words` of
        them are valid."""
        self._begun = len(self._words)
        self._points = [_Point(words=self._begun)]
        self._ids: list[int] = []

    def translate(self, ids: Sequence[int]) -> list[int]:
        """Return the other tokenizer's tokens for the text of `ids`. An incomplete last character
        is left out."""
        same = common(self._ids, ids)
        self.rollback(same)
        for token in ids[same:]:
            self._points.append(self._after(self._points[-1], token))
            self._ids.append(token)
        point = self._points[-1]
        return self._words[: point.words] + self._encoded(point.word)

    def rollback(self, length: int) -> None:
        """Forget the tokens from index `length` on."""
        del self._ids[length:], self._points[length + 1 :]

    def _after(self, point: _Point, token: int) -> _Point:
        text = self._special.get(token)
        if text is not None:
            meant = self._specials.get(text)
            ids = [meant] if meant is not None else self._encoded(text)
            self._words[point.words :] = self._encoded(point.word) + ids
            return _Point(words=len(self._words))
        tail = (*point.tail, token)
        known, text = self._decode(tail[: point.known]), self._decode(tail)
        if text.endswith("\ufffd") or len(text) <= len(known):
            return _Point(tail, point.known, point.word, point.words)
        piece, tail = text[len(known) :], tail[point.known :]
        if not point.word or piece[0].isspace() or len(point.word) > LONGEST:
            self._words[point.words :] = self._encoded(point.word)
            return _Point(tail, len(tail), piece, len(self._words))
        word = point.word + piece
        return _Point(tail, len(tail), word, point.words)

    def _decode(self, ids: Sequence[int]) -> str:
        return self._source.decode(
            list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False
        )

    def _encoded(self, word: str) -> list[int]:
        if word not in self._pieces:
            if len(self._pieces) > 10_000:
                self._pieces.clear()
            self._pieces[word] = self._behind(word) if self._anchored else self._plain(word)
        return self._pieces[word]

    def _behind(self, word: str) -> list[int]:
        """Return the tokens that `word` has when other text comes before it."""
        anchor, whole = self._plain(ANCHOR), self._plain(ANCHOR + word)
        return whole[len(anchor) :] if whole[: len(anchor)] == anchor else self._plain(word)

    def _plain(self, text: str) -> list[int]:
        return self._other.encode(text, add_special_tokens=False) if text else []


def shared(source: Mapping[str, int], other: Mapping[str, int]) -> dict[int, int]:
    """Map each id of `other` to the id of the token in `source` with the same text.

    Tokens of `other` are left out if no token of `source` has their text.
    """
    meant = {meaning: index for index, meaning in meanings(source).items()}
    # Of two tokens with the same bytes, the one with the lower id stands for a single byte. The
    # token with the higher id is used.
    own = {meaning: index for index, meaning in sorted(meanings(other).items())}
    return {index: meant[meaning] for meaning, index in own.items() if meaning in meant}


def meanings(vocab: Mapping[str, int]) -> dict[int, bytes]:
    """Return the bytes of each token by its id. `vocab` maps texts in the notation of GPT-2 or
    SentencePiece to ids."""
    if "Ġ" in vocab or "Ċ" in vocab:
        table = _bytes_of_characters()
        return {
            index: bytes(table[character] for character in text)
            if all(character in table for character in text)
            else text.encode()
            for text, index in vocab.items()
        }
    return {index: _spelled(text) for text, index in vocab.items()}


def unspeakable(vocab: Mapping[str, int]) -> frozenset[int]:
    """Return the ids of the tokens that contain a picture or end with the first bytes of a picture.
    No special token is among them, because special tokens contain no pictures."""
    return frozenset(index for index, meaning in meanings(vocab).items() if _is_picture(meaning))


def _is_picture(meaning: bytes) -> bool:
    if meaning.isascii():
        return False
    text = meaning.decode("utf-8", "ignore")
    return bool(PICTURES.search(text) or _BEGUN.search(meaning))


def _spelled(text: str) -> bytes:
    """Return the bytes of a SentencePiece token."""
    if len(text) == 6 and text.startswith("<0x") and text.endswith(">"):
        return bytes([int(text[3:5], 16)])
    return text.replace("▁", " ").encode()


def _bytes_of_characters() -> dict[str, int]:
    """Return the byte that each character stands for in GPT-2's notation. Printable bytes are their
    own characters. All other bytes have the characters from number 256 on."""
    printed = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [byte for byte in range(256) if byte not in printed]
    table = {chr(byte): byte for byte in printed}
    return table | {chr(256 + at): byte for at, byte in enumerate(rest)}


def common(a: Sequence[int], b: Sequence[int]) -> int:
    """Return the length of the longest common prefix of `a` and `b`."""
    pairs = enumerate(zip(a, b, strict=False))
    return next((i for i, (x, y) in pairs if x != y), min(len(a), len(b)))
