"""The server's API keys: how they are read, and how a client's key is compared with them.

A key comes from the environment or a file, never from a command line or a URL: other people can
see those, and logs keep them. Only a hash of a key is kept in memory. This module does not know how
a client sends a key.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

from voiceloop.errors import ConfigError

VARIABLE = "VOICELOOP_API_KEY"
"""Name of the environment variable that may hold one key."""
LENGTHS = range(16, 257)
"""Allowed lengths of a key, in characters: too long to guess, and short enough for a header."""
MAX_FILE_BYTES = 65536
"""Maximum size of a file with API keys or a private key, in bytes."""

# A key is also sent in the name of a subprotocol, so it may have only the characters of an HTTP
# token (RFC 9110, 5.6.2). It does not begin with #, which begins a comment in a file of keys.
_KEY = re.compile(r"[A-Za-z0-9!$%&'*+.^_`|~-][A-Za-z0-9!#$%&'*+.^_`|~-]*")
_MAKE_ONE = "`openssl rand -hex 32` makes a good key"


class Keyring:
    """A set of keys that keeps only their hashes and ids."""

    def __init__(self, keys: Iterable[str]) -> None:
        """Keep the hashes of `keys`. Raises ValueError if there are none: nobody could connect."""
        self._ids = {_digest(key): _name(key) for key in keys}
        if not self._ids:
            raise ValueError("no keys")

    def match(self, offered: str) -> str | None:
        """Return the id of the key `offered`, for logs; None if it is no key of this set. The id
        does not reveal the key.

        The time taken depends only on the length of `offered`: every hash is compared to its end,
        even after a match.
        """
        digest, found = _digest(offered), None
        for known, name in self._ids.items():
            if hmac.compare_digest(known, digest):
                found = name
        return found


def read_keys(environ: Mapping[str, str], file: Path | None) -> list[str]:
    """Read the key in `VARIABLE`, or the keys in `file`, one per line. Return none if there is
    neither.

    In a file, empty lines and those that begin with # are skipped. Raises ConfigError if both are
    given, if a key is missing or malformed, if the file cannot be read, and if every user of this
    machine can read or change it. No error shows a key.
    """
    if file is not None and VARIABLE in environ:
        raise ConfigError(f"both {VARIABLE} and the key file {file} are given", "keep one of them")
    if file is not None:
        return _keys_of(file)
    if VARIABLE not in environ:
        return []
    key = environ[VARIABLE].strip()
    if not key:
        raise ConfigError(f"{VARIABLE} is set but empty", f"unset it, or set it: {_MAKE_ONE}")
    return [_checked(key, VARIABLE)]


def read_private(path: Path, what: str) -> bytes:
    """Read a small file that not every user of this machine can read or change.

    Raises ConfigError if every user can, if the file is too large, or if it cannot be read. `what`
    is a description of the file for the error.
    """
    try:
        with open(path, "rb", opener=_without_waiting) as opened:
            mode = os.fstat(opened.fileno()).st_mode
            if not stat.S_ISREG(mode):
                raise ConfigError(f"{what} {path} is not a file", "name a regular file")
            # On Windows the mode does not say who may read a file.
            if os.name != "nt" and mode & (stat.S_IROTH | stat.S_IWOTH):
                raise ConfigError(
                    f"{what} {path} is open to every user of this machine", f"chmod 600 {path}"
                )
            held = opened.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise ConfigError(
            f"cannot read {what} {path}: {error.strerror}", "check its name and permissions"
        ) from error
    if len(held) > MAX_FILE_BYTES:
        raise ConfigError(f"{what} {path} is larger than {MAX_FILE_BYTES} bytes", "is it the one?")
    return held


def _keys_of(file: Path) -> list[str]:
    lines = read_private(file, "key file").decode("latin-1").split("\n")
    numbered = [(number, line.strip()) for number, line in enumerate(lines, start=1)]
    keys = [
        _checked(line, f"{file}: line {number}")
        for number, line in numbered
        if line and not line.startswith("#")
    ]
    if not keys:
        raise ConfigError(f"key file {file} holds no key", f"one a line; {_MAKE_ONE}")
    return keys


def _without_waiting(path: str, flags: int) -> int:
    # Opening a pipe without a writer must not block. On Windows no path names such a pipe.
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _checked(key: str, where: str) -> str:
    if not _KEY.fullmatch(key):
        raise ConfigError(
            f"{where} has a character that an API key cannot have",
            f"letters, digits, - and _ always fit; {_MAKE_ONE}",
        )
    if len(key) not in LENGTHS:
        raise ConfigError(
            f"{where} must have {LENGTHS[0]} to {LENGTHS[-1]} characters, not {len(key)}", _MAKE_ONE
        )
    return key


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()


def _name(key: str) -> str:
    # The digest by which keys are recognised cannot be computed from the id.
    return hashlib.blake2b(key.encode(), digest_size=6, person=b"voiceloop key id").hexdigest()
