"""Apply two rules to spoken replies: they end with a sentence, and they do not only echo the user.

Both rules are applied while the text grows. This module knows no models and no tokens.
"""

from __future__ import annotations

import re

_END = re.compile(r"[.!?…][\"'”’»)\]]*(?=\s)|[。！？।؟]|\n")  # noqa: RUF001
"""A pattern of the end of a sentence. Marks such as `.` match only before whitespace."""
_LAST_WORD = re.compile(r"(\w+)\W*$")
_SHORT = frozenset("mr mrs ms dr prof st vs no etc dra sra sr nr bzw ca".split())
"""Abbreviations with a period that does not end a sentence. A period after a single letter does not
end one either."""
ECHO_WORDS = 3
"""Minimum number of words of an echo. A shorter reply, such as a greeting, may repeat the user."""


def sentence_end(text: str, start: int) -> int | None:
    """Return the index after the first sentence of `text` that ends at index `start` or later. None
    if no end is certain: a mark such as a period ends a sentence only if whitespace follows."""
    for found in _END.finditer(text):
        word = _LAST_WORD.search(text, 0, found.start())
        short = word is not None and (len(word[1]) == 1 or word[1].casefold() in _SHORT)
        if found.end() >= start and not (short and text[found.start()] == "."):
            return found.end()
    return None


class Echo:
    """A detector of replies that only repeat the user's words."""

    def __init__(self, said: str) -> None:
        words = _words(said)
        self._said = "".join(words) if len(words) >= ECHO_WORDS else ""
        self._reply = ""

    def push(self, text: str) -> bool:
        """Add `text` to the reply. Return whether the whole reply may still be an echo."""
        self._reply += text
        return bool(self._said) and self._said.startswith("".join(_words(self._reply)))

    @property
    def whole(self) -> bool:
        """Whether the reply so far is an echo."""
        return bool(self._said) and self._said == "".join(_words(self._reply))


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())
