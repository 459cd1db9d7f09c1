"""The player: moves replies to a speaker, and alone knows how much of each was heard.

It takes blocks from a `Playback` and hands them to a `Speaker`, which says when each sample sounds.
All waiting goes through anyio. This module knows nothing of recognition, models or the
conversation.
"""

from __future__ import annotations

from collections.abc import Callable

import anyio

from voiceloop.audio.devices import Speaker, unplayed
from voiceloop.audio.frames import louder, samples
from voiceloop.audio.playback import FADE_MS, AudioBlock, Heard, Playback
from voiceloop.trace.record import Lane, Mark, Recorder
from voiceloop.types import Clause, SpeechChunk

BLOCK_MS = 20
"""Milliseconds of audio that the speaker is handed at a time."""
AUDIBLE_GAP_S = 0.001
"""Maximum gap between two blocks of a reply, in seconds, that does not count as an underrun."""


class Player:
    """Plays one reply after the other, and knows how much of each has been heard.

    `run` moves audio to the speaker for as long as the session lasts. For each reply, call `begin`,
    then `play` for each chunk, then `drain`. Meanwhile `open` lets the reply sound. `pause`,
    `resume` and `stop` act at once, from the sample that is sounding. The reply's recorder gets the
    marks `first_sound` and `sound_end`, the counter `underruns` and the spans of the speaker's
    lane.
    """

    def __init__(self, speaker: Speaker, *, max_queued_s: float = 2.0) -> None:
        """Play on `speaker`. `play` waits while more than `max_queued_s` seconds are queued."""
        self._speaker = speaker
        self._limit = round(max_queued_s * speaker.rate)
        self._changed = anyio.Event()
        self.turn = -1
        """Id of the turn that the current reply answers."""
        self.recorder = Recorder(-1)
        """Recorder of the current reply."""
        self.gain = 1.0
        """Factor by which samples are multiplied. Samples that would be too loud are compressed."""
        self._gain = 1.0
        """Gain of the last sample that was handed over."""
        self._playback = Playback(-1, speaker.rate)
        self._since: float | None = None
        """When the present unbroken stretch of sound began; None while nothing sounds."""
        self._gapless = 0.0
        """Time at which the stretch would end if it sounds at real-time pace without a gap."""
        self.silent_at = 0.0
        """When everything handed to the speaker has been played."""
        self._gaps_expected = False

    async def run(self, sounds: Callable[[Clause], None]) -> None:
        """Move audio to the speaker until cancelled. Call `sounds` with each clause as it is handed
        over, at most `AHEAD_S` before it sounds."""
        size = samples(BLOCK_MS, self._speaker.rate)
        while True:
            await self._speaker.room()
            changed = self._changed
            block = self._playback.block(size)
            if block is None:
                await changed.wait()
                continue
            for clause in block.clauses:
                sounds(clause)
            self._hand_over(block)
            self._wake()

    @property
    def ahead_s(self) -> float:
        """Seconds of synthesised audio of the reply that have not been played yet."""
        rate = self._speaker.rate
        return (self._playback.queued + unplayed(self.silent_at, rate)) / rate

    @property
    def said_a_clause(self) -> bool:
        """Whether the first clause of the reply has been played to its end."""
        return self._playback.said_a_clause(unplayed(self.silent_at, self._speaker.rate))

    def begin(self, turn: int, recorder: Recorder, *, lead_s: float = 0.0) -> None:
        """Make the reply to the turn with id `turn` the current one, and stop the old one.

        The reply's chunks carry the number `recorder.turn`. The reply does not sound before `open`
        is called. It also waits until `lead_s` seconds of it or the whole reply are queued.
        """
        self.stop()
        self.turn, self.recorder, self._gaps_expected = turn, recorder, False
        rate = self._speaker.rate
        self._playback = Playback(recorder.turn, rate, lead=min(round(lead_s * rate), self._limit))

    async def play(self, chunk: SpeechChunk) -> None:
        """Queue a chunk, once there is room. A chunk of a reply that is not current is dropped."""
        playback = self._playback
        while playback.queued > self._limit and not playback.stopped:
            await self._changed.wait()
        if chunk.turn == playback.turn:
            playback.push(chunk)
            self._wake()

    def expect_gaps(self) -> None:
        """Count no more underruns in this reply, because it waits for tools. Let it sound even if
        its lead is not queued yet."""
        self._gaps_expected = True
        self._playback.lead = 0
        self._wake()

    async def drain(self) -> Heard:
        """Wait until the current reply has sounded or has been stopped, and return what was heard
        of it. No more chunks may follow."""
        playback = self._playback
        playback.finish()
        self._wake()
        while not playback.stopped:
            if not playback.exhausted:
                await self._changed.wait()
            elif self.silent_at > anyio.current_time():
                # A pause meanwhile takes samples back, so look again afterwards.
                await anyio.sleep_until(self.silent_at)
            else:
                self._end_stretch()
                if playback.end:
                    self.recorder.mark(Mark.SOUND_END, self.silent_at)
                break
        return playback.heard()

    def open(self) -> None:
        """Let the reply sound, because it is committed."""
        self._playback.open = True
        self._wake()

    def pause(self) -> None:
        """Fade out now, and keep the rest for `resume`."""
        self._silence()
        self._playback.paused = True

    def resume(self) -> None:
        """Go on from the sample at which `pause` stopped."""
        self._playback.resume()
        self._wake()

    def stop(self) -> Heard:
        """Fade out now, drop the rest, and return what was heard of the reply."""
        if not self._playback.stopped:
            self._silence()
            self._playback.stopped = True
            if self._playback.position:
                self.recorder.mark(Mark.SOUND_END, self.silent_at)
            self._wake()
        return self._playback.heard()

    def heard(self) -> Heard:
        """Return what has been heard of the reply by now."""
        return self._playback.heard(unplayed(self.silent_at, self._speaker.rate))

    def _hand_over(self, block: AudioBlock) -> None:
        begin = self._speaker.write(louder(block.pcm, self._gain, self.gain))
        self._gain = self.gain
        self.silent_at = self._speaker.due()
        if self._since is not None and begin > self._gapless + AUDIBLE_GAP_S:
            if not self._gaps_expected:
                self.recorder.count("underruns")
            self._end_stretch(self._gapless)
        if self._since is None:
            self._since = self._gapless = begin
        self._gapless += len(block.pcm) / self._speaker.rate
        if block.audible is not None:
            self.recorder.mark(Mark.FIRST_SOUND, begin + block.audible / self._speaker.rate)

    def _silence(self) -> None:
        """Cut the speaker off, and take back the samples that it has not played."""
        if self._since is None:
            return
        fade = samples(FADE_MS, self._speaker.rate)
        self._playback.rewind(self._speaker.cut(fade))
        self.silent_at = min(self.silent_at, self._speaker.due())
        if self._playback.first_audible is None:
            self.recorder.retract(Mark.FIRST_SOUND)
        self._end_stretch()

    def _end_stretch(self, end: float | None = None) -> None:
        if self._since is not None:
            end = max(self._since, self.silent_at if end is None else end)
            self.recorder.span(Lane.SPEAKER, "sound", self._since, end)
        self._since = None

    def _wake(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()
