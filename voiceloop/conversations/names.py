"""Checks the names of kept conversations."""

from __future__ import annotations

import unicodedata

from voiceloop.errors import ConfigError
from voiceloop.terminal import printable

LONGEST = 64
"""Maximum number of characters in a name."""
_HINT = f"name it in at most {LONGEST} letters, digits, spaces or - . _"


def checked(name: str) -> str:
    """Return `name` in the form that the store keeps (Unicode NFC).

    Raises ConfigError if `name` is empty, too long, looks like a path or an option, begins or ends
    with a space, or has invisible characters.
    """
    name = unicodedata.normalize("NFC", name)
    why = _fault(name)
    if why:
        shown = printable(name if len(name) <= LONGEST else f"{name[:20]}…")
        raise ConfigError(f"a conversation cannot be named '{shown}': {why}", _HINT)
    return name


def _fault(name: str) -> str:
    """Return why `name` is not allowed as a name; an empty string if it is allowed."""
    if not name.strip():
        return "the name is empty"
    if len(name) > LONGEST:
        return f"the name has {len(name)} characters"
    if not name.isprintable():
        return "the name has characters that cannot be seen"
    if name != name.strip():
        return "the name begins or ends with a space"
    if set(name) & set("/\\:") or not name.strip("."):
        return "the name is a path"
    return "the name looks like an option" if name.startswith("-") else ""
