"""Streaming recognition of one turn: what to decode next, and what a result means.

One buffer grows with the turn. Partial decodes of all of it give hypotheses on which
`LocalAgreement` commits words; in the first silence a final decode is made on the guess that the
turn is over, and it is the turn's transcript unless the user goes on. Of a longer silence only the
edges are decoded: recognisers lose the words behind it, and make some up in it. A monologue longer
than the engine's window is cut at the quietest boundary between committed words, which are frozen.

This is state alone: it decodes nothing itself and has no clock and no thread. The caller takes
`next_job` whenever something has happened, runs it, and hands the words to `accept`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from voiceloop.asr.agreement import LocalAgreement, common_prefix, normalise, repeats
from voiceloop.asr.turns import (
    SpeechPaused,
    SpeechResumed,
    SpeechStarted,
    TurnDetector,
    TurnEnded,
    TurnEvent,
)
from voiceloop.audio.frames import SPEECH_RATE, Framer, SampleBuffer, dbfs, samples, silence
from voiceloop.config import AsrConfig, TurnConfig
from voiceloop.engines import Asr, Vad
from voiceloop.types import AudioFrame, Pcm, Transcript, Word

TRIM_AT = 0.75
"""Part of the engine's window from which on the buffer is cut."""
MIN_CUT = 0.25
"""Part of the engine's window that a cut takes away at the least."""
UNSAFE_S = 1.0
"""The end of a window that breaks off in mid-speech: its words may be wrong."""
TAIL_MS = 64
"""Audio after the end of speech that a partial must have seen to stand for the final decode."""
SPACED = 2
"""Partials begin no closer together than so many times what the last took: when the user falls
silent, the final decode has to wait for one that runs."""
SURE = 0.6
"""Probability that the words of a partial must have, on average, to stand for the final decode, for
which recognisers may take more trouble with words that are unlikely."""
PAUSE_EDGE_MS = 64
"""What is decoded of a silence within a turn at either end. Of a hundred questions with pauses of
200 to 700 ms, the starter gets 7 % of the words wrong with whole silences, 3 % with these edges."""
MUCH_S, REST_MS = 4.0, 250
"""So much speech before such a pause is decoded no more once the user goes on. Of five recordings
of people, cut at their own pauses, Whisper tiny.en and base hear pieces of some seconds as well as
the whole; those of a second they do not."""
QUIET_MS = 40
"""Length over which the quietest place for a cut is looked for."""
SEARCH_S = 0.1
"""How far around a word boundary that place may lie; of people's words the times may be worse."""


@dataclass(frozen=True, slots=True)
class DecodeJob:
    """A window to decode: `asr.transcribe(job.pcm, final=job.final, timed=job.timed)`."""

    turn: int
    pcm: Pcm
    """At 16 kHz; without the silences that are left out."""
    start: int
    """Index of the first sample in the stream."""
    end: int
    """Index of the sample after the last."""
    final: bool
    """True where the best decode is wanted."""
    timed: bool = False
    """True where exact word times are wanted: the buffer may be cut between two words."""
    silences: tuple[tuple[int, int], ...] = ()
    """Where `pcm` leaves out a silence, as beginning and end in the stream."""

    def when(self, seconds: float) -> float:
        """The time in the stream of what is `seconds` from the beginning of `pcm`."""
        at = self.start / SPEECH_RATE + seconds
        for begin, end in self.silences:
            if at > begin / SPEECH_RATE:
                at += (end - begin) / SPEECH_RATE
        return at


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
        self.retracted = 0
        """Committed words that the final decode did not confirm."""
        self._every = samples(config.partial_every_ms)
        self._speech_start = started.speech_start
        self._begun = self._took = 0
        """How much had come in when the last decode began, and how much has while it ran."""
        self._greedy = config.beam_size == 1
        self._limit = samples(1000 * max_window_s)
        self._buffer = SampleBuffer(started.start)
        self._buffer.append(recent.read(started.start, recent.end))
        self._agreement = LocalAgreement()
        self._frozen: tuple[Word, ...] = ()
        """Words that are decoded no more, as they were committed."""
        self._settled: tuple[Word, ...] = ()
        """The same, as their last decode has them."""
        self._unsettled: tuple[Word, ...] = ()
        """What that decode had behind them."""
        self._revision = 0
        self._running: DecodeJob | None = None
        self._asked = started.speech_start
        """End of the last job's window."""
        self._latest: tuple[DecodeJob, tuple[Word, ...]] | None = None
        self._reaches = 0
        """Where speech may end at the latest for its words to be those of a final decode."""
        self._needed: int | None = None
        """While paused or ended: end of the audio that the final decode has to cover."""
        self._stop: int | None = None
        """While paused or ended: end of the final decode's window. It is where the pause was
        decided, whenever the decode runs, so that guessing early changes no transcript."""
        self._ended: TurnEnded | None = None
        self._goes_on = False
        """The window begins within a sentence, which the decoder cannot know."""
        self._silences: list[tuple[int, int]] = []
        """Stretches within pauses that are not decoded."""

    def feed(self, frame: AudioFrame) -> None:
        """The stream's next frame; samples that were lost before it count as silence."""
        if self._ended is None:
            self._buffer.append(silence(frame.start - self._buffer.end))
            self._buffer.append(frame.pcm)

    def pause(self, paused: SpeechPaused) -> None:
        """The user has fallen silent: the next job is a final decode on the guess of an end.

        The audio up to the event's `sample` must have been fed, as for `end`.
        """
        self._needed = paused.speech_end
        self._stop = paused.sample

    def resume(self, resumed: SpeechResumed, *, anew: bool = False, whole: bool = False) -> None:
        """The user has gone on: the guess is void.

        Of much that they said before a pause a decoder has had enough to go by, and would take
        longer with every word: it stands as it was understood, unless the `whole` turn is wanted.
        `anew`, it stands however little it was: of two sayings that have nothing to do with each
        other a decoder may give the first alone.
        """
        if self._needed is not None:
            begin = self._needed + samples(PAUSE_EDGE_MS)
            end = resumed.speech_start - samples(PAUSE_EDGE_MS)
            rests = resumed.speech_start - self._needed >= samples(REST_MS)
            much = rests and not whole and self._spoken() >= samples(1000 * MUCH_S)
            understood = self.guess is not None and self._running is None
            if understood and end > begin and (anew or much):
                self._let_stand(end)
                last = self._settled[-1].text if anew and self._settled else "."
                self._goes_on = not last.endswith((".", "?", "!"))
            elif end > begin:
                self._silences.append((begin, end))
        self._needed = self._stop = None

    def end(self, ended: TurnEnded) -> Transcript | None:
        """The turn is over. Its final transcript, or none where a decode has yet to give it."""
        self._ended = ended
        self._needed = ended.sample if ended.forced else ended.speech_end
        if ended.forced or self._stop is None:
            self._stop = ended.sample
        assert self._needed <= self._stop, "a decode up to there would never be enough"
        return self._finish()

    @property
    def ended(self) -> bool:
        """True once the turn is over, though its final decode may still be wanted."""
        return self._ended is not None

    @property
    def silent_from(self) -> int | None:
        """While paused or ended: the sample at which the silence began."""
        return self._needed

    def silence_ms(self) -> float:
        """How long that silence is by now; 0 while the user speaks."""
        return 0 if self._needed is None else (self._buffer.end - self._needed) * 1000 / SPEECH_RATE

    @property
    def hypothesis(self) -> str:
        """All words, as the newest decode has them: those that are committed may be spelt and
        marked in another way by now."""
        words = self._latest[1] if self._latest else self._unsettled
        return " ".join(word.text for word in self._settled + words)

    @property
    def guess(self) -> Transcript | None:
        """While paused: the final transcript if the turn ends here, so a reply can be prepared."""
        if self._latest is None or self._needed is None:
            return None
        _, words = self._latest
        if self._needed > self._reaches:
            return None
        return Transcript(self.turn, self._revision + 1, self._settled + words, final=True)

    def next_job(self) -> DecodeJob | None:
        """The decode to run now, if there is one; its words must come back through `accept`."""
        if self._running is not None or self.guess is not None:
            return None
        end = self._buffer.end if self._stop is None else self._stop
        if self._needed is None and end - self._asked < max(self._every, SPACED * self._took):
            return None
        start = self._buffer.start
        self._begun = end if self._stop is None else self._buffer.end
        timed = end - start > TRIM_AT * self._limit
        end = min(end, start + self._limit)
        self._asked = end
        silences = tuple(gap for gap in self._silences if gap[0] > start and gap[1] < end)
        begins = (start, *(after for _, after in silences))
        ends = (*(before for before, _ in silences), end)
        pcm = np.concatenate([self._buffer.read(*part) for part in zip(begins, ends, strict=True)])
        final = timed or self._needed is not None
        self._running = DecodeJob(self.turn, pcm, start, end, final, timed, silences)
        return self._running

    def accept(self, job: DecodeJob, words: Sequence[Word]) -> Transcript:
        """The transcript after `job` gave `words`, timed from the window's first sample."""
        if job is not self._running:
            raise ValueError("a result for a decode that is not running")
        self._running = None
        self._took = self._buffer.end - self._begun
        heard = tuple(
            replace(word, start=job.when(word.start), end=job.when(word.end)) for word in words
        )
        if self._goes_on and heard:
            heard = (replace(heard[0], text=_within_sentence(heard[0].text)), *heard[1:])
        self._reaches = self._reach(job, heard)
        self._latest = (job, heard)
        if self._ended is not None and (finished := self._finish()):
            return finished
        split = self._agreement.update(heard)
        self._revision += 1
        transcript = Transcript(
            self.turn, self._revision, self._frozen + split.committed, split.tentative
        )
        if job.timed and self.guess is None:
            return self._trim(job, heard, split.cuts, transcript)
        return transcript

    def _spoken(self) -> int:
        """Samples of speech that are decoded, up to the silence that there is."""
        assert self._needed is not None
        first = max(self._buffer.start, self._speech_start)
        inside = (gap for gap in self._silences if gap[0] > first)
        return self._needed - first - sum(end - begin for begin, end in inside)

    def _reach(self, job: DecodeJob, words: Sequence[Word]) -> int:
        """What `_reaches` is with `words`."""
        if job.final:
            return job.end
        return job.end - samples(TAIL_MS) if self._greedy and _certain(words) else 0

    def _finish(self) -> Transcript | None:
        final = self.guess
        if final:
            self._revision = final.revision
            committed = _keys(self._frozen + self._agreement.committed)
            confirmed = common_prefix(committed, _keys(final.committed))
            self.retracted = len(committed) - confirmed
        return final

    def _let_stand(self, until: int) -> None:
        """Freeze all words, and forget the audio before sample `until`."""
        assert self._latest is not None, "there is a guess"
        _, words = self._latest
        self._frozen += self._agreement.commit(len(words)).committed
        self._settled += words
        self._agreement = LocalAgreement()
        self._buffer.drop(until)
        self._asked = until
        self._latest, self._unsettled = None, ()

    def _trim(
        self, job: DecodeJob, words: Sequence[Word], cuts: Sequence[int], before: Transcript
    ) -> Transcript:
        """Freeze committed words and forget their audio, at least `MIN_CUT` of the window."""
        least = (job.start + MIN_CUT * self._limit) / SPEECH_RATE
        safe = job.end / SPEECH_RATE - UNSAFE_S
        late = [cut for cut in cuts if cut and words[cut - 1].end >= least]
        if not late:
            # The hypotheses never agreed for so long: trust the newest up to its unsafe end.
            split = self._agreement.commit(sum(word.end <= safe for word in words))
            late = [cut for cut in split.cuts if cut and words[cut - 1].end >= least]
            before = replace(
                before,
                committed=self._frozen + split.committed,
                tentative=split.tentative,
            )
        if late:
            _, sample, cut = min(self._quietest(job, words, cut) for cut in late)
            self._frozen += self._agreement.freeze(cut)
            self._settled += tuple(words[:cut])
            self._unsettled = tuple(words[cut:])
        else:
            # No word ends in all that audio: nothing there is speech that the engine knows.
            sample = max(round(least * SPEECH_RATE), job.end - samples(1000 * UNSAFE_S))
            self._frozen += self._agreement.freeze(len(words))
            self._settled += tuple(words)
            self._unsettled = ()
        self._buffer.drop(sample)
        self._latest = None
        self._goes_on = False
        return before

    def _quietest(self, job: DecodeJob, words: Sequence[Word], cut: int) -> tuple[float, int, int]:
        """Level and place of the quietest spot around the end of word `cut`; and `cut`."""
        following = words[cut].start if cut < len(words) else words[cut - 1].end
        first = round((words[cut - 1].end - SEARCH_S) * SPEECH_RATE) - job.start
        last = round((following + SEARCH_S) * SPEECH_RATE) - job.start
        size = samples(QUIET_MS)
        pcm = self._buffer.read(job.start, job.end)
        places = range(max(first, 0), min(last, len(pcm)) - size, size // 4)
        levels = [dbfs(pcm[at : at + size]) for at in places]
        if not levels:
            return 0.0, round(words[cut - 1].end * SPEECH_RATE), cut
        best = int(np.argmin(levels))
        return levels[best], job.start + places[best] + size // 2, cut


def _keys(words: Sequence[Word]) -> list[str]:
    return [normalise(word.text) for word in words]


def _certain(words: Sequence[Word]) -> bool:
    """Whether a final decode would hardly give other words."""
    if not words or repeats([word.text for word in words]):
        return not words
    return sum(word.probability for word in words) >= SURE * len(words)


def _within_sentence(word: str) -> str:
    """`word`, which a decoder took for the first of a sentence, without its capital."""
    alone = word.split("'")[0]
    return word if alone == "I" or not alone[1:].islower() else word[0].lower() + word[1:]


def listen(
    blocks: Iterable[Pcm],
    vad: Vad,
    asr: Asr,
    config: AsrConfig,
    turns: TurnConfig,
    *,
    partials: bool = True,
) -> Iterator[Transcript]:
    """The transcripts of a whole stream at 16 kHz as it would be heard live, decoded on the spot.

    One thing after the other, for files and for comparison; `blocks` may be of any size. Without
    `partials` each turn is decoded once, when it has ended.
    """
    recent = SampleBuffer()
    keep = samples(turns.pre_roll_ms + turns.min_speech_ms) + 2 * vad.frame
    current: StreamingTranscriber | None = None
    turn = 0
    for frame, events in _heard(blocks, vad, turns):
        recent.append(frame.pcm)
        recent.drop(recent.end - keep)
        if current:
            current.feed(frame)
        for event in events:
            match event:
                case SpeechStarted():
                    turn += 1
                    current = StreamingTranscriber(turn, event, recent, config, asr.max_window_s)
                case SpeechPaused() if current:
                    current.pause(event)
                case SpeechResumed() if current:
                    current.resume(event)
                case TurnEnded() if current:
                    if final := current.end(event):
                        yield final
                case _:
                    raise AssertionError("nothing happens in a turn before it has begun")
        while current and (partials or current.ended) and (job := current.next_job()):
            words = asr.transcribe(job.pcm, final=job.final, timed=job.final)
            yield current.accept(job, words)


def _heard(
    blocks: Iterable[Pcm], vad: Vad, turns: TurnConfig
) -> Iterator[tuple[AudioFrame, list[TurnEvent]]]:
    """Windows with the events that each decides; at last what the end of the stream decides."""
    detector = TurnDetector(turns)
    framer = Framer(SPEECH_RATE, vad.frame)
    for pcm in chain(blocks, [silence(vad.frame - 1)]):  # the last window is filled up
        for frame in framer.feed(pcm):
            yield frame, detector.feed(frame, vad.probability(frame.pcm))
    yield AudioFrame(silence(0), SPEECH_RATE, framer.position), detector.flush()
