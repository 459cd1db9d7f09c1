"""Push to talk: the user says when a turn begins and ends."""

from __future__ import annotations

from voiceloop.asr.turns import Commitment, TurnEvent
from voiceloop.config import TurnConfig
from voiceloop.types import AudioFrame


class PushToTalk(Commitment):
    """A detector for a user who switches between talking and not talking.

    A turn begins with the first frame after talking is switched on.
    """

    def __init__(self, config: TurnConfig) -> None:
        super().__init__(config)
        self.talking = False

    def feed(self, frame: AudioFrame, probability: float) -> list[TurnEvent]:
        """Begin a turn if the user talks and there is none, and end one that has reached the
        maximum length."""
        if self.talking:
            return super().feed(frame, probability)
        self._seen = frame.end
        return []
