"""Streaming recognition of one turn: what to decode next, and what a result means.

One window grows with the turn. Partial decodes of all of it give hypotheses on which
`LocalAgreement` commits words; in the first silence a final decode is made on the guess that the
turn is over, and it is the turn's transcript unless the user goes on. Of a longer silence only the
edges are decoded: recognisers lose the words behind it, and make some up in it. A monologue longer
than the engine's window is cut at the quietest boundary between committed words, which are frozen.

This is state alone: it decodes nothing itself and has no clock and no thread. The caller takes
`next_job` whenever something has happened, runs it, and hands the words to `accept`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from voiceloop.asr.agreement import repeats
from voiceloop.asr.turns import SpeechPaused, SpeechResumed, SpeechStarted, TurnEnded
from voiceloop.asr.understood import Understood
from voiceloop.asr.unheard import gone
from voiceloop.asr.window import PAUSE_EDGE_MS, DecodeJob, Window
from voiceloop.audio.frames import SPEECH_RATE, SampleBuffer, samples
from voiceloop.config import AsrConfig
from voiceloop.types import AudioFrame, Transcript, Word

MIN_CUT = 0.25
"""Part of the engine's window that a cut takes away at the least."""
UNSAFE_S = 1.0
"""The end of a window that breaks off in mid-speech: its words may be wrong."""
TAIL_MS = 64
"""Audio after the end of speech that a partial must have seen to stand for the final decode."""
LATE_MS = 64
"""A silence may turn out to begin so much later than a decode allowed for: its words stand for a
guess, by which the reply is begun and the end of the turn told, until all has been decoded."""
SPACED = 2
"""Partials begin no closer together than so many times what the last took: when the user falls
silent, the final decode has to wait for one that runs."""
SURE = 0.6
"""Probability that the words of a partial must have, on average, to stand for the final decode, for
which recognisers may take more trouble with words that are unlikely."""
MUCH_S, REST_MS = 4.0, 250
"""So much speech before such a pause is decoded no more once the user goes on. Of five recordings
of people, cut at their own pauses, Whisper tiny.en and base hear pieces of some seconds as well as
the whole; those of a second they do not."""
SEARCH_S = 0.1
"""How far around a word boundary the place of a cut may lie; of people's words the times may be
worse."""


@dataclass(frozen=True, slots=True)
class _Silence:
    """While the user is silent or has ended: what the final decode has to be."""

    speech_end: int
    """It covers all audio before that sample."""
    sample: int
    """Its window ends there. It is where the pause was decided, whenever the decode runs, so that
    guessing early changes no transcript."""


@dataclass(frozen=True, slots=True)
class _Decoded:
    """What the newest decode has given."""

    words: tuple[Word, ...]
    reaches: int
    """Where speech may end at the latest for these words to be those of a final decode."""


class _Pace:
    """When a partial is due: never so often that the final decode would wait for one."""

    def __init__(self, every: int, asked: int) -> None:
        """Partials are `every` so many samples apart, or more; the first counts from `asked`."""
        self._every = every
        self._asked = asked
        """End of the last window."""
        self._begun = self._took = 0
        """How much had come in when the last decode began, and how much has while it ran."""

    def due(self, end: int) -> bool:
        """Whether there is enough new audio, now that it ends at `end`."""
        return end - self._asked >= max(self._every, SPACED * self._took)

    def begin(self, asked: int, end: int) -> None:
        """A decode of a window up to `asked` begins when the audio ends at `end`."""
        self._asked, self._begun = asked, end

    def end(self, end: int) -> None:
        """It has given its words, when the audio ends at `end`."""
        self._took = end - self._begun

    def restart(self, asked: int) -> None:
        """Nothing before that sample is decoded any more."""
        self._asked = asked


class StreamingTranscriber:
    """The transcript of one turn as it grows; never more than one decode is out."""

    def __init__(
        self,
        turn: int,
        started: SpeechStarted,
        recent: SampleBuffer,
        config: AsrConfig,
        max_window_s: float,
    ) -> None:
        """`recent` holds the stream from `started.start` to now; `feed` brings what follows."""
        self.turn = turn
        self.start = started.start
        """First sample of the turn."""
        self.ended = False
        """The turn is over, though its final decode may still be wanted."""
        self.retracted = 0
        """Committed words that the final decode did not confirm."""
        self._greedy = config.beam_size == 1
        self._window = Window(started, recent, samples(1000 * max_window_s))
        self._understood = Understood()
        self._pace = _Pace(samples(config.partial_every_ms), started.speech_start)
        self._revision = 0
        self._running: DecodeJob | None = None
        self._newest: _Decoded | None = None
        """What the newest decode of this very window has given."""
        self._silence: _Silence | None = None

    def feed(self, frame: AudioFrame) -> None:
        """The stream's next frame; samples that were lost before it count as silence."""
        if not self.ended:
            self._window.feed(frame)

    def pause(self, paused: SpeechPaused) -> None:
        """The user has fallen silent: the next job is a final decode on the guess of an end.

        The audio up to the event's `sample` must have been fed, as for `end`.
        """
        self._silence = _Silence(paused.speech_end, paused.sample)

    def resume(
        self,
        resumed: SpeechResumed,
        *,
        anew: bool = False,
        whole: bool = False,
        edge_ms: int = PAUSE_EDGE_MS,
    ) -> None:
        """The user has gone on: the guess is void.

        Of much that they said before a pause a decoder has had enough to go by, and would take
        longer with every word: it stands as it was understood, unless the `whole` turn is wanted.
        `anew`, it stands however little it was: of two sayings that have nothing to do with each
        other a decoder may give the first alone. `edge_ms` are decoded at either end of the pause.
        """
        if self._silence is not None:
            since = self._silence.speech_end
            begin = since + samples(edge_ms)
            end = resumed.speech_start - samples(edge_ms)
            rests = resumed.speech_start - since >= samples(REST_MS)
            much = rests and not whole and self._window.spoken(since) >= samples(1000 * MUCH_S)
            whole_known = self._transcript() is not None and self._running is None
            if whole_known and end > begin and (anew or much):
                self._let_stand(end, ends=not anew)
            elif end > begin:
                self._window.leave_out(begin, end)
        self._silence = None

    def end(self, ended: TurnEnded) -> Transcript | None:
        """The turn is over. Its final transcript, or none where a decode has yet to give it."""
        self.ended = True
        speech_end = ended.sample if ended.forced else ended.speech_end
        known = None if ended.forced else self._silence
        sample = known.sample if known else ended.sample
        assert speech_end <= sample, "a decode up to there would never be enough"
        self._silence = _Silence(speech_end, sample)
        return self._finish()

    @property
    def full(self) -> bool:
        """There is as much to decode as the engine takes at once."""
        return self._window.end - self._window.start >= self._window.limit

    @property
    def hypothesis(self) -> str:
        """All words, as the newest decode has them."""
        words = self._understood.whole(self._newest.words if self._newest else None)
        return " ".join(word.text for word in words)

    @property
    def guess(self) -> Transcript | None:
        """While silent: the transcript if the turn ends here, so a reply can be prepared. It is
        the final one unless the silence began later than it seemed to at first."""
        return self._transcript(samples(LATE_MS))

    def _transcript(self, late: int = 0) -> Transcript | None:
        """The transcript by the newest decode, which lacks at most so many samples of speech."""
        newest, silence = self._newest, self._silence
        if newest is None or silence is None or silence.speech_end > newest.reaches + late:
            return None
        words = self._understood.whole(newest.words)
        return Transcript(self.turn, self._revision + 1, words, final=True)

    def next_job(self) -> DecodeJob | None:
        """The decode to run now, if there is one; its words must come back through `accept`."""
        if self._running is not None or self._transcript() is not None:
            return None
        end = self._silence.sample if self._silence else self._window.end
        if self._silence is None and not self._pace.due(end):
            return None
        job = self._window.job(
            self.turn, end, final=self._silence is not None, settled=self._understood.settled
        )
        self._pace.begin(job.end, self._window.end)
        self._running = job
        return job

    def accept(self, job: DecodeJob, words: Sequence[Word]) -> Transcript:
        """The transcript after `job` gave `words`, timed from the window's first sample."""
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
        transcript = Transcript(self.turn, self._revision, split.committed, split.tentative)
        if job.timed and self._transcript() is None:
            return self._trim(job, heard, split.cuts, transcript)
        return transcript

    def _reach(self, job: DecodeJob, words: Sequence[Word]) -> int:
        """What `_Decoded.reaches` is with `words`."""
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
