"""How long the session waits for the end of a turn, on the virtual clock."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.support.run import play
from tests.support.scenario import Scenario, ScriptedReply, Stages, UserSound
from tests.support.scripted import ScriptedTurnModel
from voiceloop.settings.config import AsrConfig, Config, TurnConfig
from voiceloop.trace.record import Mark, endpoint_to_sound_ms
from voiceloop.types import Pcm, TurnTrace

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
    "How old is it": 0.9,
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
    sounds: Mapping[str, float] | None = None,
    full_duplex: bool = False,
) -> list[TurnTrace]:
    asr = AsrConfig(partial_every_ms=partial_every_ms, language=language)
    scenario = Scenario(
        overlap=overlap,
        full_duplex=full_duplex,
        user=(UserSound(text, at=0.5, word_s=word_s),),
        stages=stages,
        reply=(ScriptedReply(says=says),),
        end_of_turn=CHANCES,
        end_by_sound=sounds or {},
        silence_s=2.0,
        config=Config(turns=config, asr=asr),
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


def test_an_answer_to_doubtful_words_is_there_in_time_though_the_models_are_slow() -> None:
    slow = Stages(asr_final_s=0.3, llm_prefill_s=0.1, llm_burst_s=0.1, tts_first_s=0.2)
    (whole,) = turns("Tell me about", stages=slow)
    assert endpoint_to_sound_ms(whole) == pytest.approx(0, abs=1), "half the silence is enough"


@pytest.mark.parametrize("prefill_s", [0.05, 0.1, 0.15, 0.2, 0.25, 0.3])
def test_words_that_are_being_read_when_the_user_falls_silent_are_judged_by_that(
    prefill_s: float,
) -> None:
    stages = Stages(llm_prefill_s=prefill_s, asr_final_s=0.05)
    (trace,) = turns("What time is it", stages=stages, partial_every_ms=100)
    assert waited_ms(trace) < 100 + 1000 * (stages.asr_final_s + 2 * prefill_s)


def test_words_that_may_be_all_are_answered_before_the_user_falls_silent() -> None:
    (trace,) = turns("Tell me about the sky", **QUICK)
    at = trace.marks
    assert at[Mark.FIRST_BURST] < at[Mark.SPEECH_END], "most of the last word had been heard"
    assert at[Mark.FIRST_SYNTHESIS] < at[Mark.ENDPOINT], "a partial had heard all"
    assert TURNS.complete_ms <= waited_ms(trace)
    assert at[Mark.FIRST_SOUND] == at[Mark.TRANSCRIPT_FINAL], "by then it had been silent for long"
    assert trace.outcome == "done" and "replies_dropped" not in trace.counters


@pytest.mark.parametrize("pause", ["", "(0.07) "])
def test_an_answer_begun_too_early_is_never_heard(pause: str) -> None:
    (trace,) = turns(f"How old is it {pause}in Paris", **QUICK)
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


@pytest.mark.slow
@settings(max_examples=25)
@given(st.floats(0.1, 0.95), st.floats(0.1, 0.95))
def test_words_after_any_pauses_within_the_hold_are_one_turn(one: float, other: float) -> None:
    (trace,) = turns(f"Tell me ({one:.3f}) about ({other:.3f}) the sky")
    assert trace.outcome == "done" and trace.heard == "Of course. It is."


# ---- a user who pauses for longer than was waited for


@pytest.mark.parametrize("config", [TURNS, replace(TURNS, hangover_ms=300)])
@pytest.mark.parametrize("pause_s", [0.7, 1.2])
def test_a_user_who_was_taken_to_have_ended_and_goes_on_is_given_time(
    pause_s: float, config: TurnConfig
) -> None:
    first, second = turns(
        f"What time is it ({pause_s}) Tell me about the sky",
        config=config,
        says="Of course it is, my friend. It is.",  # as much as is heard of it is too little
        full_duplex=True,
    )
    assert waited_ms(first) < 250 and first.outcome == "interrupted"
    assert waited_ms(second) == pytest.approx(config.hangover_ms, abs=53)
    assert second.outcome == "done"


@pytest.mark.parametrize("full_duplex", [False, True])
def test_a_user_who_has_listened_is_answered_as_soon_as_ever(full_duplex: bool) -> None:
    talk = "What time is it (2.5) Tell me about the sky"
    first, second = turns(talk, full_duplex=full_duplex)
    assert waited_ms(first) < 250 and waited_ms(second) < 250
    assert first.outcome == second.outcome == "done"


# ---- the sound of the voice beside the words

SKY = "Tell me about the sky"
SOUND = "end by its sound?"


def heard_s(trace: TurnTrace) -> list[float]:
    """How long after the end of speech the sound was judged, each time."""
    spans = [span for span in trace.spans if span.name == SOUND]
    return [span.start - trace.marks[Mark.SPEECH_END] for span in spans]


def test_a_voice_that_goes_on_by_its_sound_is_waited_for() -> None:
    assert waited_ms(turns(SKY)[0]) < 200
    (trace,) = turns(SKY, sounds={SKY: 0.001})
    assert waited_ms(trace) == pytest.approx(TURNS.incomplete_ms, abs=53)
    assert trace.outcome == "done"


def test_a_voice_that_has_ended_by_its_sound_outweighs_doubtful_words() -> None:
    assert waited_ms(turns("Who knows", sounds={SKY: 0.9})[0]) >= TURNS.hangover_ms
    (trace,) = turns("Who knows", sounds={"Who knows": 0.999})
    assert waited_ms(trace) == pytest.approx(200 + 20, abs=53)
    (span,) = [span for span in trace.spans if span.name == "end of turn?"]
    assert span.args["probability"] == 0.05 and span.args["sound"] == 0.999


def test_no_turn_ends_before_its_sound_has_been_judged_in_time() -> None:
    (trace,) = turns(SKY, sounds={SKY: 0.5})
    assert [at == pytest.approx(0.2, abs=0.053) for at in heard_s(trace)] == [True]
    assert waited_ms(trace) == pytest.approx(220, abs=53)
    (slow,) = turns(SKY, sounds={SKY: 0.9}, stages=Stages(sound_s=2.0))
    assert waited_ms(slow) == pytest.approx(TURNS.incomplete_ms, abs=53)


def test_nobody_waits_for_the_ear_once_the_turn_is_over() -> None:
    plain = turns("Who knows", config=replace(TURNS, incomplete_ms=500))[0]
    config = replace(TURNS, incomplete_ms=500)
    (late,) = turns("Who knows", config=config, sounds={SKY: 0.5}, stages=Stages(sound_s=30.0))
    assert late.outcome == "done" and late.marks[Mark.SOUND_END] < 10
    assert late.marks[Mark.ENDPOINT] == pytest.approx(plain.marks[Mark.ENDPOINT], abs=0.053)


def test_each_silence_is_judged_by_itself() -> None:
    # The judgement of the first silence comes when the user speaks again.
    for sound_s in (0.02, 0.15):
        (trace,) = turns(
            "What time is it (0.3) in Paris",
            sounds={"What time is it": 0.9999, "What time is it in Paris": 0.001},
            stages=Stages(sound_s=sound_s, asr_final_s=0.35),
        )
        assert trace.outcome == "done"
        assert len(heard_s(trace)) == 2
        assert waited_ms(trace) >= TURNS.hangover_ms


def test_how_an_earlier_silence_sounded_says_nothing_of_what_follows() -> None:
    (plain,) = turns("Tell me (0.4) about the sky", **QUICK)
    (trace,) = turns("Tell me (0.4) about the sky", **QUICK, sounds={"Tell me": 0.0001, SKY: 0.9})
    begun = [one.marks[Mark.FIRST_SYNTHESIS] for one in (plain, trace)]
    assert begun[0] == pytest.approx(begun[1]) and begun[0] < trace.marks[Mark.SPEECH_END]


@pytest.mark.parametrize("endpoint", ["fixed", "trailing-words"])
def test_the_sound_is_not_judged_where_the_model_is_not_asked(endpoint: str) -> None:
    config = replace(TURNS, endpoint=endpoint)  # pyright: ignore
    (trace,) = turns(SKY, config=config, sounds={SKY: 0.001})
    assert not heard_s(trace)
    assert waited_ms(trace) == pytest.approx(TURNS.hangover_ms, abs=53)


def test_the_ear_is_given_the_end_of_the_turn_and_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Pcm] = []
    judge = ScriptedTurnModel.end_of_turn_probability

    def listens(ear: ScriptedTurnModel, pcm: Pcm) -> float:
        given.append(pcm)
        return judge(ear, pcm)

    monkeypatch.setattr(ScriptedTurnModel, "end_of_turn_probability", listens)
    turns("I said that I have always wondered about the sky", word_s=1.0, sounds={SKY: 0.5})
    turns(SKY, sounds={SKY: 0.5})
    long, short = given
    assert len(long) == 8 * 16_000 and 1.5 * 16_000 < len(short) < 2.5 * 16_000
    for pcm in given:
        silent = len(pcm) - 1 - int(np.flatnonzero(pcm)[-1])
        assert 200 <= silent / 16 < 253
