"""What a reply that is heard may be: as long as a person listens, and no echo of what they said.

Both are judged by the text as it grows. This module knows no models and no tokens.
"""

from __future__ import annotations

import re

_END = re.compile(r"[.!?…][\"'”’»)\]]*(?=\s)|[。！？।؟]|\n")  # noqa: RUF001
"""Where a sentence ends in a text that goes on."""
_LAST_WORD = re.compile(r"(\w+)\W*$")
_SHORT = frozenset("mr mrs ms dr prof st vs no etc dra sra sr nr bzw ca".split())
"""Words whose period ends no sentence; single letters are others."""
ECHO_WORDS = 3
"""A greeting may be given back; so many words or more are an echo."""


def sentence_end(text: str, start: int) -> int | None:
    """Index behind the first sentence of `text` that ends at `start` or later, None where none does
    for certain: a period needs something behind it."""
    for found in _END.finditer(text):
        word = _LAST_WORD.search(text, 0, found.start())
        short = word is not None and (len(word[1]) == 1 or word[1].casefold() in _SHORT)
        if found.end() >= start and not (short and text[found.start()] == "."):
            return found.end()
    return None


class Echo:
    """Tells whether a reply only gives back what it answers."""

    def __init__(self, said: str) -> None:
        words = _words(said)
        self._said = "".join(words) if len(words) >= ECHO_WORDS else ""
        self._reply = ""

    def push(self, text: str) -> bool:
        """Whether the reply, which goes on with `text`, may still become one."""
        self._reply += text
        return bool(self._said) and self._said.startswith("".join(_words(self._reply)))

    @property
    def whole(self) -> bool:
        """Whether the reply, as it is, is one."""
        return bool(self._said) and self._said == "".join(_words(self._reply))


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())
