"""Streaming recognition: nothing is lost, nothing committed is taken back, chunking is irrelevant.

The user's audio carries its own transcript: word k sounds at a level of its own, so the scripted
recogniser reads from the samples of a window which words lie in it, and how much of each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from voiceloop.asr.recording import transcribe_live
from voiceloop.asr.window import DecodeJob
from voiceloop.asr.windowed import LATE_MS, PAUSE_EDGE_MS, TAIL_MS, WindowedAsr, WindowedSession
from voiceloop.audio.frames import samples, silence
from voiceloop.engines import Abandoned, AsrRequest, AsrTurn
from voiceloop.settings.config import AsrConfig, TurnConfig
from voiceloop.types import AudioFrame, Pcm, Transcript, Word

pytestmark = pytest.mark.pure

RATE = 16_000


@dataclass(frozen=True)
class Said:
    """A word's length and the silence after it, in milliseconds."""

    length: int
    gap: int


def render(said: Sequence[Said], lead: int = 500, tail: int = 800) -> Pcm:
    pcm = [silence(samples(lead))]
    for k, word in enumerate(said):
        pcm.append(np.full(samples(word.length), 0.1 + (k + 1) / 1000, np.float32))
        pcm.append(silence(samples(word.gap)))
    return np.concatenate([*pcm, silence(samples(tail))])


class LevelVad:
    frame = 512

    def probability(self, pcm: Pcm) -> float:
        assert len(pcm) == self.frame
        return float(np.abs(pcm).max() > 0.05)

    def reset(self) -> None:
        pass


@dataclass
class LevelAsr(WindowedAsr):
    """Hears a word that lies in the window to nine tenths, and something else where less does."""

    said: Sequence[Said]
    max_window_s: float = 30.0
    name: str = "levels"
    windows: list[tuple[int, bool]] = field(default_factory=list[tuple[int, bool]])

    def transcribe(self, request: AsrRequest) -> Sequence[Word]:
        pcm = request.pcm
        self.windows.append((len(pcm), request.final))
        assert len(pcm) <= samples(1000 * self.max_window_s)
        index = np.rint((pcm - 0.1) * 1000).astype(int)
        words: list[Word] = []
        for k in np.unique(index[index > 0]).tolist():
            at = np.flatnonzero(index == k)
            part = len(at) / samples(self.said[k - 1].length)
            if part >= 0.5:
                text = f"word{k}" if part >= 0.9 else f"part{k}x{len(at)}"
                words.append(Word(text, float(at[0]) / RATE, float(at[-1] + 1) / RATE))
        return sorted(words, key=lambda word: word.start)


# A cut may be 80 ms beside the end of a word: of a shorter one than twice that, half would be left.
speech = st.lists(
    st.builds(Said, st.integers(170, 500), st.sampled_from([0, 0, 0, 40, 120, 300])),
    min_size=1,
    max_size=30,
)
configs = st.builds(
    AsrConfig, partial_every_ms=st.integers(60, 600), beam_size=st.sampled_from([1, 5])
)


def heard(said: Sequence[Said], asr: LevelAsr, config: AsrConfig, **turns: Any) -> list[Transcript]:
    return list(transcribe_live([render(said)], LevelVad(), asr, config, TurnConfig(**turns)))


@settings(deadline=None, max_examples=25)
@given(speech, configs, st.sampled_from([4.0, 8.0, 30.0]))
def test_every_word_before_the_endpoint_is_in_the_final_transcript(
    said: list[Said], config: AsrConfig, window: float
) -> None:
    transcripts = heard(said, LevelAsr(said, window), config)
    final = transcripts[-1]
    assert [t.final for t in transcripts] == [False] * (len(transcripts) - 1) + [True]
    assert final.text.split() == [f"word{k + 1}" for k in range(len(said))]
    assert final.tentative == ()


@settings(deadline=None, max_examples=25)
@given(speech, configs, st.sampled_from([4.0, 8.0, 30.0]))
def test_partials_never_take_a_committed_word_back_and_revisions_grow(
    said: list[Said], config: AsrConfig, window: float
) -> None:
    before: tuple[Word, ...] = ()
    transcripts = heard(said, LevelAsr(said, window), config)
    for transcript in transcripts[:-1]:
        assert transcript.committed[: len(before)] == before
        before = transcript.committed
    assert [t.revision for t in transcripts] == list(range(1, len(transcripts) + 1))


paused = st.lists(
    st.builds(Said, st.integers(150, 500), st.sampled_from([0, 120, 300, 450, 700])),
    min_size=1,
    max_size=12,
)


@settings(deadline=None, max_examples=25)
@given(paused, configs, st.sampled_from([4.0, 30.0]))
def test_of_a_long_silence_the_edges_are_decoded_and_words_keep_their_times(
    said: list[Said], config: AsrConfig, window: float
) -> None:
    class Attentive(LevelAsr):
        def transcribe(self, request: AsrRequest) -> Sequence[Word]:
            sound = np.flatnonzero(request.pcm)
            longest = int(np.diff(sound).max(initial=1)) - 1
            # The VAD's windows, of 32 ms, begin anywhere in a silence.
            assert longest <= samples(2 * PAUSE_EDGE_MS + 64) or longest <= samples(300)
            return super().transcribe(request)

    final = heard(said, Attentive(said, window), config, hangover_ms=900)[-1]
    begins = np.cumsum([0.5] + [(word.length + word.gap) / 1000 for word in said])[:-1]
    assert [word.text for word in final.committed] == [f"word{k + 1}" for k in range(len(said))]
    for word, begin, true in zip(final.committed, begins, said, strict=True):
        assert word.start == pytest.approx(begin, abs=1e-3)
        assert word.end == pytest.approx(begin + true.length / 1000, abs=1e-3)


@settings(deadline=None, max_examples=15)
@given(speech.filter(lambda said: sum(w.length + w.gap for w in said) > 2500), configs)
@example(
    [
        Said(150, 0),
        *[Said(150, 120)] * 3,
        Said(454, 120),
        Said(285, 0),
        Said(184, 120),
        Said(412, 0),
    ],
    AsrConfig(partial_every_ms=60),
)
def test_turns_of_the_greatest_length_lose_no_word_between_them(
    said: list[Said], config: AsrConfig
) -> None:
    turns = TurnConfig(max_turn_s=2.0)
    finals = [
        t
        for t in transcribe_live([render(said)], LevelVad(), LevelAsr(said), config, turns)
        if t.final
    ]
    words = [word.text for t in finals for word in t.committed]
    numbers = [int(word[4:].split("x")[0]) for word in words]
    # A word that the cut divides is heard in the turn that has more of it, or, halved, in both.
    assert sorted(set(numbers)) == list(range(1, len(said) + 1))
    assert numbers == sorted(numbers)


class Deaf(WindowedAsr):
    """A recogniser that never hears the same thing twice, or nothing at all."""

    name = "deaf"
    max_window_s = 5.0

    def __init__(self, words: int) -> None:
        self.words = words
        self.calls = 0

    def transcribe(self, request: AsrRequest) -> Sequence[Word]:
        self.calls += 1
        assert len(request.pcm) <= 5 * RATE
        step = len(request.pcm) / RATE / max(self.words, 1)
        return [Word(f"w{self.calls}x{k}", k * step, (k + 1) * step) for k in range(self.words)]


@pytest.mark.parametrize("words", [0, 1, 9])
def test_a_monologue_of_disagreeing_hypotheses_is_bounded_too(words: int) -> None:
    said = [Said(300, 0)] * 60
    transcripts = list(
        transcribe_live([render(said)], LevelVad(), Deaf(words), AsrConfig(), TurnConfig())
    )
    assert transcripts[-1].final


# ---- the state machine, step by step


def begin(config: AsrConfig, pcm: Pcm, window: float = 30.0) -> WindowedSession:
    return WindowedSession(LevelAsr([], window), AsrTurn(7, AudioFrame(pcm, RATE, 0), 0), config)


def more(transcriber: WindowedSession, at: int, milliseconds: int) -> int:
    transcriber.feed(AudioFrame(np.full(samples(milliseconds), 0.2, np.float32), RATE, at))
    return at + samples(milliseconds)


def window(turn: WindowedSession) -> DecodeJob:
    """The window to decode next."""
    job = turn.next_window()
    assert job is not None
    return job


def said(text: str) -> list[Word]:
    return [Word(word, 0.1 * i, 0.1 * i + 0.1) for i, word in enumerate(text.split())]


def test_what_seems_to_be_said_is_spelt_as_the_newest_decode_has_it() -> None:
    turn = begin(AsrConfig(partial_every_ms=200), silence(16_000))
    texts = ("Tell me. About", "Tell me. About the", "tell me about the sky")
    at, committed = 16_000, ""
    for text in texts:
        committed = turn.accept(window(turn), said(text)).committed_text
        assert turn.hypothesis == text
        at = more(turn, at, 200)
    assert committed == "Tell me. About the"


def test_decodes_that_take_long_are_further_apart_and_a_silence_waits_for_none() -> None:
    turn = begin(AsrConfig(partial_every_ms=200), silence(3200))
    job = window(turn)
    end = more(turn, 3200, 300)
    turn.accept(job, [])
    end = more(turn, end, 299)
    assert turn.next_window() is None
    turn.pause(end, end)
    final = turn.next_window()
    assert final is not None and final.final
    turn.accept(final, [])
    turn.resume(end)
    more(turn, end, 200)
    assert turn.next_window() is not None, "the last one took no time"


class Doubting(LevelAsr):
    """A recogniser that gives up what is no longer wanted, as it is told halfway."""

    def __init__(self) -> None:
        super().__init__([])
        self.halfway: Callable[[], object] = lambda: None

    def transcribe(self, request: AsrRequest) -> Sequence[Word]:
        self.halfway()
        if not request.wanted():
            raise Abandoned
        return ()


@pytest.mark.parametrize(
    ("silent_at", "wanted"), [(0, False), (32 - TAIL_MS, False), (-TAIL_MS, True)]
)
def test_a_partial_is_given_up_in_a_silence_unless_it_may_be_final(
    silent_at: int, wanted: bool
) -> None:
    """`silent_at` is the end of speech beside the end of the partial's window, in milliseconds."""
    asr, pcm = Doubting(), silence(0)
    turn = WindowedSession(asr, AsrTurn(7, AudioFrame(pcm, RATE, 0), 0), AsrConfig(beam_size=1))
    end = more(turn, 0, 1000)
    job = turn.next_job()
    assert job is not None and not job.final
    asr.halfway = lambda: turn.pause(more(turn, end, 64), end + samples(silent_at))
    words = job.decode(None)
    assert (words is not None) == wanted
    if words is None:
        job.abandon()
        final = turn.next_job()
        assert final is not None and final.final and final.end > job.end


def test_a_final_decode_is_given_up_as_soon_as_the_user_goes_on() -> None:
    asr = Doubting()
    turn = WindowedSession(asr, AsrTurn(7, AudioFrame(silence(0), RATE, 0), 0), AsrConfig())
    end = more(turn, 0, 1000)
    turn.pause(end, end - 1000)
    job = turn.next_job()
    assert job is not None and job.final
    asr.halfway = lambda: turn.resume(end)
    assert job.decode(None) is None
    job.abandon()
    following = turn.next_job()
    assert following is not None and not following.final, "what was said is decoded at once"
    asr.halfway = lambda: None
    assert following.decode(None) is not None


def test_a_pause_asks_for_the_final_decode_and_its_guess_is_the_final_transcript() -> None:
    turn = begin(AsrConfig(), silence(0))
    end = more(turn, 0, 1000)
    turn.pause(end, end - 1000)
    job = window(turn)
    assert job.final and job.end == end
    transcript = turn.accept(job, said("what time is it"))
    assert not transcript.final and transcript.text == "what time is it"
    assert turn.guess is not None and turn.guess.text == "what time is it"
    assert turn.next_window() is None
    more(turn, end, 400)
    final = turn.end(end + 6400, end - 1000)
    assert final is not None and final.final and final.text == "what time is it"
    assert turn.next_window() is None


@pytest.mark.parametrize(
    ("spoken_ms", "rest_ms", "whole", "stands"),
    [
        (4000, 250, False, True),
        (4000, 250, True, False),
        (4000, 249, False, False),
        (3999, 250, False, False),
    ],
)
def test_much_that_was_understood_before_a_pause_stands_as_its_final_decode_has_it(
    spoken_ms: int, rest_ms: int, whole: bool, stands: bool
) -> None:
    turn = begin(AsrConfig(partial_every_ms=200), silence(0))
    end = more(turn, 0, spoken_ms - 1500)
    for text in ("I fly to the same", "I fly to the same"):
        job = window(turn)
        assert not job.final
        turn.accept(job, said(text))
        end = more(turn, end, 750)
    turn.pause(end, end)
    job = window(turn)
    assert job.final
    turn.accept(job, said("I fly to the Seine"))
    on = end + samples(rest_ms)
    end = more(turn, end, rest_ms + 100)
    turn.resume(on, whole=whole)
    assert turn.hypothesis == "I fly to the Seine"
    if stands:
        assert turn.next_window() is None, "there is not enough to decode"
    end = more(turn, end, 1000)
    turn.pause(end, end)
    job = window(turn)
    assert job.start == (on - samples(PAUSE_EDGE_MS) if stands else 0)
    turn.accept(job, said("In Paris") if stands else said("I fly to the Seine In Paris"))
    final = turn.end(end, end)
    assert final is not None and final.text == "I fly to the Seine In Paris"
    assert turn.retracted == 1, "the same is not the Seine"


@pytest.mark.parametrize(("beams", "enough"), [(1, True), (5, False)])
def test_a_running_partial_that_covers_the_end_is_the_final_where_beams_are_equal(
    beams: int, enough: bool
) -> None:
    turn = begin(AsrConfig(beam_size=beams, partial_every_ms=200), silence(0))
    end = more(turn, 0, 1000)
    job = window(turn)
    assert not job.final
    turn.pause(end, end - samples(100))
    turn.accept(job, said("what time is it"))
    assert (turn.guess is not None) is enough
    assert (turn.next_window() is None) is enough


@pytest.mark.parametrize(
    ("words", "probability"), [("what time is it", 0.5), ("what time is it what time is it", 1.0)]
)
def test_a_partial_that_a_final_decode_might_correct_is_not_the_final(
    words: str, probability: float
) -> None:
    turn = begin(AsrConfig(partial_every_ms=200), silence(0))
    end = more(turn, 0, 1000)
    job = window(turn)
    assert not job.final
    turn.pause(end, end - samples(100))
    turn.accept(job, [replace(word, probability=probability) for word in said(words)])
    assert turn.guess is None
    job = window(turn)
    assert job.final
    turn.accept(job, said("what time is it"))
    assert turn.guess is not None


@pytest.mark.parametrize("late_ms", [10, LATE_MS, LATE_MS + 10])
def test_words_stand_while_a_silence_that_began_a_little_later_is_decoded(late_ms: int) -> None:
    turn = begin(AsrConfig(), silence(0))
    early = more(turn, 0, 1000)
    turn.pause(early, early - samples(40))
    job = window(turn)
    assert job.end == early
    end = more(turn, early, 128)
    turn.pause(end, early + samples(late_ms))
    turn.accept(job, said("what time is"))
    assert (turn.guess is not None) is (late_ms <= LATE_MS)
    job = window(turn)
    assert job.final and job.end == end, "all is decoded before it is final"
    assert turn.end(end + samples(100), early + samples(late_ms)) is None
    transcript = turn.accept(job, said("what time is it"))
    assert transcript.final and transcript.text == "what time is it"


def test_the_final_decode_wins_over_committed_words_and_says_how_many_fell() -> None:
    turn = begin(AsrConfig(partial_every_ms=200), silence(0))
    end = 0
    for _ in range(2):
        end = more(turn, end, 600)
        committed = turn.accept(window(turn), said("what's the whether in rome")).committed
    assert len(committed) == 5
    end = more(turn, end, 600)
    turn.end(end, end)
    final = turn.accept(window(turn), said("What's the weather in Rome?"))
    assert final.final and final.text == "What's the weather in Rome?"
    assert turn.retracted == 3  # from the first that fell on


def test_lost_frames_count_as_silence_so_word_times_stay_right() -> None:
    turn = begin(AsrConfig(partial_every_ms=200), silence(1600))
    more(turn, 16_000, 200)
    job = window(turn)
    assert job.end == 16_000 + 3200
    assert not job.pcm[1600:16_000].any()


def test_word_times_count_from_the_beginning_of_the_stream() -> None:
    begun = AsrTurn(1, AudioFrame(silence(6000), RATE, 34_000), 35_000)
    turn = WindowedSession(LevelAsr([]), begun, AsrConfig())
    job = window(turn)
    assert (job.start, len(job.pcm)) == (34_000, 6000)
    (word,) = turn.accept(job, [Word("hi", 0.1, 0.3)]).tentative
    assert (word.start, word.end) == (pytest.approx(2.225), pytest.approx(2.425))


def test_a_result_that_was_not_asked_for_is_refused() -> None:
    turn = begin(AsrConfig(partial_every_ms=200), silence(3200))
    job = turn.next_window()
    assert job is not None
    turn.accept(job, [])
    with pytest.raises(ValueError, match="not running"):
        turn.accept(job, [])


def pause_after(turn: WindowedSession, text: str) -> int:
    """`text` is said, understood, and followed by 600 ms that need not be silent."""
    end = more(turn, 0, 400)
    turn.pause(end, end - samples(50))
    turn.accept(window(turn), said(text))
    return more(turn, end, 600)


def resumed_after(text: str) -> tuple[WindowedSession, int, DecodeJob, int]:
    """`text` stands, and the user says something else: from where on, what to decode, to where."""
    turn = begin(AsrConfig(), silence(0))
    at = pause_after(turn, text)
    turn.resume(at - samples(200), anew=True)
    end = more(turn, at, 300)
    turn.pause(end, end - samples(50))
    job = window(turn)
    assert job.final
    return turn, at, job, end


def test_what_follows_words_that_stand_is_decoded_by_itself() -> None:
    turn, at, job, end = resumed_after("okay")
    assert (job.start, job.end) == (at - samples(200 + PAUSE_EDGE_MS), end)
    transcript = turn.accept(job, said("Stop it"))
    assert transcript.text == "okay stop it"
    final = turn.end(end + 100, end - samples(50))
    assert final is not None and final.text == "okay stop it" and not turn.retracted
    okay, stop, _ = final.committed
    assert okay.start == 0 and stop.start == pytest.approx(job.start / RATE)


@pytest.mark.parametrize("why", ["a short gap", "one saying", "not decoded", "being decoded"])
def test_otherwise_it_is_decoded_with_what_was_said_before(why: str) -> None:
    turn = begin(AsrConfig(partial_every_ms=200), silence(0))
    out = None
    if why in ("not decoded", "being decoded"):
        end = more(turn, 0, 600)
        if why == "being decoded":  # once more, though it has been understood
            turn.accept(window(turn), said("okay"))
            end = more(turn, end, 200)
            out = turn.next_window()
            assert out is not None
        turn.pause(end, samples(350))
        assert (turn.guess is not None) is (why == "being decoded")
        at = more(turn, end, 400)
    else:
        at = pause_after(turn, "okay")
    resumed = samples(350 + 100) if why == "a short gap" else at - samples(200)
    turn.resume(resumed, anew=why != "one saying")
    if out is not None:
        turn.accept(out, said("okay"))
    end = more(turn, at, 300)
    turn.pause(end, end - samples(50))
    job = window(turn)
    assert job.start == 0
    assert turn.accept(job, said("okay stop")).text == "okay stop"


@pytest.mark.parametrize(
    ("before", "after", "both"),
    [
        ("Okay", "Stop.", "Okay stop."),
        ("Okay,", "I'm done.", "Okay, I'm done."),
        ("Okay,", "I see.", "Okay, I see."),
        ("Okay", "NASA", "Okay NASA"),
        ("Okay.", "Stop.", "Okay. Stop."),
        ("", "Stop.", "Stop."),
    ],
)
def test_a_sentence_that_goes_on_has_one_capital(before: str, after: str, both: str) -> None:
    turn = begin(AsrConfig(), silence(0))
    at = pause_after(turn, before)
    turn.resume(at - samples(200), anew=True)
    end = more(turn, at, 300)
    turn.pause(end, end - samples(50))
    job = window(turn)
    assert job.start > 0
    assert turn.accept(job, said(after)).text == both


def likely(text: str) -> list[Word]:
    return [replace(word, probability=0.9) for word in said(text)]


@given(st.integers(300, 3000), st.integers(0, 40), st.booleans())
def test_words_that_nobody_says_so_fast_are_not_heard(ms: int, count: int, final: bool) -> None:
    turn = begin(AsrConfig(partial_every_ms=200), silence(0))
    end = more(turn, 0, ms)
    if final:
        turn.pause(end, end - samples(50))
    job = window(turn)
    assert job.final is final
    heard = turn.accept(job, said("word " * count)).text.split()
    assert len(heard) in (0, count)
    assert len(heard) == count or count > 8 * ms / 1000
    assert not heard or count <= 10 * ms / 1000 + 1


@pytest.mark.parametrize(
    ("newest", "stands"),
    [
        ("ask what you can do for your country now", True),
        ("ask what you did for your country now", True),
        ("country now", False),
        ("ask what you now", False),
    ],
)
def test_a_partial_that_lacks_settled_words_stands_for_no_final_decode(
    newest: str, stands: bool
) -> None:
    turn = begin(AsrConfig(partial_every_ms=200), silence(0))
    settled = "ask what you can do for your country"
    end = 0
    for text, known in ((settled, ""), (settled, ""), (newest, settled)):
        end = more(turn, end, 1000)
        job = window(turn)
        assert not job.final and " ".join(job.settled) == known
        turn.accept(job, likely(text))
    turn.pause(end, end - samples(100))
    job = turn.next_window()
    assert (job is None) is stands
    if job is not None:
        assert job.final and " ".join(job.settled) == settled


def test_words_that_are_decoded_no_more_are_not_looked_for_again() -> None:
    _, _, job, _ = resumed_after("what time is it")
    assert job.settled == ()
