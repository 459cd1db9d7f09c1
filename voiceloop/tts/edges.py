"""Trims the silence around the sound of a clause, fades the ends, and gives the pause that follows.

Synthesizers add some silence at the beginning and the end of a clause. It is cut to a few
milliseconds here, so that a reply sounds at once. The pause between two clauses depends only on the
mark between them and on the speed. This module does not know what is said.
"""

from __future__ import annotations

import numpy as np

from voiceloop.audio.frames import fade_in, fade_out, samples, silence
from voiceloop.audio.playback import AUDIBLE
from voiceloop.types import Clause, Pcm

LEAD_MS, TAIL_MS = 3, 10
"""Quiet audio kept before the first audible sample and after the last one, in ms."""
FADE_IN_MS, FADE_OUT_MS = 2, 8
PAUSE_MS = {",": 150, ";": 200, ":": 200, ".": 300, "!": 300, "?": 300}
"""Silence after a clause in ms, by its last mark. Without a mark there is none."""


class Trimmer:
    """A trimmer of one clause while it is synthesised. Call `feed` with the pieces in order, then
    `finish` once.

    The joined output does not depend on how the audio is divided into pieces. The trimmer holds
    back the quiet audio at the end so far, because the clause may end there. It also holds back the
    last `FADE_OUT_MS` of the sound before that, because the fade-out may change it.
    """

    def __init__(self, rate: int) -> None:
        self.cut = 0
        """Samples trimmed at the start. The number is final once any sample has been returned."""
        self._rate = rate
        self._rise, self._fall = samples(FADE_IN_MS, rate), samples(FADE_OUT_MS, rate)
        self._begun = False
        self._held = silence(0)

    def feed(self, pcm: Pcm) -> Pcm:
        """Add the clause's next samples, and return the samples that can no longer change."""
        held = np.concatenate((self._held, pcm))
        loud = np.flatnonzero(np.abs(held) >= AUDIBLE)
        if not self._begun:
            before = int(loud[0]) if len(loud) else len(held)
            dropped = max(0, before - samples(LEAD_MS, self._rate))
            held, loud = held[dropped:], loud - dropped
            self.cut += dropped
        sure = int(loud[-1]) + 1 - self._fall if len(loud) else 0
        least = 0 if self._begun else self._rise  # the first output holds the whole fade-in
        sure = sure if sure >= least else 0
        self._held = held[sure:]
        return self._risen(held[:sure])

    def finish(self) -> Pcm:
        """Return the rest of the clause, without the silence at its end."""
        loud = np.flatnonzero(np.abs(self._held) >= AUDIBLE)
        end = int(loud[-1]) + 1 + samples(TAIL_MS, self._rate) if len(loud) else 0
        rest, self._held = self._held[:end], silence(0)
        return fade_out(self._risen(rest), self._fall)

    def _risen(self, pcm: Pcm) -> Pcm:
        """Return `pcm`, faded in if it begins the clause."""
        if self._begun or not len(pcm):
            return pcm
        self._begun = True
        return fade_in(pcm, self._rise)


def trim(pcm: Pcm, rate: int) -> tuple[Pcm, int]:
    """Return `pcm` faded and without the silence around it, and the samples cut at its start."""
    trimmer = Trimmer(rate)
    trimmed = np.concatenate((trimmer.feed(pcm), trimmer.finish()))
    return trimmed, trimmer.cut if len(trimmed) else 0


def pause(clause: Clause, rate: int, speed: float) -> Pcm:
    """Return the silence that follows a clause; none after the last clause of a reply."""
    if clause.last:
        return silence(0)
    return silence(samples(PAUSE_MS.get(clause.spoken[-1:], 0) / speed, rate))
