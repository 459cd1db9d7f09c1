"""Recognition by an engine that has partial results of its own, such as a transducer or a server.

The engine hears a turn on the model's thread, piece by piece, and tells after each piece which
words it understands. A session keeps the audio that the engine has not heard yet, and knows which
words are the final ones if the user stays silent. It has no clock and no thread.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from voiceloop.audio.frames import SPEECH_RATE, SampleBuffer, samples, silence
from voiceloop.config import AsrConfig
from voiceloop.engines import Asr, AsrJob, AsrRequest, AsrTurn
from voiceloop.types import AudioFrame, Pcm, Transcript, Word


@dataclass(frozen=True, slots=True)
class Partial:
    """The words of a turn while it is heard, timed in seconds from its first sample."""

    settled: Sequence[Word]
    """Words that no later result takes back: they only ever become more."""
    tentative: Sequence[Word] = ()
    """Words after them that may still change."""


class AsrStream(Protocol):
    """One turn of the user as an engine hears it, on the model's thread.

    It is dropped when it is no longer needed, which may be before `final`.
    """

    def feed(self, pcm: Pcm) -> None:
        """Hear the next samples at 16 kHz."""
        ...

    def partial(self) -> Partial:
        """Return the words as far as they are understood."""
        ...

    def final(self) -> Sequence[Word]:
        """Return all words of the audio so far, timed in seconds from its first sample.

        The user is silent. They may go on: then `feed` follows, and later results begin with what
        was said before.
        """
        ...


class StreamingAsr(Asr):
    """A recogniser with partial results of its own: the base of its engines."""

    max_window_s = 3600.0

    @abstractmethod
    def open(self, language: str | None) -> AsrStream:
        """Begin to hear a turn, on the model's thread; None is the configured language."""

    def session(self, turn: AsrTurn, config: AsrConfig) -> StreamingSession:
        """Begin to recognise a turn."""
        return StreamingSession(self, turn, samples(config.partial_every_ms))

    def transcribe(self, request: AsrRequest) -> Sequence[Word]:
        """Hear some audio in one piece, and return its final words."""
        stream = self.open(request.language)
        stream.feed(request.pcm)
        return stream.final()


class StreamingSession:
    """The transcript of one turn as it grows; implements `engines.AsrSession`."""

    retracted = 0

    def __init__(self, asr: StreamingAsr, turn: AsrTurn, every: int) -> None:
        """Partial results are wanted every so many samples."""
        self._asr = asr
        self._turn = turn
        self._every = every
        self._stream: AsrStream | None = None
        self._unheard = SampleBuffer(turn.audio.start)
        """The audio that the engine has not been fed."""
        self._unheard.append(turn.audio.pcm)
        self._words: tuple[Word, ...] = ()
        self._settled = self._revision = 0
        """How many of the words are settled, and how many transcripts there were."""
        self._silence: tuple[int, int] | None = None
        """Where the speech has ended, and where that was decided; None while the user speaks."""
        self._final_to = 0
        """End of the audio of which all words are known."""
        self._running = self._ended = False

    @property
    def start(self) -> int:
        """Index in the stream of the first sample of the turn."""
        return self._turn.audio.start

    @property
    def guess(self) -> Transcript | None:
        """The final transcript if the user stays silent, where it is known."""
        if self._silence is None or self._silence[0] > self._final_to:
            return None
        return Transcript(self._turn.number, self._revision + 1, self._words, final=True)

    @property
    def hypothesis(self) -> str:
        """All words, as the newest result has them."""
        return " ".join(word.text for word in self._words)

    def feed(self, frame: AudioFrame) -> None:
        """Take the stream's next frame."""
        if not self._ended:
            self._unheard.append(silence(frame.start - self._unheard.end))
            self._unheard.append(frame.pcm)

    def pause(self, sample: int, speech_end: int) -> None:
        """Ask the engine for all words next, on the guess that the turn is over."""
        self._silence = speech_end, sample

    def resume(self, speech_start: int, *, anew: bool = False, whole: bool = False) -> None:
        """Give the guess up. The engine hears the pause as it was."""
        del speech_start, anew, whole
        self._silence = None

    def end(self, sample: int, speech_end: int) -> Transcript | None:
        """Ask the engine for all words, unless they are known."""
        self._ended = True
        known = self._silence if speech_end < sample else None
        self._silence = speech_end, known[1] if known else sample
        return self.guess

    def next_job(self) -> AsrJob | None:
        """Return the audio to hear now, if there is enough."""
        if self._running or self.guess is not None:
            return None
        begin, end = self._unheard.start, self._unheard.end
        if self._silence is not None:
            end = max(begin, self._silence[1])
        elif end - begin < self._every:
            return None
        pcm, final = self._unheard.read(begin, end), self._silence is not None
        self._unheard.drop(end)
        self._running = True
        return AsrJob(
            pcm, end, final, partial(self._hear, pcm, final), partial(self._accept, end, final)
        )

    def _hear(self, pcm: Pcm, final: bool, language: str | None) -> Sequence[Word]:
        """Let the engine hear some audio, on the model's thread."""
        if self._stream is None:
            self._stream = self._asr.open(language)
        self._stream.feed(pcm)
        if final:
            return self._stream.final()
        found = self._stream.partial()
        self._settled = len(found.settled)
        return (*found.settled, *found.tentative)

    def _accept(self, end: int, final: bool, words: Sequence[Word]) -> Transcript:
        self._running = False
        since = self.start / SPEECH_RATE
        self._words = tuple(
            replace(word, start=word.start + since, end=word.end + since) for word in words
        )
        self._final_to = end if final else 0
        finished = self.guess if self._ended else None
        self._revision += 1
        settled, tentative = self._words[: self._settled], self._words[self._settled :]
        return finished or Transcript(self._turn.number, self._revision, settled, tentative)
