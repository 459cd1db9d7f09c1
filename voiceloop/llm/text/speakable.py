"""Find the tokens of a vocabulary that cannot be spoken: emoji and other pictures, and parts of
them.

Models decorate their replies for readers, but a voice cannot say these tokens. So they are banned
(`Sampling.banned`). This module knows no models.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from voiceloop.llm.text.translation import meanings

PICTURES = re.compile(
    "[\u2190-\u21ff\u2300-\u23ff\u2500-\u27bf\u2b00-\u2bff\ufe0f\U0001f000-\U0001fbff]"
)
"""A pattern of arrows, technical and geometric signs, lines, dingbats, emoji, and the character
that turns a sign into an emoji. Signs that are read aloud by name (° © € ½ +) do not match."""
_BEGUN = re.compile(rb"(?:\xf0(?:\x9f.?)?|\xe2[\x94-\x9e\xac-\xaf]|\xef\xb8)\Z", re.DOTALL)
"""A pattern of the first bytes of a picture at the end of a token. The next token has the other
bytes. A few rare ideographs begin with the same byte as emoji (0xF0), so tokens with their first
bytes match too."""


def unspeakable(vocab: Mapping[str, int]) -> frozenset[int]:
    """Return the ids of the tokens that contain a picture or end with the first bytes of a picture.
    No special token is among them, because special tokens contain no pictures."""
    return frozenset(index for index, meaning in meanings(vocab).items() if _is_picture(meaning))


def _is_picture(meaning: bytes) -> bool:
    if meaning.isascii():
        return False
    text = meaning.decode("utf-8", "ignore")
    return bool(PICTURES.search(text) or _BEGUN.search(meaning))
