"""Streaming recognition with an engine that decodes windows of audio.

One window grows with the turn. Each partial decode of the whole window gives a hypothesis, and
`LocalAgreement` commits the words on which two hypotheses agree. In the first silence a final
decode is made on the guess that the turn is over. Its words are the turn's transcript unless the
user goes on. Of a longer silence within the turn only the edges are decoded: recognisers lose words
after a long silence, and invent some in it. A monologue longer than the engine's window is cut at
the quietest boundary between committed words, and the words before the cut are frozen.

A session only keeps state: it has no clock and no thread. It says what to decode next, and how the
words of a decode change the transcript.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from voiceloop.asr.transcript import TranscriptBuffer, answering, repeats
from voiceloop.asr.window import DecodeJob, TurnWindow, gone
from voiceloop.audio.frames import SPEECH_RATE, samples
from voiceloop.engines import Abandoned, Asr, AsrJob, AsrRequest, AsrTurn
from voiceloop.settings.config import AsrConfig
from voiceloop.types import AudioFrame, Transcript, Word

PAUSE_EDGE_MS = 64
"""Milliseconds that are decoded at each end of a silence within a turn. In a hundred questions with
pauses of 200 to 700 ms, the starter model gets 7 % of the words wrong with whole silences, and 3 %
with these edges."""
RECORDED_EDGE_MS = 200
"""Milliseconds that are decoded at each end of a silence if no partials are wanted. Of 634 words of
people, tiny.en had 39 wrong with 64 ms, 18 with this value, and 16 with the whole silence. The
whole silence is not decoded, because the starter model mishears words of synthetic voices after a
long silence."""
MIN_CUT = 0.25
"""Minimum share of the engine's longest window that a cut removes."""
UNSAFE_S = 1.0
"""Seconds at the end of a window whose words may be wrong, because the window breaks off while the
user speaks."""
TAIL_MS = 64
"""Milliseconds of audio after the end of speech that a partial decode must cover to stand for the
final decode."""
LATE_MS = 64
"""A decode may lack up to this many milliseconds of the speech, and its words still count as the
guess. The reply and the end of the turn rely on this guess until all of the speech has been
decoded."""
SPACED = 2
"""Minimum time from one partial decode to the next, as a multiple of the time that the last decode
took. When the user falls silent, the final decode has to wait for a partial that runs."""
SURE = 0.6
"""A partial decode may stand for the final one only if the mean probability of its words is at
least this. If it is lower, a final decode may find better words."""
MUCH_S, REST_MS = 4.0, 250
"""After `MUCH_S` seconds of speech, a pause of `REST_MS` milliseconds freezes the words before it,
and later decodes begin after the pause. This was measured with tiny.en and base on five recordings
of people that were cut at the speakers' pauses. In pieces of some seconds no more words are wrong
than in the whole recording. In pieces of one second more words are wrong."""
WORDS_PER_S = 8.0
"""Words in a second of a window that nobody says, the first word aside. Whisper may invent a
sentence for a hum of half a second. The fastest second in five recordings of people has six words,
and the fastest half second four."""
SEARCH_S = 0.1
"""Seconds on either side of a word boundary in which a cut is searched. The word times of human
speech may be off by more."""


@dataclass(frozen=True, slots=True)
class _Silence:
    """A silence of the user that calls for a final decode."""

    speech_end: int
    """Sample before which the decode has to cover all audio."""
    sample: int
    """End of the window to decode: the sample at which the pause was detected. It does not depend
    on the time of the decode, so the transcript does not depend on that either."""


@dataclass(frozen=True, slots=True)
class _Decoded:
    """The result of a decode."""

    words: tuple[Word, ...]
    reaches: int
    """These words are final if the speech of the turn ends at this sample or before it. 0 if they
    are never final."""


class _Pace:
    """A schedule of partial decodes, spaced so that a final decode seldom waits for one."""

    def __init__(self, every: int, decoded: int) -> None:
        """Space partials by at least `every` samples. The first one comes `every` samples after
        sample `decoded`."""
        self._every = every
        self._before = self._decoded = decoded
        """Ends of the last two decoded windows, in samples."""
        self._begun = self._took = 0
        """End of the audio when the last decode began (`_begun`), and number of samples that
        arrived while it ran (`_took`)."""

    def due(self, end: int) -> bool:
        """Return whether there is enough new audio for a partial, if the audio ends at sample
        `end`."""
        return end - self._decoded >= max(self._every, SPACED * self._took)

    def begin(self, decoded: int, end: int) -> None:
        """Note that the decode of a window up to `decoded` begins while the audio ends at `end`."""
        self._before, self._decoded, self._begun = self._decoded, decoded, end

    def undo(self) -> None:
        """Note that the decode was given up: its window counts as not decoded."""
        self._decoded = self._before

    def end(self, end: int) -> None:
        """Note that the running decode is over while the audio ends at `end`."""
        self._took = end - self._begun

    def restart(self, decoded: int) -> None:
        """Note that no audio before sample `decoded` will be decoded again."""
        self._decoded = decoded


class WindowedAsr(Asr):
    """A base class for recognisers that decode windows of audio."""

    max_window_s = 30.0

    def session(self, turn: AsrTurn, config: AsrConfig) -> WindowedSession:
        """Begin to recognise a turn."""
        return WindowedSession(self, turn, config)

    @abstractmethod
    def transcribe(self, request: AsrRequest) -> Sequence[Word]:
        """Decode a window of at most `max_window_s` seconds, and return its words."""


class WindowedSession:
    """The growing transcript of one turn; implements `engines.AsrSession`."""

    def __init__(self, asr: WindowedAsr, turn: AsrTurn, config: AsrConfig) -> None:
        self.ended = False
        """Whether the turn is over. Its final decode may still have to run."""
        self.retracted = 0
        self._asr = asr
        self._turn = turn
        self._greedy = config.beam_size == 1
        self._window = TurnWindow(turn.audio, turn.speech_start, samples(1000 * asr.max_window_s))
        self._buffer = TranscriptBuffer()
        self._pace = _Pace(samples(config.partial_every_ms), turn.speech_start)
        self._revision = 0
        self._running: DecodeJob | None = None
        self._newest: _Decoded | None = None
        """Newest decode since the beginning of the window last moved; None if there is none."""
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
        """Note that the user fell silent at `speech_end`, which was decided at `sample`. The final
        decode is the next job, on the guess that the turn is over."""
        self._silence = _Silence(speech_end, sample)

    def resume(self, speech_start: int, *, anew: bool = False, whole: bool = False) -> None:
        """Withdraw the guess, because the user goes on at sample `speech_start`. Freeze the words
        before the pause, or leave the pause out of later decodes.

        The words before the pause, if they are known, are frozen in two cases:

        - After much speech and a long pause, unless `whole` is set. The decoder has had enough
          context, and would take longer with every word.
        - With `anew`: the new speech is unrelated to the speech before. Given both, a decoder may
          return only the first.

        In all other cases, later decodes leave out only the inside of the pause.
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
        """End the turn. Returns its final transcript, or None if a final decode is needed first."""
        self.ended = True
        assert speech_end <= sample, "a decode up to there would never be enough"
        known = self._silence if speech_end < sample else None
        self._silence = _Silence(speech_end, known.sample if known else sample)
        return self._finish()

    @property
    def hypothesis(self) -> str:
        """All words of the turn, as the newest decode has them."""
        words = self._buffer.whole(self._newest.words if self._newest else None)
        return " ".join(word.text for word in words)

    @property
    def guess(self) -> Transcript | None:
        """The transcript that is final if the turn ends in the present silence. None while the user
        speaks, or if the newest decode lacks more than `LATE_MS` of speech."""
        return self._transcript(samples(LATE_MS))

    def _transcript(self, late: int = 0) -> Transcript | None:
        """Return the transcript of the newest decode. None while the user speaks, or if the decode
        lacks more than `late` samples of speech."""
        newest, silence = self._newest, self._silence
        if newest is None or silence is None or silence.speech_end > newest.reaches + late:
            return None
        words = answering(self._buffer.whole(newest.words))
        return Transcript(self._turn.number, self._revision + 1, words, final=True)

    def next_job(self) -> AsrJob | None:
        """Return the decode to run now, or None."""
        wanted = self._turn.partials or self.ended or self._window.full
        job = self.next_window() if wanted else None
        if job is None:
            return None
        return AsrJob(
            job.pcm,
            job.end,
            job.final,
            partial(self._decode, job),
            partial(self.accept, job),
            self._abandon,
        )

    def _decode(self, job: DecodeJob, language: str | None) -> Sequence[Word] | None:
        timed = job.timed or (self._turn.timed and job.final)
        wanted = partial(self._wanted, job)
        request = AsrRequest(job.pcm, job.final, timed, language, job.settled, wanted)
        try:
            return self._asr.transcribe(request)
        except Abandoned:
            return None

    def _wanted(self, job: DecodeJob) -> bool:
        """Return whether the words of `job`, which is being decoded, are still of use: those of a
        partial decode while the user speaks, and in a silence those that may be final. This is
        called on the model's thread."""
        silence = self._silence
        if silence is None:
            return not job.final
        reach = job.end if job.final else job.end - samples(TAIL_MS) if self._greedy else 0
        return silence.speech_end <= reach

    def next_window(self) -> DecodeJob | None:
        """Return the window to decode now, or None. Its words must be passed to `accept`."""
        if self._running is not None or self._transcript() is not None:
            return None
        end = self._silence.sample if self._silence else self._window.end
        if self._silence is None and not self._pace.due(end):
            return None
        job = self._window.job(end, final=self._silence is not None, settled=self._buffer.settled)
        self._pace.begin(job.end, self._window.end)
        self._running = job
        return job

    def accept(self, job: DecodeJob, words: Sequence[Word]) -> Transcript:
        """Take the `words` of `job`, whose times count from the window's first sample, and return
        the transcript. Words that nobody can say so fast are invented, and dropped. Raises
        ValueError if `job` is not the one that runs."""
        if job is not self._running:
            raise ValueError("a result for a decode that is not running")
        self._running = None
        self._pace.end(self._window.end)
        if len(words) > 1 + WORDS_PER_S * len(job.pcm) / SPEECH_RATE:
            words = ()
        heard = self._buffer.fitted(
            tuple(
                replace(word, start=job.when(word.start), end=job.when(word.end)) for word in words
            )
        )
        self._newest = _Decoded(heard, self._reach(job, heard))
        if self.ended and (finished := self._finish()):
            return finished
        split = self._buffer.update(heard)
        self._revision += 1
        transcript = Transcript(self._turn.number, self._revision, split.committed, split.tentative)
        if job.timed and self._transcript() is None:
            return self._trim(job, heard, split.cuts, transcript)
        return transcript

    def _abandon(self) -> None:
        """Note that the decode that runs was given up."""
        self._running = None
        self._pace.undo()

    def _reach(self, job: DecodeJob, words: Sequence[Word]) -> int:
        """Return the latest end of speech, as a sample index, at which the `words` of `job` are
        final; 0 if they are never final."""
        if job.final:
            return job.end
        sure = _certain(words) and not gone(job.settled, [word.text for word in words])
        return job.end - samples(TAIL_MS) if self._greedy and sure else 0

    def _finish(self) -> Transcript | None:
        final = self._transcript()
        if final:
            self._revision = final.revision
            confirmed = self._buffer.confirmed(final.committed)
            self.retracted = len(self._buffer.committed) - confirmed
        return final

    def _let_stand(self, until: int, *, ends: bool) -> None:
        """Freeze all words, and forget the audio before sample `until`. `ends` says whether the
        last sentence is over."""
        assert self._newest is not None, "there is a guess"
        self._buffer.let_stand(self._newest.words, ends=ends)
        self._window.drop(until)
        self._pace.restart(until)
        self._newest = None

    def _trim(
        self, job: DecodeJob, words: Sequence[Word], cuts: Sequence[int], before: Transcript
    ) -> Transcript:
        """Freeze committed words, and forget their audio: at least the share `MIN_CUT` of the
        engine's longest window. Returns the transcript `before`, with more words committed if the
        hypotheses agreed on too few."""
        least = (job.start + MIN_CUT * self._window.limit) / SPEECH_RATE
        safe = job.end / SPEECH_RATE - UNSAFE_S
        late = [cut for cut in cuts if cut and words[cut - 1].end >= least]
        if not late:
            # The hypotheses agreed on too few words: trust the newest up to its unsafe end.
            split = self._buffer.trust(sum(word.end <= safe for word in words))
            late = [cut for cut in split.cuts if cut and words[cut - 1].end >= least]
            before = replace(before, committed=split.committed, tentative=split.tentative)
        if late:
            _, sample, cut = min(self._place(job, words, cut) for cut in late)
        else:
            # No word ends in that audio, so it holds no speech that the engine recognises.
            sample = max(round(least * SPEECH_RATE), job.end - samples(1000 * UNSAFE_S))
            cut = len(words)
        self._buffer.freeze(words, cut)
        self._window.drop(sample)
        self._newest = None
        return before

    def _place(self, job: DecodeJob, words: Sequence[Word], cut: int) -> tuple[float, int, int]:
        """Return the level and sample of the quietest spot after the first `cut` words, and
        `cut`."""
        ends = words[cut - 1].end
        following = words[cut].start if cut < len(words) else ends
        first = round((ends - SEARCH_S) * SPEECH_RATE)
        last = min(round((following + SEARCH_S) * SPEECH_RATE), job.end)
        level, sample = self._window.quietest(first, last) or (0.0, round(ends * SPEECH_RATE))
        return level, sample, cut


def _certain(words: Sequence[Word]) -> bool:
    """Return whether a final decode would probably give the same words."""
    if not words or repeats([word.text for word in words]):
        return not words
    return sum(word.probability for word in words) >= SURE * len(words)
