"""Audio on the wire: PCM16, little-endian, mono, 24 kHz; in JSON it is base64."""

from __future__ import annotations

import binascii
from typing import Self

from voiceloop.schema import Mistake

RATE = 24_000
"""Hertz of all audio on the wire."""


class Pcm(bytes):
    """Whole samples of 16 bits. Made of bytes, or of their base64."""

    described = "audio in base64"

    def __new__(cls, data: str | bytes) -> Self:
        """Raises Mistake for what is not base64, or not whole samples."""
        # A number would make so many zeros.
        found = super().__new__(cls, _decoded(data) if isinstance(data, str) else memoryview(data))
        if len(found) % 2:
            raise Mistake(
                f"has {len(found)} byte{'s' * (len(found) != 1)}, not a whole number of samples",
                "send PCM16: two bytes for each sample",
            )
        return found


def _decoded(text: str) -> bytes:
    try:
        data = binascii.a2b_base64(text, strict_mode=True)
    except ValueError:
        data = None
    if data is None or not _encodes(data[(len(data) - 1) // 3 * 3 :], text[-4:]):
        raise Mistake("is not base64", "use the standard alphabet, with padding")
    return data


def _encodes(data: bytes, text: str) -> bool:
    """Whether an encoder makes `text` of `data`; damage can hit bits that stand for no byte."""
    return binascii.b2a_base64(data, newline=False) == text.encode()
