"""Streaming recognition by an engine that decodes windows of audio.

One window grows with the turn. Partial decodes of all of it give hypotheses on which
`LocalAgreement` commits words. In the first silence a final decode is made on the guess that the
turn is over, and it is the turn's transcript unless the user goes on. Of a longer silence only the
edges are decoded: recognisers lose the words behind it, and make some up in it. A monologue longer
than the engine's window is cut at the quietest boundary between committed words, which are frozen.

A session is state alone: it has no clock and no thread. It says what to decode next, and what the
words of a decode mean for the transcript.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from voiceloop.asr.agreement import repeats
from voiceloop.asr.understood import Understood
from voiceloop.asr.unheard import gone
from voiceloop.asr.window import DecodeJob, TurnWindow
from voiceloop.audio.frames import SPEECH_RATE, samples
from voiceloop.config import AsrConfig
from voiceloop.engines import Asr, AsrJob, AsrRequest, AsrTurn
from voiceloop.types import AudioFrame, Transcript, Word

PAUSE_EDGE_MS = 64
"""Milliseconds of a silence within a turn that are decoded at either end. Of a hundred questions
with pauses of 200 to 700 ms, the starter gets 7 % of the words wrong with whole silences, and 3 %
with these edges."""
RECORDED_EDGE_MS = 200
"""The same where no partials are wanted. Of 634 words of people tiny.en had 39 wrong with 64 ms, 18
with this, and 16 with the whole silence; of synthetic voices the starter mishears the words behind
a silence."""
MIN_CUT = 0.25
"""Least part of the engine's window that a cut takes away."""
UNSAFE_S = 1.0
"""Seconds at the end of a window that breaks off while the user speaks: their words may be
wrong."""
TAIL_MS = 64
"""Audio after the end of speech that a partial must have seen to stand for the final decode."""
LATE_MS = 64
"""Milliseconds of speech that a decode may lack for its words to stand as a guess. The reply and
the end of the turn go by the guess until all of the speech has been decoded."""
SPACED = 2
"""Partials begin no closer together than so many times as long as the last took. When the user
falls silent, the final decode has to wait for a partial that runs."""
SURE = 0.6
"""Mean probability of words above which a partial may stand for the final decode. With words that
are less likely, a final decode may take more trouble."""
MUCH_S, REST_MS = 4.0, 250
"""After so much speech, in seconds, a pause of so many milliseconds freezes the words before it;
later decodes begin after the pause. Of five recordings of people, cut at their own pauses, tiny.en
and base hear pieces of some seconds as well as the whole, and pieces of one second worse."""
SEARCH_S = 0.1
"""Seconds around a word boundary within which a cut may lie. The times of people's words may be
further off."""


@dataclass(frozen=True, slots=True)
class _Silence:
    """The silence after which a final decode is wanted."""

    speech_end: int
    """The decode has to cover all audio before that sample."""
    sample: int
    """The end of its window. It is where the pause was decided, whenever the decode runs, so that
    an early guess changes no transcript."""


@dataclass(frozen=True, slots=True)
class _Decoded:
    """The words of the newest decode."""

    words: tuple[Word, ...]
    reaches: int
    """The latest sample at which the speech may end for these words to be the final ones."""


class _Pace:
    """Decides when a partial is due: never so often that the final decode would wait for one."""

    def __init__(self, every: int, decoded: int) -> None:
        """Partials are at least `every` samples apart; the first one counts from `decoded`."""
        self._every = every
        self._decoded = decoded
        """End of the last window."""
        self._begun = self._took = 0
        """Where the audio ended when the last decode began, and how much came while it ran."""

    def due(self, end: int) -> bool:
        """Whether there is enough new audio, now that it ends at `end`."""
        return end - self._decoded >= max(self._every, SPACED * self._took)

    def begin(self, decoded: int, end: int) -> None:
        """Note that a decode of a window up to `decoded` begins when the audio ends at `end`."""
        self._decoded, self._begun = decoded, end

    def end(self, end: int) -> None:
        """Note that the decode has given its words when the audio ends at `end`."""
        self._took = end - self._begun

    def restart(self, decoded: int) -> None:
        """Note that nothing before that sample is decoded any more."""
        self._decoded = decoded


class WindowedAsr(Asr):
    """A recogniser that decodes windows of audio: the base of its engines."""

    max_window_s = 30.0

    def session(self, turn: AsrTurn, config: AsrConfig) -> WindowedSession:
        """Begin to recognise a turn."""
        return WindowedSession(self, turn, config)

    @abstractmethod
    def transcribe(self, request: AsrRequest) -> Sequence[Word]:
        """Decode a window of at most `max_window_s`, and return its words."""


class WindowedSession:
    """The transcript of one turn as it grows; implements `engines.AsrSession`."""

    def __init__(self, asr: WindowedAsr, turn: AsrTurn, config: AsrConfig) -> None:
        self.ended = False
        """The turn is over, though its final decode may still be wanted."""
        self.retracted = 0
        self._asr = asr
        self._turn = turn
        self._greedy = config.beam_size == 1
        self._window = TurnWindow(turn.audio, turn.speech_start, samples(1000 * asr.max_window_s))
        self._understood = Understood()
        self._pace = _Pace(samples(config.partial_every_ms), turn.speech_start)
        self._revision = 0
        self._running: DecodeJob | None = None
        self._newest: _Decoded | None = None
        """The newest decode of this very window."""
        self._silence: _Silence | None = None

    @property
    def start(self) -> int:
        """Index in the stream of the first sample of the turn."""
        return self._turn.audio.start

    def feed(self, frame: AudioFrame) -> None:
        """Take the stream's next frame."""
        if not self.ended:
            self._window.feed(frame)

    def pause(self, sample: int, speech_end: int) -> None:
        """Have the final decode made next, on the guess that the turn is over."""
        self._silence = _Silence(speech_end, sample)

    def resume(self, speech_start: int, *, anew: bool = False, whole: bool = False) -> None:
        """Give the guess up, and decide what of the audio before the pause is decoded again.

        After much speech its words are frozen as they were understood: the decoder has had enough
        to go by, and would take longer with every word. `anew`, they are frozen after however
        little: of two sayings that have nothing to do with each other a decoder may give the first
        alone. Otherwise only the inside of the pause is left out.
        """
        if self._silence is not None:
            since = self._silence.speech_end
            edge = samples(PAUSE_EDGE_MS if self._turn.partials else RECORDED_EDGE_MS)
            begin, end = since + edge, speech_start - edge
            rests = speech_start - since >= samples(REST_MS)
            much = rests and not whole and self._window.spoken(since) >= samples(1000 * MUCH_S)
            known = self._transcript() is not None and self._running is None
            if known and end > begin and (anew or much):
                self._let_stand(end, ends=not anew)
            elif end > begin:
                self._window.leave_out(begin, end)
        self._silence = None

    def end(self, sample: int, speech_end: int) -> Transcript | None:
        """Have the final decode made, unless its words are known."""
        self.ended = True
        assert speech_end <= sample, "a decode up to there would never be enough"
        known = self._silence if speech_end < sample else None
        self._silence = _Silence(speech_end, known.sample if known else sample)
        return self._finish()

    @property
    def hypothesis(self) -> str:
        """All words, as the newest decode has them."""
        words = self._understood.whole(self._newest.words if self._newest else None)
        return " ".join(word.text for word in words)

    @property
    def guess(self) -> Transcript | None:
        """The transcript by a decode that lacks no more speech than `LATE_MS`."""
        return self._transcript(samples(LATE_MS))

    def _transcript(self, late: int = 0) -> Transcript | None:
        """The transcript by the newest decode, where it lacks at most `late` samples of speech."""
        newest, silence = self._newest, self._silence
        if newest is None or silence is None or silence.speech_end > newest.reaches + late:
            return None
        words = self._understood.whole(newest.words)
        return Transcript(self._turn.number, self._revision + 1, words, final=True)

    def next_job(self) -> AsrJob | None:
        """Return the decode to run now, if there is one."""
        wanted = self._turn.partials or self.ended or self._window.full
        job = self.next_window() if wanted else None
        if job is None:
            return None
        return AsrJob(
            job.pcm, job.end, job.final, partial(self._decode, job), partial(self.accept, job)
        )

    def _decode(self, job: DecodeJob, language: str | None) -> Sequence[Word]:
        timed = job.timed or (self._turn.timed and job.final)
        request = AsrRequest(job.pcm, job.final, timed, language, job.settled)
        return self._asr.transcribe(request)

    def next_window(self) -> DecodeJob | None:
        """Return the window to decode now, if there is one; its words must come to `accept`."""
        if self._running is not None or self._transcript() is not None:
            return None
        end = self._silence.sample if self._silence else self._window.end
        if self._silence is None and not self._pace.due(end):
            return None
        job = self._window.job(
            end, final=self._silence is not None, settled=self._understood.settled
        )
        self._pace.begin(job.end, self._window.end)
        self._running = job
        return job

    def accept(self, job: DecodeJob, words: Sequence[Word]) -> Transcript:
        """Return the transcript after `job` gave `words`, timed from the window's first sample."""
        if job is not self._running:
            raise ValueError("a result for a decode that is not running")
        self._running = None
        self._pace.end(self._window.end)
        heard = self._understood.fitted(
            tuple(
                replace(word, start=job.when(word.start), end=job.when(word.end)) for word in words
            )
        )
        self._newest = _Decoded(heard, self._reach(job, heard))
        if self.ended and (finished := self._finish()):
            return finished
        split = self._understood.update(heard)
        self._revision += 1
        transcript = Transcript(self._turn.number, self._revision, split.committed, split.tentative)
        if job.timed and self._transcript() is None:
            return self._trim(job, heard, split.cuts, transcript)
        return transcript

    def _reach(self, job: DecodeJob, words: Sequence[Word]) -> int:
        """The value of `_Decoded.reaches` for the `words` of `job`."""
        if job.final:
            return job.end
        sure = _certain(words) and not gone(job.settled, [word.text for word in words])
        return job.end - samples(TAIL_MS) if self._greedy and sure else 0

    def _finish(self) -> Transcript | None:
        final = self._transcript()
        if final:
            self._revision = final.revision
            confirmed = self._understood.confirmed(final.committed)
            self.retracted = len(self._understood.committed) - confirmed
        return final

    def _let_stand(self, until: int, *, ends: bool) -> None:
        """Freeze all words, and forget the audio before sample `until`."""
        assert self._newest is not None, "there is a guess"
        self._understood.let_stand(self._newest.words, ends=ends)
        self._window.drop(until)
        self._pace.restart(until)
        self._newest = None

    def _trim(
        self, job: DecodeJob, words: Sequence[Word], cuts: Sequence[int], before: Transcript
    ) -> Transcript:
        """Freeze committed words and forget their audio, at least `MIN_CUT` of the window."""
        least = (job.start + MIN_CUT * self._window.limit) / SPEECH_RATE
        safe = job.end / SPEECH_RATE - UNSAFE_S
        late = [cut for cut in cuts if cut and words[cut - 1].end >= least]
        if not late:
            # The hypotheses never agreed for so long: trust the newest up to its unsafe end.
            split = self._understood.trust(sum(word.end <= safe for word in words))
            late = [cut for cut in split.cuts if cut and words[cut - 1].end >= least]
            before = replace(before, committed=split.committed, tentative=split.tentative)
        if late:
            _, sample, cut = min(self._place(job, words, cut) for cut in late)
        else:
            # No word ends in all that audio: nothing there is speech that the engine knows.
            sample = max(round(least * SPEECH_RATE), job.end - samples(1000 * UNSAFE_S))
            cut = len(words)
        self._understood.freeze(words, cut)
        self._window.drop(sample)
        self._newest = None
        return before

    def _place(self, job: DecodeJob, words: Sequence[Word], cut: int) -> tuple[float, int, int]:
        """Level and place of the quietest spot around the end of word `cut`; and `cut`."""
        ends = words[cut - 1].end
        following = words[cut].start if cut < len(words) else ends
        first = round((ends - SEARCH_S) * SPEECH_RATE)
        last = min(round((following + SEARCH_S) * SPEECH_RATE), job.end)
        level, sample = self._window.quietest(first, last) or (0.0, round(ends * SPEECH_RATE))
        return level, sample, cut


def _certain(words: Sequence[Word]) -> bool:
    """Whether a final decode would hardly give other words."""
    if not words or repeats([word.text for word in words]):
        return not words
    return sum(word.probability for word in words) >= SURE * len(words)
