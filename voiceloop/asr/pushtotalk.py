"""Push to talk: the user says when a turn begins and ends."""

from __future__ import annotations

from voiceloop.asr.turns import Commitment, TurnEvent
from voiceloop.config import TurnConfig
from voiceloop.types import AudioFrame


class PushToTalk(Commitment):
    """A detector for a user who switches between talking and not talking, by setting `talking`.

    A turn begins with the first frame after talking is switched on.
    """

    def __init__(self, config: TurnConfig) -> None:
        super().__init__(config)
        self.talking = False

    def feed(self, frame: AudioFrame, probability: float) -> list[TurnEvent]:
        """While the user talks, begin a turn if there is none, and end a turn that has reached the
        maximum length. Otherwise return no events."""
        if self.talking:
            return super().feed(frame, probability)
        self._seen = frame.end
        return []
