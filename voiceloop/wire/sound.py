"""Audio on the wire: bytes in the format that the session has set; in JSON they are base64."""

from __future__ import annotations

import binascii
from typing import Self

from voiceloop.schema import Mistake

RATE = 24_000
"""Hertz in which audio is counted, whatever its format: a sample of G.711 counts as three."""


class AudioBytes(bytes):
    """Audio, made of bytes or of their base64. Only its format tells what samples they are."""

    described = "audio in base64"

    def __new__(cls, data: str | bytes) -> Self:
        """Raises Mistake for what is not base64."""
        # A number would make so many zeros.
        return super().__new__(cls, _decoded(data) if isinstance(data, str) else memoryview(data))


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
