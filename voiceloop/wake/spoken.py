"""Finds the wake phrase with the recogniser, which decodes the first words after a silence.

Speech is decoded only until it is clear whether it begins with the phrase. So the talk of other
people costs one or two decodes after each silence.
"""

from __future__ import annotations

import logging
from functools import partial

from msgspec.structs import replace

from voiceloop.asr.turns import SpeechDetector, SpeechPaused, SpeechStarted, TurnEnded
from voiceloop.asr.vad_stream import VadStream
from voiceloop.audio.frames import samples
from voiceloop.engines import GUESS, AsrRequest, Engines, Vad
from voiceloop.runner import run_on
from voiceloop.settings.config import TurnConfig
from voiceloop.types import AudioFrame
from voiceloop.wake.phrase import Phrase

logger = logging.getLogger(__name__)

EVERY_MS = 1000
"""Milliseconds of speech between two decodes while the words are too few to tell."""
LONGEST_MS = 4000
"""Milliseconds of speech after which the phrase is no longer looked for."""
PAUSE_MS = 160
"""Milliseconds of silence after which the phrase counts as said. Silences within words are
shorter."""
REST_MS = 500
"""Milliseconds of silence that must precede the phrase."""
PRE_ROLL_MS = 500
"""Milliseconds of audio before the speech that are decoded and passed on with it. With less, the
speech detector of the session misses the first sound. This audio is silent, because `REST_MS`
milliseconds of silence precede the phrase."""
TAIL_MS, LOOK_MS = 48, 250
"""After the speech, two windows are decoded. The first ends `TAIL_MS` milliseconds after the
speech, because Whisper tends to fill a longer silence with a word. The second begins `LOOK_MS`
milliseconds later than the first, and ends with the newest sample."""
FOUND_MS = PRE_ROLL_MS + 200
"""Maximum time in milliseconds from the beginning of the pre-roll until speech is found."""
KEPT_MS = PRE_ROLL_MS + LONGEST_MS + 2 * EVERY_MS
"""Milliseconds of sound that are kept for a decode."""
NO_LIMIT_S = 1e6
"""Maximum length of speech in seconds, in effect none: speech that does not begin with the phrase
is ignored until the next silence."""


class SpokenPhrase:
    """Finds a phrase by the recogniser; implements `microphone.WakeWord`."""

    def __init__(self, phrase: Phrase, vad: Vad, engines: Engines, turns: TurnConfig) -> None:
        """Find `phrase` by the recogniser of `engines`, and speech by `vad`, which nothing else
        uses."""
        self.name = phrase.name
        self.said_until = 0
        """Index of the sample by which the phrase was said when the user last went on without a
        pause; 0 before that. A turn that starts before this sample begins with the phrase."""
        self._phrase, self._vad, self._engines = phrase, vad, engines
        self._turns = replace(
            turns,
            min_speech_ms=64,
            pause_ms=PAUSE_MS,
            pause_below=0.0,
            pre_roll_ms=PRE_ROLL_MS,
            hangover_ms=REST_MS,
            max_turn_s=NO_LIMIT_S,
        )
        self.reset()

    def reset(self) -> None:
        """Forget the stream so far."""
        self._vad.reset()
        detector = SpeechDetector(self._turns, ends=True)
        self._stream = VadStream(self._vad, detector, self._turns, KEPT_MS / 1000)
        self._offset: int | None = None
        """Index in the stream of the first sample since the last reset. None until that sample
        comes."""
        self._start: int | None = None
        """Index, counted from the last reset, of the first sample of the speech that may begin with
        the phrase. None while there is none."""
        self._tried = 0
        """Index, counted from the last reset, of the sample up to which the speech was decoded."""

    @property
    def needed(self) -> int:
        """Return the earliest sample that may be passed on if the phrase is found later."""
        begin = self._start
        if begin is None:
            begin = max(0, self._stream.recent.end - samples(FOUND_MS))
        return (self._offset or 0) + begin

    async def feed(self, frame: AudioFrame) -> int | None:
        """Take the next frame. If the phrase has been said, return the first sample to pass on,
        otherwise None. The phrase itself is passed on if other words follow it without a pause."""
        if self._offset is None:
            self._offset = frame.start
        begin = None
        windows = await run_on(self._engines.vad_runner, partial(self._stream.judge, frame))
        for event in self._stream.feed(frame, windows):
            match event:
                case SpeechStarted():
                    self._start, self._tried = event.start, event.speech_start
                case SpeechPaused() if self._start is not None and begin is None:
                    begin = await self._found(self._start, event.speech_end)
                case TurnEnded():
                    self._start = None
                case _:
                    pass
        if self._start is not None and self._stream.recent.end - self._tried >= samples(EVERY_MS):
            begin = await self._found(self._start)
        return None if begin is None else self._offset + begin

    async def _found(self, start: int, speech_end: int | None = None) -> int | None:
        """Decode the speech from sample `start` on. Return the first sample to pass on, or None if
        the phrase has not been found.

        While the user speaks, the last word is ignored, because it may be incomplete. Once the
        speech has ended at `speech_end`, a second decode with other silence around the words
        corrects what the first one misheard.
        """
        end = self._tried = self._stream.recent.end
        looks = [(start, end)]
        if speech_end is not None:
            tail_end = min(end, speech_end + samples(TAIL_MS))
            looks = [(start, tail_end), (start + samples(LOOK_MS), end)]
        for window in looks:
            words = await self._decoded(*window)
            count = self._phrase.count(words[:-1] if speech_end is None else words)
            if count == len(words) > 0:
                return end
            if count:
                self.said_until = (self._offset or 0) + end
                return start
            if not self._phrase.begins(words[:-1]):
                self._start = None
                return None
        if end - start >= samples(LONGEST_MS):
            self._start = None
        return None

    async def _decoded(self, begin: int, end: int) -> list[str]:
        asr, runner = self._engines.asr, self._engines.asr_runner
        request = AsrRequest(self._stream.recent.read(begin, end), final=False)
        try:
            words = await runner.call(partial(asr.transcribe, request), priority=GUESS)
        except Exception as error:  # as in a turn: a decode that fails ends no conversation
            logger.error("a decode for the wake phrase failed", exc_info=error)
            return []
        return [word.text for word in words]
