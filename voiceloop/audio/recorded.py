"""Speakers that record what a conversation plays, while it goes on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from voiceloop.audio.devices import Pace, PacedSpeaker, Speaker, unplayed
from voiceloop.audio.files import WavWriter
from voiceloop.audio.frames import fade_out, silence
from voiceloop.types import Pcm


class PlayedAudio(PacedSpeaker):
    """A speaker that passes on the samples that it has played.

    Each sample has a place. At real-time pace the place is the sample's index in a recording of the
    loudspeaker, silence included. At pace `max` silence does not count.
    """

    def __init__(
        self,
        rate: int,
        take: Callable[[int, Pcm], None],
        *,
        pace: Pace = "realtime",
        since: float | None = None,
    ) -> None:
        """Call `take(place, pcm)` with samples that were played; `place` is the place of the first
        one. Place 0 is at the time `since`, in seconds of the loop's clock; None means at the first
        sound."""
        super().__init__(rate, pace=pace)
        self._take = take
        self._begun = since
        self._held = silence(0)
        """Samples that may not have been played yet, and so may still be cut."""
        self._place = 0
        """Place of the first sample in `_held`."""

    def finish(self) -> None:
        """Pass on everything that was written."""
        self._settle(0)

    def write(self, pcm: Pcm) -> float:
        """Play `pcm` after all that was written before, and return when that begins."""
        begin = super().write(pcm)
        if self._begun is None:
            self._begun = self._since
        if self._count == len(pcm) and self.pace == "realtime":
            self._settle(0)
            self._place = max(self._place, round((self._since - self._begun) * self.rate))
        self._held = np.concatenate((self._held, pcm))
        self._settle(unplayed(self.due(), self.rate))
        return begin

    def cut(self, fade: int) -> int:
        """Fade out over the next `fade` samples at most, and return how many samples are
        discarded."""
        dropped = super().cut(fade)
        kept = self._held[: len(self._held) - dropped]
        self._held = fade_out(kept, min(unplayed(self.due(), self.rate), len(kept)))
        return dropped

    def _settle(self, keep: int) -> None:
        """Pass on the held samples, except the last `keep`, which have not been played yet."""
        played = len(self._held) - keep
        if played > 0:
            self._take(self._place, self._held[:played])
            self._place += played
            self._held = self._held[played:]


class WavSpeaker(PlayedAudio):
    """Plays into a wav file.

    At real-time pace the file is a recording of the loudspeaker from the first sound on, with
    silence where nothing sounded. At pace `max` it holds what was played, end to end. Used as a
    context manager, it puts the file in place on success only. Raises AudioError if the file cannot
    be written.
    """

    def __init__(self, path: str | Path, rate: int, *, pace: Pace = "realtime") -> None:
        super().__init__(rate, self._append, pace=pace)
        self._writer = WavWriter(path, rate)
        self._written = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.finish()
        self._writer.__exit__(kind, error, trace)

    def _append(self, place: int, pcm: Pcm) -> None:
        while (missing := place - self._written) > 0:
            gap = min(missing, self.rate)
            self._writer.write(silence(gap))
            self._written += gap
        self._writer.write(pcm)
        self._written += len(pcm)


class RecordedSpeaker:
    """A speaker that sounds, and another one that records the same audio."""

    def __init__(self, speaker: Speaker, record: PlayedAudio) -> None:
        """Write to `speaker` and to `record`, which have the same rate. All times and counts are
        those of `speaker`."""
        self.rate = speaker.rate
        self._speaker, self._record = speaker, record

    def due(self) -> float:
        """Return when a sample written now would be played, in seconds of the loop's clock."""
        return self._speaker.due()

    def write(self, pcm: Pcm) -> float:
        """Write `pcm` to both, and return when the speaker begins to play it."""
        self._record.write(pcm)
        return self._speaker.write(pcm)

    def cut(self, fade: int) -> int:
        """Cut both, and return how many samples the speaker will now never play."""
        self._record.cut(fade)
        return self._speaker.cut(fade)

    async def room(self) -> None:
        """Wait until the speaker has room for more audio."""
        await self._speaker.room()
