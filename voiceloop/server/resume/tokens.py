"""The tokens that open a session.

A token has 128 random bits that find the session and 128 that prove the right to it. Only the
SHA-256 of each half is kept, so a dump of memory or of a store reveals no token.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from typing import NamedTuple

Random = Callable[[int], bytes]
"""A function that returns a given number of bytes that nobody can guess."""

_HALF = 16
"""Bytes of each half of a token."""
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")
"""Form of a token: both halves in URL-safe base64, without padding."""


class Token(NamedTuple):
    """A token. It is sent to a client, and kept nowhere."""

    finder: bytes
    """The half that all tokens of a session share."""
    secret: bytes
    """The half that proves the right to the session."""

    @property
    def name(self) -> str:
        """The name of the session in a store."""
        return f"session:{hashlib.sha256(self.finder).hexdigest()}"

    @property
    def proof(self) -> bytes:
        """The SHA-256 of the secret half, which a store keeps."""
        return hashlib.sha256(self.secret).digest()

    @property
    def text(self) -> str:
        """The text that a client gets."""
        return urlsafe_b64encode(self.finder + self.secret).rstrip(b"=").decode()


def new_token(finder: bytes | None = None, random: Random = secrets.token_bytes) -> Token:
    """Return a token of the session with this `finder`, or of a new session."""
    return Token(finder or random(_HALF), random(_HALF))


def read_token(text: str) -> Token | None:
    """Return the token that a client shows; None if `text` does not have the form of a token."""
    if not _TOKEN.fullmatch(text):
        return None
    both = urlsafe_b64decode(f"{text}=")
    return Token(both[:_HALF], both[_HALF:])
