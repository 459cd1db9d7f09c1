"""What one of several candidates has said so far, and whether that is far enough to judge it.

This module knows no models and no scores.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from voiceloop.llm.text.output import Output, Speech

CLAUSE_WORDS = 3
"""A mark ends the first clause if there are so many words before it."""
CLAUSE_MOST_WORDS = 8
"""So many words are a clause without a mark."""
_MARK = re.compile(r"[,;:.!?…。！？，][\"'”’»)\]]*$")  # noqa: RUF001


class Utterance:
    """Follows one candidate token by token."""

    def __init__(self, output: Output, eos: frozenset[int], *, clause: bool) -> None:
        """`output` is new; where a `clause` is enough, the candidate is judged by its first."""
        self.text = ""
        """What would be spoken of it, as far as it is certain."""
        self.complete = False
        """The reply is over."""
        self._output = output
        self._eos = eos
        self._clause = clause

    def push(self, token: int) -> bool:
        """Go on by a token; whether that is far enough."""
        if token in self._eos:
            self._add(self._output.finish())
            self.complete = True
            return True
        self._add(self._output.push([token]))
        self.complete = self._output.stopped is not None
        return self.complete or (self._clause and ends_clause(self.text))

    def _add(self, items: Sequence[object]) -> None:
        self.text += "".join(item.text for item in items if isinstance(item, Speech))


def ends_clause(text: str) -> bool:
    """Whether a reply that begins with `text` has come to the end of a first clause, about.

    What is spoken is cut elsewhere, with more care: here candidates only have to have said as much
    as that, so that a mark which does not end a clause does no harm.
    """
    words = len(text.split())
    if words > CLAUSE_MOST_WORDS:  # the last of them may not be complete
        return True
    return words >= CLAUSE_WORDS and _MARK.search(text.rstrip()) is not None
