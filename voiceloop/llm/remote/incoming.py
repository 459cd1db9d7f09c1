"""What comes of a reply from elsewhere: what is to be said, what is thought, what is called.

What is said and what is thought are limited apart, so this counts thoughts, wherever the server
puts them. This module sends nothing, and does not know what becomes of what is said.
"""

from __future__ import annotations

from collections.abc import Sequence

from voiceloop.llm.remote.chatstream import End, Piece, PromptUsage, StreamedCall, Text, Thought
from voiceloop.llm.text.leaks import Leaks
from voiceloop.llm.text.parts import MARKS, THOUGHTS, Parts, ReplyPart

LETTERS = 8
"""A token has no more, on average, however a server cuts what it sends."""
_ENDS = frozenset(THOUGHTS.values())


class Incoming:
    """One answer of a server: `push` its pieces as they come, then `finish` it once."""

    def __init__(self, stop: Sequence[str] = (), *, thinking: bool = False) -> None:
        """`thinking`: it is likely to begin within a thought, of which only the end is marked."""
        self.thought = 0
        """Tokens that the model has thought, as far as that is known."""
        self.lone = False
        """A thought has ended whose beginning was not marked, so it was taken for speech."""
        self.cut = False
        """The reply has had as many tokens as it may."""
        self._stop = stop
        self._parts = Parts(thinking=thinking, stop=stop)
        self._leaks = Leaks()
        self._silent = 0
        """Signs of life that say nothing."""
        self._pending = 0
        """Characters of which it is not certain what they are."""
        self._spoke = False
        self._within = thinking
        """The parts are within a thought."""
        self._supposed: list[str] | None = [] if thinking else None
        """All text, as long as nothing has shown that it is a thought."""

    @property
    def over(self) -> bool:
        """Whatever follows does not belong to the reply."""
        return self._parts.stopped or self._leaks.over

    @property
    def silence(self) -> int:
        """For how many tokens, at least, nothing has come of the reply."""
        return self.thought + self._silent + self._pending // LETTERS

    def push(self, piece: Piece) -> Sequence[ReplyPart | StreamedCall]:
        """What has become certain with the next piece."""
        match piece:
            case Text(text):
                return self._said(self._leaks.push(text))
            case Thought(text):
                self.thought += _tokens(text)
                self._silent += not text
            case StreamedCall():
                return [piece]
            case End(cut):
                self.cut = cut
            case PromptUsage(thought=thought):
                self.thought = max(self.thought, thought)
            case _:
                pass
        return []

    def finish(self) -> Sequence[ReplyPart | StreamedCall]:
        """What is left. A reply that was taken for a thought, and has come to its end without the
        end of one, was none."""
        left = self._said(self._leaks.finish())
        if not self._parts.stopped:
            left += self._noted(self._parts.finish())
        if self._supposed is None or self.cut:
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
        """A thought, some of one, or a mark."""
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
    """How many tokens a text that came by itself has, at least."""
    return max(len(text.split()), len(text) // LETTERS)
