"""Recognition with an engine that has partial results of its own, such as a transducer or a server.

The engine hears a turn piece by piece on the model's thread, and returns the words so far after
each piece. A session keeps the audio that the engine has not heard yet, and knows which words are
final if the user stays silent. It has no clock and no thread.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from voiceloop.asr.transcript import answering
from voiceloop.audio.frames import SPEECH_RATE, SampleBuffer, samples, silence
from voiceloop.engines import Asr, AsrJob, AsrRequest, AsrTurn
from voiceloop.settings.config import AsrConfig
from voiceloop.types import AudioFrame, Pcm, Transcript, Word


@dataclass(frozen=True, slots=True)
class Partial:
    """The words of a turn so far, timed in seconds from its first sample."""

    settled: Sequence[Word]
    """Words that no later result changes; later results only add to them."""
    tentative: Sequence[Word] = ()
    """Words after the settled ones, which may still change."""


class AsrStream(Protocol):
    """The recognition of one turn by an engine, on the model's thread.

    It is dropped when it is no longer needed, which may be before `final` is called.
    """

    def feed(self, pcm: Pcm) -> None:
        """Hear the next samples at 16 kHz."""
        ...

    def partial(self) -> Partial:
        """Return the words recognised so far."""
        ...

    def final(self) -> Sequence[Word]:
        """Return all words of the audio so far, timed in seconds from its first sample.

        It is called while the user is silent. If they go on, `feed` is called again, and later
        results must still begin with the words before the silence.
        """
        ...


class StreamingAsr(Asr):
    """A base class for recognisers that have partial results of their own."""

    max_window_s = 3600.0

    @abstractmethod
    def open(self, language: str | None) -> AsrStream:
        """Begin to hear a turn, on the model's thread. If `language` is None, the configured one is
        used."""

    def session(self, turn: AsrTurn, config: AsrConfig) -> StreamingSession:
        """Begin to recognise a turn."""
        return StreamingSession(self, turn, samples(config.partial_every_ms))

    def transcribe(self, request: AsrRequest) -> Sequence[Word]:
        """Recognise the requested audio in one piece, and return its final words."""
        stream = self.open(request.language)
        stream.feed(request.pcm)
        return stream.final()


class StreamingSession:
    """The growing transcript of one turn; implements `engines.AsrSession`."""

    retracted = 0

    def __init__(self, asr: StreamingAsr, turn: AsrTurn, every: int) -> None:
        """Recognise `turn` with `asr`, in pieces of at least `every` samples while the user
        speaks."""
        self._asr = asr
        self._turn = turn
        self._every = every
        self._stream: AsrStream | None = None
        self._unheard = SampleBuffer(turn.audio.start)
        """Audio that has not been fed to the engine."""
        self._unheard.append(turn.audio.pcm)
        self._words: tuple[Word, ...] = ()
        self._settled = self._revision = 0
        """Number of settled words (`_settled`) and number of transcripts so far (`_revision`)."""
        self._silence: tuple[int, int] | None = None
        """Sample at which the speech ended, and sample at which the pause was detected; None during
        speech."""
        self._final_to = 0
        """Index of the sample after the audio that the newest result covers, if that result is
        final; 0 if it is partial."""
        self._running = self._ended = False

    @property
    def start(self) -> int:
        """Index in the stream of the first sample of the turn."""
        return self._turn.audio.start

    @property
    def guess(self) -> Transcript | None:
        """The transcript that is final if the user stays silent. None while the user speaks, and
        until the engine has given its final words."""
        if self._silence is None or self._silence[0] > self._final_to:
            return None
        words = answering(self._words)
        return Transcript(self._turn.number, self._revision + 1, words, final=True)

    @property
    def hypothesis(self) -> str:
        """All words of the turn, as the newest result has them."""
        return " ".join(word.text for word in self._words)

    def feed(self, frame: AudioFrame) -> None:
        """Take the stream's next frame."""
        if not self._ended:
            self._unheard.append(silence(frame.start - self._unheard.end))
            self._unheard.append(frame.pcm)

    def pause(self, sample: int, speech_end: int) -> None:
        """Note that the user fell silent at `speech_end`, which was decided at `sample`. The next
        job finds all words up to `sample`, on the guess that the turn is over."""
        self._silence = speech_end, sample

    def resume(self, speech_start: int, *, anew: bool = False, whole: bool = False) -> None:
        """Withdraw the guess, because the user goes on. The engine hears the whole pause, so the
        arguments do not matter."""
        del speech_start, anew, whole
        self._silence = None

    def end(self, sample: int, speech_end: int) -> Transcript | None:
        """End the turn. Returns its final transcript, or None if the engine must give its words
        first."""
        self._ended = True
        known = self._silence if speech_end < sample else None
        self._silence = speech_end, known[1] if known else sample
        return self.guess

    def next_job(self) -> AsrJob | None:
        """Return the job that feeds the next audio to the engine. Returns None while another job
        runs, if all words are known, or if there is too little new audio."""
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
        """Feed `pcm` to the engine on the model's thread, and return all words of the turn."""
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
