"""Interruptions on the virtual clock: who gets the floor, and what stays of the reply."""

from __future__ import annotations

import random

import pytest
from msgspec.structs import replace

from tests.support.run import PlayedScenario, play
from tests.support.scenario import Failure, Scenario, ScriptedReply, Stages, UserSound
from voiceloop.dialogue.floor import WORDLESS_MS
from voiceloop.settings.config import Config, LlmConfig, TurnConfig
from voiceloop.trace.record import Mark
from voiceloop.types import FloorChange, StageSpan, TokenBurst, Transcript, TurnHeard, TurnTrace

pytestmark = pytest.mark.virtual

ASKED = "Tell me about the sky"
SKY = "The sky is blue, and that is how it is. Look at it, whenever you can, and enjoy it."
CONFIG = Config(llm=LlmConfig(skills="none"), turns=TurnConfig(endpoint="fixed", hangover_ms=400))


def talk(*sounds: UserSound, **options: object) -> PlayedScenario:
    """A question, and `sounds` while it is answered."""
    asked = UserSound(ASKED, at=0.5)
    scenario = Scenario(
        full_duplex=True,
        user=(asked, *sounds),
        reply=(ScriptedReply(ASKED, SKY), ScriptedReply(says="Of course.")),
        config=CONFIG,
        **options,  # type: ignore[arg-type]
    )
    replay = play(scenario)
    assert not replay.problem
    return replay


def during(text: str = "", *, delay_s: float = 1.0, **what: float) -> UserSound:
    return UserSound(text, after="sound", delay_s=delay_s, turn=1, **what)  # type: ignore[arg-type]


def spans(trace: TurnTrace, lane: str) -> list[StageSpan]:
    return [span for span in trace.spans if span.lane == lane]


def sounded_s(trace: TurnTrace) -> float:
    return sum(span.end - span.start for span in spans(trace, "speaker"))


@pytest.mark.parametrize(
    "sound",
    [
        during(noise_s=0.3),
        during("Uh-huh"),
        during("Yes, okay", word_s=0.2),
        during("sky is blue", delay_s=1.3, word_s=0.15),  # the reply's echo
    ],
    ids=["cough", "backchannel", "two", "echo"],
)
def test_what_is_no_interruption_pauses_the_reply_and_loses_no_sample(sound: UserSound) -> None:
    alone, other = talk().traces[0], talk(sound).traces
    assert len(other) == 2 and other[1].outcome == "abandoned" and not other[1].heard
    assert other[0].outcome == "done" and other[0].heard == alone.heard == SKY
    assert other[0].counters["resumed"] == 1
    first, second = spans(other[0], "speaker")
    assert second.start > first.end + 0.1, "it went silent in between"
    # Each break costs a fade out and a fade in, which sound and are not taken back.
    assert sounded_s(other[0]) == pytest.approx(sounded_s(alone), abs=0.02)


@pytest.mark.parametrize("asr_s", [0.05, 0.3, 0.6, 1.2])
def test_a_backchannel_lets_the_reply_go_on_however_late_its_words_are(asr_s: float) -> None:
    slow = Stages(asr_partial_s=asr_s, asr_final_s=asr_s)
    first, second = talk(during("Yeah right", word_s=0.4), stages=slow).traces
    assert first.outcome == "done" and first.heard == SKY and first.counters["resumed"] >= 1
    assert second.outcome == "abandoned" and not second.heard


@pytest.mark.parametrize("text", ["Stop", "No wait", "And what about the sea"])
def test_words_end_the_reply_and_history_is_what_was_heard(text: str) -> None:
    first, second = talk(during(text)).traces
    assert first.outcome == "interrupted" and SKY.startswith(first.heard) and first.heard != SKY
    assert 3 <= len(first.heard.split()) <= 6  # about a second, at four words a second
    assert second.outcome == "done" and second.heard == "Of course."
    said = [
        event.text
        for _, event in talk(during(text)).shown
        if isinstance(event, Transcript) and event.final and event.turn == 2
    ]
    assert said == [text], "the interrupting words are all there"


def test_the_reply_pauses_at_once_and_is_decided_on_within_half_a_second() -> None:
    words, wordless = during("And what about the sea then"), during(noise_s=2.5)
    for sound, most_ms in ((words, 500), (wordless, WORDLESS_MS + 20)):
        first, second = talk(sound).traces
        began = second.marks[Mark.SPEECH_START]
        silent = spans(first, "speaker")[0].end
        assert silent - began < 0.2
        (decision,) = [span for span in spans(second, "vad") if span.name == "interrupt"]
        assert (decision.end - decision.start) * 1000 <= most_ms
        assert first.outcome == "interrupted"


@pytest.mark.parametrize("word_s", [0.3, 0.34, 0.38, 0.42, 0.46, 0.5, 0.54, 0.58, 0.62])
def test_one_word_of_any_length_is_decided_on_within_half_a_second_and_its_decode(
    word_s: float,
) -> None:
    first, second = talk(during("Stop", word_s=word_s)).traces
    assert first.outcome == "interrupted"
    (decision,) = [span for span in spans(second, "vad") if span.name == "interrupt"]
    if (decision.end - decision.start) * 1000 > 500:
        assert decision.end in [span.end for span in spans(second, "asr")], "as soon as understood"


def test_a_sound_that_cannot_be_decoded_lets_the_reply_go_on() -> None:
    first, second = talk(during("Stop"), fail=(Failure("asr", "Stop"),)).traces
    assert second.outcome == "failed"
    assert first.outcome == "done" and first.heard == SKY and first.counters["resumed"] == 1


def test_a_cough_and_then_a_word_is_an_interruption() -> None:
    first, second = talk(during("(0.1) Mm (0.2) stop it")).traces
    assert first.outcome == "interrupted" and second.outcome == "done"


def test_words_that_let_the_reply_go_on_are_not_said_again_by_those_that_end_it() -> None:
    replay = talk(during("Okay (0.3) stop it"))
    first, second = replay.traces
    assert first.outcome == "interrupted" and first.counters["resumed"] == 1
    windows = [span.args["text"] for span in spans(second, "asr")]
    assert "Okay" in windows and windows[-1] == "stop it", "each was heard by itself"
    finals = [one.text for _, one in replay.shown if isinstance(one, Transcript) and one.final]
    assert finals[1] == "Okay stop it"


SLOW = Stages(
    asr_partial_s=0.25,
    asr_final_s=0.25,
    llm_prefill_s=0.25,
    llm_burst_s=0.25,
    llm_burst_words=3,
    tts_first_s=0.25,
    tts_word_s=0.25,
)


@pytest.mark.parametrize("during_s", [1.0, 5.0, 5.3, 5.6, 5.9])
def test_what_follows_a_sound_that_let_the_reply_go_on_begins_anew_for_whoever_watches(
    during_s: float,
) -> None:
    # From the reply's middle to its end: the word is said into it, and the rest perhaps after it.
    replay = talk(during("Okay (0.3) and what about the sea", delay_s=during_s))
    assert replay.traces[1].outcome == "done"
    told = [
        (event.turn, "ended" if event.over else "began")
        if isinstance(event, TurnHeard)
        else (event.turn, event.change)
        for _, event in replay.shown
        if isinstance(event, TurnHeard | FloorChange)
    ]
    second = [what for turn, what in told if turn == 2]
    assert second[-1] == "ended"
    if "resumed" in second:
        assert "began" in second[second.index("resumed") :]


@pytest.mark.parametrize("delay_s", [0.55, 0.6, 0.625, 0.7, 0.8])
def test_a_sound_contests_the_reply_though_the_last_one_is_not_understood_yet(
    delay_s: float,
) -> None:
    noise = UserSound("", after="speech", delay_s=1.0, noise_s=0.5)
    replay = play(
        Scenario(
            full_duplex=True,
            overlap="sequential",
            user=(UserSound("tell", at=0.5, word_s=0.25), noise, replace(noise, delay_s=delay_s)),
            reply=(ScriptedReply(says="yes, yes, yes, yes,"),),
            stages=SLOW,
        )
    )
    first, *others = sorted(replay.traces, key=lambda trace: trace.turn)
    assert first.turn == 1 and first.outcome in ("done", "interrupted")
    assert [trace.outcome for trace in others] == ["abandoned", "abandoned"]


def test_a_guess_that_was_dropped_is_not_committed_by_the_same_words() -> None:
    # A noise makes the guess void, and in the end the words are the same nevertheless.
    noise = UserSound("", after="speech", delay_s=1.0, noise_s=0.25)
    replay = play(
        Scenario(
            user=(UserSound("tell", at=0.5, word_s=0.109375), noise),
            reply=(ScriptedReply(says="yes,"),),
            stages=replace(SLOW, llm_prefill_s=0.125),
            config=replace(CONFIG, turns=TurnConfig(hangover_ms=1100)),
        )
    )
    (trace,) = replay.traces
    said = "".join(event.text for _, event in replay.shown if isinstance(event, TokenBurst))
    assert trace.counters["replies_dropped"] == 1
    assert (trace.outcome, trace.heard, said) == ("done", "yes,", "yes,")


def test_before_its_first_sound_a_reply_leaves_no_trace_and_both_are_one_turn() -> None:
    # Synthesis takes long, and the user goes on before it is done.
    slow = Stages(tts_first_s=1.5)
    replay = talk(UserSound("And the sea", after="speech", delay_s=0.7), stages=slow)
    first, second = replay.traces
    assert first.outcome == "interrupted" and first.heard == ""
    assert Mark.FIRST_SOUND not in first.marks
    assert second.outcome == "done"


def test_a_user_who_had_not_finished_is_cut_off_only_for_a_moment() -> None:
    first, second = talk(during("in the evening", delay_s=0.1)).traces
    assert first.counters["false_cutoffs"] == 1
    assert first.heard == "" and second.outcome == "done"
    later, _ = talk(during("in the evening", delay_s=1.2)).traces
    assert "false_cutoffs" not in later.counters and later.heard


@pytest.mark.slow
@pytest.mark.parametrize(
    "count", [pytest.param(60, id="quick"), pytest.param(1000, id="all", marks=pytest.mark.full)]
)
def test_history_is_what_was_heard_whenever_the_user_interrupts(count: int) -> None:
    rng = random.Random(count)
    outcomes = set[str]()
    for _ in range(count):
        text = rng.choice(["Stop", "And the sea", "Wait a moment please", "Uh-huh", ""])
        noise_s = 0.0 if text else rng.uniform(0.1, 0.8)
        sound = during(text, delay_s=rng.uniform(0.0, 5.5), noise_s=noise_s)
        replay = talk(sound)
        first = replay.traces[0]
        words = [word for span in spans(first, "speaker") for word in [span]]
        assert words or not first.heard
        assert SKY.startswith(first.heard)
        # At four words a second, no more was heard than there was time for, and hardly less.
        possible = sounded_s(first) / Stages().tts_word_s
        heard = len(first.heard.split())
        assert heard <= possible + 0.1
        if "false_cutoffs" not in first.counters:
            assert heard > possible - 2.1
        if first.outcome == "done":
            assert first.heard == SKY
        outcomes.add(first.outcome)
    assert outcomes == {"done", "interrupted"}
