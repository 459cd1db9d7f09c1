"""A recogniser that leaves out the wake phrase at the beginning of a turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import overload

from voiceloop.config import AsrConfig
from voiceloop.engines import Asr, AsrJob, AsrRequest, AsrSession, AsrTurn
from voiceloop.types import AudioFrame, Pcm, Transcript, Word
from voiceloop.wake.phrase import Phrase


class AddressedAsr(Asr):
    """A recogniser that wraps another one, and leaves the wake phrase out of its transcripts."""

    def __init__(self, asr: Asr, phrase: Phrase, said_until: Callable[[], int]) -> None:
        """Wrap `asr`. `said_until` returns the index of a sample. Turns that start before that
        sample begin with `phrase`."""
        self.name, self.languages, self.max_window_s = asr.name, asr.languages, asr.max_window_s
        self._asr, self._phrase, self._said_until = asr, phrase, said_until

    def session(self, turn: AsrTurn, config: AsrConfig) -> AsrSession:
        """Begin to recognise a turn."""
        session = self._asr.session(turn, config)
        if turn.audio.start >= self._said_until():
            return session
        return AddressedTurn(session, self._phrase)

    def transcribe(self, request: AsrRequest) -> Sequence[Word]:
        """Decode some audio, and return all of its words."""
        return self._asr.transcribe(request)

    def detect_language(self, pcm: Pcm) -> tuple[str, float]:
        """Return which of `languages` is spoken in `pcm`, and how probable that is."""
        return self._asr.detect_language(pcm)


class AddressedTurn:
    """The recognition of a turn, without the wake phrase; implements `engines.AsrSession`."""

    def __init__(self, session: AsrSession, phrase: Phrase) -> None:
        self._session, self._phrase = session, phrase

    @property
    def retracted(self) -> int:
        """Return the number of committed words that the final transcript took back."""
        return self._session.retracted

    @property
    def start(self) -> int:
        """Return the index in the stream of the first sample of the turn."""
        return self._session.start

    @property
    def guess(self) -> Transcript | None:
        """Return the transcript that will be final if the current silence ends the turn."""
        return self._without(self._session.guess)

    @property
    def hypothesis(self) -> str:
        """Return all words of the turn as the newest decode has them."""
        words = self._session.hypothesis.split()
        return " ".join(words[self._count(words) :])

    def feed(self, frame: AudioFrame) -> None:
        """Take the stream's next frame."""
        self._session.feed(frame)

    def pause(self, sample: int, speech_end: int) -> None:
        """Note that the user fell silent."""
        self._session.pause(sample, speech_end)

    def resume(self, speech_start: int, *, anew: bool = False, whole: bool = False) -> None:
        """Note that the user goes on."""
        self._session.resume(speech_start, anew=anew, whole=whole)

    def end(self, sample: int, speech_end: int) -> Transcript | None:
        """Note that the turn is over. Returns the final transcript, or None if a job gives it."""
        return self._without(self._session.end(sample, speech_end))

    def next_job(self) -> AsrJob | None:
        """Return the job to do now, or None."""
        job = self._session.next_job()
        return job and replace(job, accept=lambda words: self._without(job.accept(words)))

    @overload
    def _without(self, heard: Transcript) -> Transcript: ...

    @overload
    def _without(self, heard: None) -> None: ...

    def _without(self, heard: Transcript | None) -> Transcript | None:
        """Return a transcript without the phrase at its beginning."""
        if heard is None:
            return None
        words = [word.text for word in heard.committed + heard.tentative]
        count = self._count(words, whole=heard.final)
        rest = max(0, count - len(heard.committed))
        return replace(heard, committed=heard.committed[count:], tentative=heard.tentative[rest:])

    def _count(self, words: Sequence[str], *, whole: bool = False) -> int:
        """Return how many of the first `words` belong to the phrase. `whole` says that `words` are
        the whole turn. Otherwise more words may follow, so words that are too few for the phrase
        count as its beginning."""
        if not whole and self._phrase.begins(words):
            return len(words)
        return self._phrase.count(words, said=True)
