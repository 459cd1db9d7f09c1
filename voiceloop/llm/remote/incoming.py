"""Sort the pieces of a server's reply into speech, thoughts and tool calls.

Speech and thoughts have separate limits. So this module counts the tokens of thoughts, in whatever
form the server sends them. It sends nothing, and does not know how speech is used.
"""

from __future__ import annotations

from collections.abc import Sequence

from voiceloop.llm.remote.chatstream import End, Piece, PromptUsage, StreamedCall, Text, Thought
from voiceloop.llm.text.leaks import Leaks
from voiceloop.llm.text.parts import MARKS, THOUGHTS, Parts, ReplyPart

LETTERS = 8
"""Upper estimate of the average number of characters in a token. It serves to estimate numbers of
tokens from texts, because pieces of text may contain any number of tokens."""
_ENDS = frozenset(THOUGHTS.values())


class Incoming:
    """A parser of one response. Call `push` with its pieces, then `finish` once."""

    def __init__(self, stop: Sequence[str] = (), *, thinking: bool = False) -> None:
        """`thinking` says that the reply probably begins inside a thought without a start mark."""
        self.thought = 0
        """Number of thought tokens: an estimate, or the server's count if that is larger."""
        self.lone = False
        """Whether the end mark of a thought came without a start mark. Then the thought was taken
        for speech."""
        self.cut = False
        """Whether the reply was cut off at its token limit."""
        self.filtered = False
        """Whether a filter of the server has cut the reply off."""
        self._stop = stop
        self._parts = Parts(thinking=thinking, stop=stop)
        self._leaks = Leaks()
        self._silent = 0
        """Number of thoughts without text. They only show that the server is at work."""
        self._pending = 0
        """Number of characters that may still turn out to be speech, a thought or a call."""
        self._spoke = False
        self._within = thinking
        """Whether the text is inside a thought."""
        self._supposed: list[str] | None = [] if thinking else None
        """All text so far, while it is taken for a thought. None if the reply is not supposed to
        begin inside a thought, or once the end of a thought has come."""

    @property
    def over(self) -> bool:
        """Whether the reply is over, so that later text does not belong to it."""
        return self._parts.stopped or self._leaks.over

    @property
    def silence(self) -> int:
        """Lower estimate of the number of tokens so far that are not part of speech or of a
        call."""
        return self.thought + self._silent + self._pending // LETTERS

    def push(self, piece: Piece) -> Sequence[ReplyPart | StreamedCall]:
        """Add `piece` and return the parts and calls that are certain now."""
        match piece:
            case Text(text):
                return self._said(self._leaks.push(text))
            case Thought(text):
                self.thought += _tokens(text)
                self._silent += not text
            case StreamedCall():
                return [piece]
            case End():
                self.cut, self.filtered = piece.cut, piece.filtered
            case PromptUsage(thought=thought):
                self.thought = max(self.thought, thought)
            case _:
                pass
        return []

    def finish(self) -> Sequence[ReplyPart | StreamedCall]:
        """Return the remaining parts and calls.

        If the reply was taken for a thought from its beginning, but is complete and contains no end
        of a thought, it was no thought. Then return the parts of its whole text instead.
        """
        left = self._said(self._leaks.finish())
        if not self._parts.stopped:
            left += self._noted(self._parts.finish())
        if self._supposed is None or self.cut or self.filtered:
            return left
        plain = Parts(stop=self._stop)
        return [*plain.push("".join(self._supposed)), *plain.finish()]

    def _said(self, text: str) -> list[ReplyPart]:
        if not text:
            return []
        self._pending += len(text)
        if self._supposed is not None:
            self._supposed.append(text)
        return self._noted(self._parts.push(text))

    def _noted(self, parts: list[ReplyPart]) -> list[ReplyPart]:
        for part in parts:
            self._pending -= len(part.text)
            if part.spoken:
                self._spoke = self._spoke or not part.text.isspace()
            elif not part.calls:
                self._silenced(part.text)
        return parts

    def _silenced(self, text: str) -> None:
        """Count the tokens of a silent text: of a thought, a piece of a thought, or a mark."""
        if text.startswith(tuple(THOUGHTS)):
            self._within = True
        elif text in _ENDS and not self._within and self._spoke:
            self.lone = True
        if text not in MARKS:
            self.thought += _tokens(text)
        if text.endswith(tuple(_ENDS)):
            self._within = False
            self._supposed = None


def _tokens(text: str) -> int:
    """Return a lower estimate of the number of tokens in a text."""
    return max(len(text.split()), len(text) // LETTERS)
