"""Audio in messages: bytes in the format that the session sets, in JSON as base64."""

from __future__ import annotations

import binascii
from typing import Self

from voiceloop.schema import Mistake

RATE = 24_000
"""Rate in Hz at which audio is counted in every format. A sample of G.711, at 8000 Hz, counts as
three."""


class AudioBytes(bytes):
    """Encoded audio, made from bytes or from their base64. It does not know its own format."""

    described = "audio in base64"

    def __new__(cls, data: str | bytes) -> Self:
        """Decode `data` if it is text. Raises Mistake if the text is not base64."""
        # Not `bytes(data)`: from a number n it would make n zeros. `memoryview` refuses a number.
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
    """Return whether `text` is the base64 of `data`. This finds damage in the last bits of the
    text, which belong to no byte."""
    return binascii.b2a_base64(data, newline=False) == text.encode()
