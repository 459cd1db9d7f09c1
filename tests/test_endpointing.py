"""How long the session waits for the end of a turn, on the virtual clock."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voiceloop.config import AsrConfig, Config, TurnConfig
from voiceloop.replay.run import play
from voiceloop.replay.scenario import Answer, Scenario, Stages, UserSound
from voiceloop.trace import Mark, endpoint_to_sound_ms
from voiceloop.types import TurnTrace

pytestmark = pytest.mark.virtual

TURNS = TurnConfig(endpoint="p-eot")
WINDOW_S = 0.032
"""The voice detector looks so often."""
CHANCES = {
    "Tell me": 0.001,
    "Tell me about": 0.001,
    "Tell me about the sky": 0.9,
    "Who knows": 0.05,
    "What time is it": 0.9,
}


def turns(
    text: str,
    *,
    config: TurnConfig = TURNS,
    overlap: str = "speculative",
    says: str = "Of course. It is.",
    word_s: float = 0.3,
    stages: Stages = Stages(),  # noqa: B008
    partial_every_ms: int = 240,
    language: str = "en",
) -> list[TurnTrace]:
    asr = AsrConfig(partial_every_ms=partial_every_ms, language=language)
    scenario = Scenario(
        overlap=overlap,
        user=(UserSound(text, at=0.5, word_s=word_s),),
        stages=stages,
        reply=(Answer(says=says),),
        end_of_turn=CHANCES,
        silence_s=2.0,
        config=replace(Config(), turns=config, asr=asr),
    )
    replay = play(scenario)
    assert not replay.problem
    return replay.traces


QUICK: dict[str, Any] = {
    "word_s": 1.0,
    "partial_every_ms": 40,
    "stages": Stages(asr_partial_s=0.01, llm_prefill_s=0.01, llm_burst_s=0.01),
}
"""A word is recognised a tenth of a second before its end."""


def waited_ms(trace: TurnTrace) -> float:
    return (trace.marks[Mark.ENDPOINT] - trace.marks[Mark.SPEECH_END]) * 1000


@pytest.mark.parametrize(
    ("text", "silence_ms"),
    [
        ("Tell me about the sky", TURNS.complete_ms),
        ("Tell me about", TURNS.incomplete_ms),
        ("Who knows", TURNS.hangover_ms),
    ],
)
def test_a_turn_ends_after_the_silence_that_its_words_deserve(text: str, silence_ms: int) -> None:
    (trace,) = turns(text)
    # The words are not known before their decode; a frame passes until somebody looks.
    assert silence_ms <= waited_ms(trace) <= max(silence_ms, 200) + 2 * WINDOW_S * 1000


def test_a_pause_after_words_that_ask_for_more_ends_no_turn() -> None:
    (trace,) = turns("Tell me about (0.9) the sky")
    assert trace.counters["replies_dropped"] == 1
    assert waited_ms(trace) < 250
    assert len(turns("What time is it (0.9) in Paris")) == 2, "this could be all"


def test_little_is_thought_of_a_guess_that_is_probably_wrong_and_all_of_it_in_time() -> None:
    says = "That depends on what you are thinking of just now. Go on."
    (short,) = turns("Tell me about (0.4) the sky", says=says)
    first = short.counters["wasted_tokens"]
    assert first == Stages().llm_burst_words, "one step tells how probable it is"
    (longer,) = turns("Tell me about (0.9) the sky", says=says)
    assert longer.counters["wasted_tokens"] > first, "by now it may be all"
    (whole,) = turns("Tell me about", says=says)
    assert endpoint_to_sound_ms(whole) == pytest.approx(0, abs=1), "the answer was there"
    (sure,) = turns("Tell me about the sky")
    assert "wasted_tokens" not in sure.counters


def test_words_that_may_be_all_are_answered_before_the_user_falls_silent() -> None:
    (trace,) = turns("Tell me about the sky", **QUICK)
    at = trace.marks
    assert at[Mark.FIRST_BURST] < at[Mark.SPEECH_END], "most of the last word had been heard"
    assert at[Mark.FIRST_SYNTHESIS] < at[Mark.ENDPOINT] == at[Mark.FIRST_SOUND]
    assert TURNS.complete_ms <= waited_ms(trace)
    assert at[Mark.ENDPOINT] == at[Mark.TRANSCRIPT_FINAL], "by then it had been silent for long"
    assert trace.outcome == "done" and "replies_dropped" not in trace.counters


@pytest.mark.parametrize("pause", ["", "(0.07) "])
def test_an_answer_begun_too_early_is_never_heard(pause: str) -> None:
    (trace,) = turns(f"What time is it {pause}in Paris", **QUICK)
    assert trace.outcome == "done" and trace.heard == "Of course. It is."
    assert trace.counters["replies_dropped"] >= 1
    assert trace.marks[Mark.FIRST_SOUND] >= trace.marks[Mark.ENDPOINT]


def test_the_last_word_decides_where_no_model_is_asked() -> None:
    words = replace(TURNS, endpoint="trailing-words")
    assert waited_ms(turns("Tell me about", config=words)[0]) >= words.incomplete_ms
    (trace,) = turns("Who knows", config=words)
    assert waited_ms(trace) == pytest.approx(words.hangover_ms, abs=53)
    fixed = replace(TURNS, endpoint="fixed", hangover_ms=300)
    assert waited_ms(turns("Tell me about", config=fixed)[0]) == pytest.approx(300, abs=53)


@pytest.mark.parametrize(
    ("code", "silence_ms"), [("de", 1100), ("de-AT", 1100), ("en", 500), ("fr", 500)]
)
def test_the_last_words_are_those_of_the_language_that_is_spoken(
    code: str, silence_ms: int
) -> None:
    words = replace(TURNS, endpoint="trailing-words")
    (trace,) = turns("Wer ist der", config=words, language=code)
    assert waited_ms(trace) == pytest.approx(silence_ms, abs=53)


def test_without_prefill_nobody_asks_the_model() -> None:
    (trace,) = turns("Tell me about the sky", overlap="streaming")
    assert waited_ms(trace) >= TURNS.hangover_ms
    assert not [span for span in trace.spans if span.name == "end of turn?"]


SLOW = Stages(asr_partial_s=0.7, asr_final_s=0.7)
"""The words are known only after a silence that would end the turn."""


def test_a_slow_recogniser_cuts_nobody_off() -> None:
    words = replace(TURNS, endpoint="trailing-words")
    for config in (TURNS, words):
        (trace,) = turns("Tell me about (0.8) the sky", config=config, stages=SLOW)
        assert trace.outcome == "done" and trace.heard == "Of course. It is."


def test_a_turn_ends_as_soon_as_its_words_are_known_and_judged() -> None:
    for text in ("Who knows", "Tell me about the sky"):
        (trace,) = turns(text, stages=SLOW)
        judged = next(span.end for span in trace.spans if span.name == "end of turn?")
        assert trace.marks[Mark.ENDPOINT] == pytest.approx(judged, abs=1e-6)
        assert TURNS.hangover_ms < waited_ms(trace) < TURNS.incomplete_ms
    (never,) = turns("Who knows", stages=Stages(asr_partial_s=2.0, asr_final_s=2.0))
    assert waited_ms(never) == pytest.approx(TURNS.incomplete_ms, abs=53)


def test_nobody_waits_for_words_that_decide_nothing() -> None:
    fixed = replace(TURNS, endpoint="fixed")
    for overlap, config in (("speculative", fixed), ("sequential", TURNS)):
        (trace,) = turns("Who knows", config=config, stages=SLOW, overlap=overlap)
        assert waited_ms(trace) == pytest.approx(TURNS.hangover_ms, abs=53)


@settings(max_examples=25)
@given(st.floats(0.1, 0.95), st.floats(0.1, 0.95))
def test_words_after_any_pauses_within_the_hold_are_one_turn(one: float, other: float) -> None:
    (trace,) = turns(f"Tell me ({one:.3f}) about ({other:.3f}) the sky")
    assert trace.outcome == "done" and trace.heard == "Of course. It is."
