"""Takes in which a sound is made while the answer plays."""

from __future__ import annotations

from lab.conversations.clips import Interruption, LabClip
from voiceloop.audio.devices import NullSpeaker
from voiceloop.audio.frames import SPEECH_RATE
from voiceloop.bench.clips import Clip
from voiceloop.bench.room import Room
from voiceloop.bench.takes import SPEAKER_RATE, Studio
from voiceloop.types import Clause, Event, Pcm, TurnTrace


class InterruptedRoom(Room):
    """A room in which the user makes a sound some time after the first clause has been said."""

    def __init__(self, clip: Clip, sound: Interruption) -> None:
        super().__init__(clip)
        self._sound = sound
        self._expected = True

    @property
    def finished(self) -> bool:
        """True once the last sound has been heard."""
        made = 0 if self.interrupted is None else self.interrupted + len(self._sound.pcm)
        last = max(len(self.clip.pcm), made)
        return not self._expected and self.position >= last

    def see(self, event: Event) -> None:
        """Make the sound in time after the first clause; what is not answered gets none."""
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
        """Return what is heard of the clip and of the sound."""
        pcm = self.clip.read(start, count)
        if self.interrupted is not None:
            begin, sound = self.interrupted, self._sound.pcm
            first, last = max(begin, start), min(begin + len(sound), start + count)
            if first < last:
                pcm[first - start : last - start] += sound[first - begin : last - begin]
        return pcm


class InterruptedStudio(Studio):
    """Lets a clip's interruption be made while the reply plays, which then plays to its end."""

    def stage(self, clip: Clip) -> tuple[Room, NullSpeaker]:
        """Return a room with the clip's interruption, and a speaker that takes its time."""
        assert isinstance(clip, LabClip) and clip.interruption is not None
        return InterruptedRoom(clip, clip.interruption), NullSpeaker(SPEAKER_RATE)
