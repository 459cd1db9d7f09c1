"""Collect the text of one candidate, and tell when its first clause or the whole reply is complete.

This module knows no models and no scores.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from voiceloop.llm.text.output import Output, SpeechOutput

CLAUSE_WORDS = 3
"""Minimum number of words after which a punctuation mark ends the first clause."""
CLAUSE_MOST_WORDS = 8
"""Maximum number of words of a first clause. More words count as a clause even without a
punctuation mark."""
_MARK = re.compile(r"[,;:.!?…。！？，][\"'”’»)\]]*$")  # noqa: RUF001


class CandidateUtterance:
    """Collects the text of one reply, token by token."""

    def __init__(self, output: Output, eos: frozenset[int], *, clause: bool) -> None:
        """`output` turns the tokens into text; it must not have been used before. `eos` are the
        tokens that end a reply. With `clause`, the candidate is done after its first clause,
        otherwise after the whole reply."""
        self.text = ""
        """The text that would be spoken, as far as it is certain."""
        self.complete = False
        """Whether the reply is over."""
        self._output = output
        self._eos = eos
        self._clause = clause

    def push(self, token: int) -> bool:
        """Add `token`. Return whether the candidate is done: after the first clause or the whole
        reply."""
        if token in self._eos:
            self._add(self._output.finish())
            self.complete = True
            return True
        self._add(self._output.push([token]))
        self.complete = self._output.stopped is not None
        return self.complete or (self._clause and ends_clause(self.text))

    def _add(self, items: Sequence[object]) -> None:
        self.text += "".join(item.text for item in items if isinstance(item, SpeechOutput))


def ends_clause(text: str) -> bool:
    """Tell roughly whether `text`, the beginning of a reply, contains a whole clause.

    Clauses for speech are cut by other code, with more care. Here it is enough that all candidates
    are about equally long, so a mark that does not end a clause does no harm.
    """
    words = len(text.split())
    if words > CLAUSE_MOST_WORDS:  # the last word may not be complete
        return True
    return words >= CLAUSE_WORDS and _MARK.search(text.rstrip()) is not None
