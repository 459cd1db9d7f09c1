"""Which tokens of a vocabulary nobody can say: emoji and other pictures, whole or in part.

A model that writes for eyes decorates, and a voice is silent meanwhile. So they are never chosen
(`Sampling.banned`). This module knows no models.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from voiceloop.llm.text.translation import meanings

PICTURES = re.compile(
    "[\u2190-\u21ff\u2300-\u23ff\u2500-\u27bf\u2b00-\u2bff\ufe0f\U0001f000-\U0001fbff]"
)
"""Arrows, technical and geometric signs, lines, dingbats, emoji, and the mark that makes one of a
sign. Signs that have a name when they are read aloud (° © € ½ +) are no pictures."""
_BEGUN = re.compile(rb"(?:\xf0(?:\x9f.?)?|\xe2[\x94-\x9e\xac-\xaf]|\xef\xb8)\Z", re.DOTALL)
"""The first bytes of a picture at the end of a token, which the next one would complete. Those of
ideographs that few fonts know begin like the first of these."""


def unspeakable(vocab: Mapping[str, int]) -> frozenset[int]:
    """The tokens that contain a picture, or the beginning or the end of one; special tokens, which
    are written in plain letters, are none of them."""
    return frozenset(index for index, meaning in meanings(vocab).items() if _is_picture(meaning))


def _is_picture(meaning: bytes) -> bool:
    if meaning.isascii():
        return False
    text = meaning.decode("utf-8", "ignore")
    return bool(PICTURES.search(text) or _BEGUN.search(meaning))
