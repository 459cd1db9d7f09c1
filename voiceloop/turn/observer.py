"""How a conversation stands, read on its model's thread and published to the event loop."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass

from voiceloop.engines import Conversation, Steps, T


@dataclass(frozen=True, slots=True)
class Standing:
    """How a conversation stands after one of its steps; the fields are the conversation's."""

    exchanges: int
    tokens_read: int
    limited: bool
    end_probability: float | None


class Observer:
    """Publishes how a conversation stands after each step.

    Steps change a conversation on the thread of its model, so the event loop must not read it. It
    reads `standing`, which is replaced after each step and before the loop gets that step's item.
    """

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self.standing = self._look()

    def steps(self, steps: Steps[T]) -> Steps[T]:
        """Run `steps` of the conversation, and look after each."""
        with closing(steps):
            for item in steps:
                self.standing = self._look()
                yield item
        self.standing = self._look()

    def _look(self) -> Standing:
        seen = self._conversation
        probability = seen.end_of_turn_probability()
        return Standing(seen.exchanges, seen.tokens_read, seen.limited, probability)
