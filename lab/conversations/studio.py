"""Takes in which the user makes a sound while the reply plays."""

from __future__ import annotations

from lab.conversations.clips import Interruption, LabClip
from voiceloop.audio.devices import NullSpeaker
from voiceloop.audio.frames import SPEECH_RATE
from voiceloop.bench.clips import Clip
from voiceloop.bench.takes import SPEAKER_RATE, Room, Studio
from voiceloop.types import Clause, Event, Pcm, TurnTrace


class InterruptedRoom(Room):
    """A room in which the user makes a sound some time after the reply has begun to play."""

    def __init__(self, clip: Clip, sound: Interruption) -> None:
        super().__init__(clip)
        self._sound = sound
        self._expected = True

    @property
    def finished(self) -> bool:
        """True once the clip and the user's sound have been heard."""
        made = 0 if self.interrupted is None else self.interrupted + len(self._sound.pcm)
        last = max(len(self.clip.pcm), made)
        return not self._expected and self.position >= last

    def see(self, event: Event) -> None:
        """Set the time of the sound when the first clause begins to play. If no reply came, there
        is no sound."""
        match event:
            case TurnTrace():
                self._expected = False
            case Clause() if self.interrupted is None:
                delay_s = self._sound.delay_ms / 1000 - self._sound.start / SPEECH_RATE
                self.interrupted = self.position + max(0, round(delay_s * SPEECH_RATE))
                self._expected = False
            case _:
                pass

    def heard(self, start: int, count: int) -> Pcm:
        """Return `count` samples of the clip from `start` on, with the sound added."""
        pcm = self.clip.read(start, count)
        if self.interrupted is not None:
            begin, sound = self.interrupted, self._sound.pcm
            first, last = max(begin, start), min(begin + len(sound), start + count)
            if first < last:
                pcm[first - start : last - start] += sound[first - begin : last - begin]
        return pcm


class InterruptedStudio(Studio):
    """A studio that plays whole replies in real time, with each clip's interruption."""

    def stage(self, clip: Clip) -> tuple[Room, NullSpeaker]:
        """Return a room with the clip's interruption, and a speaker that plays in real time."""
        assert isinstance(clip, LabClip) and clip.interruption is not None
        return InterruptedRoom(clip, clip.interruption), NullSpeaker(SPEAKER_RATE)
