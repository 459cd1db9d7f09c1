"""The API keys that open the server: where they are read from, and how one is recognised.

A key comes from the environment or a file, never from a command line or a URL: those are seen by
others and kept in logs. Once read, a key is kept as a hash. This module does not know how a client
sends one.
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
"""The environment variable that may hold one key."""
LENGTHS = range(16, 257)
"""Characters that a key may have: enough not to be guessed, few enough for a header."""
MAX_FILE_BYTES = 65536
"""A file of keys is no larger."""

# A key also travels as part of a subprotocol, so it is made of what a token of HTTP is made of
# (RFC 9110, 5.6.2).
_KEY = re.compile(r"[A-Za-z0-9!$%&'*+.^_`|~-][A-Za-z0-9!#$%&'*+.^_`|~-]*")
_MAKE_ONE = "`openssl rand -hex 32` makes a good key"


class Keyring:
    """Knows keys when it sees them, and nothing else about them."""

    def __init__(self, keys: Iterable[str]) -> None:
        """ValueError where there is no key: an empty ring would be a door that nobody opens."""
        self._ids = {_digest(key): _name(key) for key in keys}
        if not self._ids:
            raise ValueError("no keys")

    def match(self, offered: str) -> str | None:
        """The id of the key that `offered` is, by which logs tell keys apart; none where it is none
        of them. A key cannot be found from its id.

        The time that it takes depends on the length of `offered` alone: hashes are compared, each
        of them to its end, and all of them whichever matches.
        """
        digest, found = _digest(offered), None
        for known, name in self._ids.items():
            if hmac.compare_digest(known, digest):
                found = name
        return found


def read_keys(environ: Mapping[str, str], file: Path | None) -> Keyring | None:
    """The keys of the variable or of `file`, which has one a line; none where neither is given.

    In a file, empty lines and those that begin with # do not count. ConfigError where both are
    given, where a key is missing or unfit, and where the file cannot be read or others may read
    or change it. No message shows a key.
    """
    if file is not None and VARIABLE in environ:
        raise ConfigError(f"both {VARIABLE} and the key file {file} are given", "keep one of them")
    if file is not None:
        return Keyring(_keys_of(file))
    if VARIABLE not in environ:
        return None
    key = environ[VARIABLE].strip()
    if not key:
        raise ConfigError(f"{VARIABLE} is set but empty", f"unset it, or set it: {_MAKE_ONE}")
    return Keyring([_checked(key, VARIABLE)])


def read_private(path: Path, what: str) -> bytes:
    """The bytes of a small file that others on this machine can neither read nor change.

    ConfigError, which calls the file `what`, where that is not so or it cannot be read.
    """
    try:
        with open(path, "rb", opener=_without_waiting) as opened:
            mode = os.fstat(opened.fileno()).st_mode
            if not stat.S_ISREG(mode):
                raise ConfigError(f"{what} {path} is not a file", "name a regular file")
            # On Windows the mode says nothing of who may read a file.
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
    # A pipe that nobody writes to must not hang the start; Windows has none in folders.
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
    # Not a piece of the digest that keys are recognised by.
    return hashlib.blake2b(key.encode(), digest_size=6, person=b"voiceloop key id").hexdigest()
