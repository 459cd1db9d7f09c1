"""Finds a phrase at the beginning of recognised words, and takes it away for the recogniser.

Letters are compared, not words, because a recogniser may divide the words differently ("compute
or"). A few letters may be wrong. The two chimes of the wake word are soft notes that rise for
waking and fall for falling asleep: pure tones, which voice activity detection does not take for
speech.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import accumulate, takewhile
from typing import overload

import numpy as np

from voiceloop.asr.transcript import normalise
from voiceloop.audio.frames import fade_in, fade_out, samples, silence
from voiceloop.engines import Asr, AsrJob, AsrRequest, AsrSession, AsrTurn
from voiceloop.errors import ConfigError
from voiceloop.settings.config import AsrConfig
from voiceloop.types import AudioFrame, Pcm, Transcript, Word

OPENS_HZ, CLOSES_HZ = (660.0, 880.0), (495.0, 440.0)
"""Frequencies of the two notes in hertz: a fourth upwards, and a tone downwards."""
NOTE_MS, FADE_MS, GAP_MS = 80, 20, 10
AMPLITUDE = 0.06
"""Amplitude of the notes: a peak of -24 dBFS."""


def chime(rate: int, *, opens: bool) -> Pcm:
    """Return the sound for waking, or for falling asleep, at `rate` hertz."""
    first, second = (_note(hertz, rate) for hertz in (OPENS_HZ if opens else CLOSES_HZ))
    return np.concatenate((first, silence(samples(GAP_MS, rate)), second))


def _note(hertz: float, rate: int) -> Pcm:
    time = np.arange(samples(NOTE_MS, rate)) / rate
    note = (AMPLITUDE * np.sin(2 * np.pi * hertz * time)).astype(np.float32)
    fade = samples(FADE_MS, rate)
    return fade_out(fade_in(note, fade), fade)


LEAST_LETTERS, MOST_LETTERS = 5, 40
"""Minimum and maximum number of letters in a phrase. A shorter one is like many other words, and a
longer one takes too long to say."""
LETTERS_PER_ERROR, LETTERS_PER_ERROR_IF_SAID = 6, 3
"""A phrase may have one wrong letter for every `LETTERS_PER_ERROR` letters. In words that are known
to begin with the phrase, one letter may be wrong for every `LETTERS_PER_ERROR_IF_SAID` letters.
With three wrong letters, "my computer" would count as "okay computer"."""


class Phrase:
    """A phrase that the user says, such as "okay computer"."""

    def __init__(self, text: str) -> None:
        """Take the phrase `text`. Raises ConfigError if it has too few or too many letters."""
        self.name = " ".join(text.split())
        self._letters = _letters([self.name])
        if not LEAST_LETTERS <= len(self._letters) <= MOST_LETTERS:
            raise ConfigError(
                f"wake.phrase has {len(self._letters)} letters, and can have "
                f"{LEAST_LETTERS} to {MOST_LETTERS}",
                "take two or three words, such as 'okay computer'",
            )

    def count(self, words: Sequence[str], *, said: bool = False) -> int:
        """Return how many of the first `words` are the phrase; 0 if they are not. With `said`, they
        are known to begin with it, so more letters may be wrong.

        The result is the number of words that gives the fewest wrong letters. Among equal ones, the
        largest number counts.
        """
        most = len(self._letters) // (LETTERS_PER_ERROR_IF_SAID if said else LETTERS_PER_ERROR)
        beginnings = enumerate(accumulate(map(normalise, words)), start=1)
        near = takewhile(lambda one: len(one[1]) <= len(self._letters) + most, beginnings)
        wrong = [(edit_distance(letters, self._letters), -count) for count, letters in near]
        fewest, count = min(wrong, default=(most + 1, 0))
        return -count if fewest <= most else 0

    def begins(self, words: Sequence[str]) -> bool:
        """Return whether `words` have too few letters to decide whether they begin with the
        phrase."""
        most_wrong = len(self._letters) // LETTERS_PER_ERROR
        return len(_letters(words)) < len(self._letters) + most_wrong


def edit_distance(left: str, right: str) -> int:
    """Return the smallest number of letters to insert, delete or replace to make `left` equal to
    `right` (Levenshtein 1966)."""
    distances = list(range(len(right) + 1))
    for row, letter in enumerate(left, start=1):
        diagonal, distances[0] = distances[0], row
        for column, other in enumerate(right, start=1):
            changed = diagonal + (letter != other)
            diagonal = distances[column]
            distances[column] = min(changed, diagonal + 1, distances[column - 1] + 1)
    return distances[-1]


def _letters(words: Sequence[str]) -> str:
    return "".join(map(normalise, words))


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
