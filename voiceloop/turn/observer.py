"""Observes a conversation on its model's thread, and keeps what the event loop needs to know."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass

from voiceloop.engines import Conversation, Steps, T


@dataclass(frozen=True, slots=True)
class ConversationStanding:
    """The state of a conversation after one of its steps. Each field is a copy of the value of that
    name in `Conversation`; `end_probability` comes from `end_of_turn_probability`."""

    exchanges: int
    tokens_read: int
    limited: bool
    end_probability: float | None


class Observer:
    """An observer of one conversation.

    Steps change a conversation on the thread of its model, so the event loop must not read the
    conversation. The loop reads `standing` instead. `standing` is replaced after each step, before
    the item of the step reaches the loop.
    """

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self.standing = self._look()

    def steps(self, steps: Steps[T]) -> Steps[T]:
        """Run `steps` of the conversation, and replace `standing` after each."""
        with closing(steps):
            for item in steps:
                self.standing = self._look()
                yield item
        self.standing = self._look()

    def _look(self) -> ConversationStanding:
        seen = self._conversation
        probability = seen.end_of_turn_probability()
        return ConversationStanding(seen.exchanges, seen.tokens_read, seen.limited, probability)
