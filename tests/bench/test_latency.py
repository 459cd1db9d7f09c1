"""From takes to the record of `bench latency`: complete, and true to what happened."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from itertools import pairwise
from typing import Any, get_args

import pytest

from tests.bench.made import BEGAN, END, MACHINE, answered, at, clip, judge, of_json, take
from tests.traces import out_of_order
from voiceloop.bench.clips import Clip
from voiceloop.bench.command import Suite
from voiceloop.bench.compare import compare
from voiceloop.bench.interruptions import reaction
from voiceloop.bench.latency import (
    INPUT,
    PEOPLE,
    REPLY_TOKENS,
    SUITES,
    Measured,
    Plan,
    check,
    decides,
    played,
    record,
    usual_suite,
)
from voiceloop.bench.report import draw
from voiceloop.bench.report.latency import report
from voiceloop.bench.scoring import word_errors
from voiceloop.bench.sentences import Standing, added
from voiceloop.bench.suites import SuiteName
from voiceloop.bench.takes import MODES, Take
from voiceloop.bench.turnfigures import outcome
from voiceloop.config import AsrConfig, Config, LlmConfig
from voiceloop.errors import ConfigError
from voiceloop.trace.record import Mark, parts_ms
from voiceloop.types import TurnTrace

pytestmark = pytest.mark.pure

SOUNDS = {"sequential": 0.9, "streaming": 0.5, "speculative": 0.3, "no-prefill": 0.35}
"""Seconds from the end of speech to the reply, in each mode."""


def measured(own: Clip, *, modes: dict[str, float] = SOUNDS, later: float = 0.0) -> Measured:
    """A clip whose replies came `later` than usual."""

    def made(sound: float) -> Take:
        turn = answered(sound=sound + later)
        judge(turn, 2.05, 2.1, "what is the time", 0.9)
        return take(turn.trace("done"), ends=[END + 0.2], heard=["what is the time"])

    takes = {name: made(sound) for name, sound in modes.items()}
    outcomes = {name: outcome(one, own.said) for name, one in takes.items()}
    words = {name: word_errors("what is the time", one.text) for name, one in outcomes.items()}
    return Measured(own, takes, outcomes, words, word_errors("what is the time", "what is"))


def clips(count: int) -> list[Measured]:
    pauses: list[tuple[Standing, float, float]] = [("incomplete", 0.8, 1.1)]
    return [
        measured(clip(f"a-{index:03}", pauses), later=0.01 * (index % 3)) for index in range(count)
    ]


PLAN = Plan(Config(), modes=tuple(SOUNDS))


def html(made: dict[str, Any]) -> str:
    return draw.html(report(of_json(made)))


def text(made: dict[str, Any]) -> str:
    return draw.text(report(of_json(made)))


def recorded(plan: Plan, own: list[Measured], planned: int) -> dict[str, Any]:
    return record(plan, own, planned=planned, machine=MACHINE).to_json()


def test_a_record_has_every_figure_of_every_mode() -> None:
    made = recorded(PLAN, clips(6), 8)
    assert list(made["modes"]) == list(SOUNDS)
    for name, mode in made["modes"].items():
        for figure in ("voice_to_voice_ms", "endpoint_to_sound_ms", "endpoint_delay_ms"):
            assert set(mode[figure]) == {"p50", "p95"}
        assert mode["voice_to_voice_ms"]["p50"] == pytest.approx(1000 * SOUNDS[name] + 10)
        assert mode["endpoint_delay_ms"]["p50"] == pytest.approx(200)
        assert mode["parts_off_by_ms"] < 1
        assert (mode["false_cutoffs"], mode["missed_endpoints"], mode["wer"]) == (0, 0, 0)
        assert {"wasted_tokens", "cpu_s_per_turn", "underruns", "tail_words_lost"} <= mode.keys()
    assert made["ratios"] == {
        "sequential_over_speculative": pytest.approx(0.91 / 0.31, abs=0.01),
        "streaming_over_speculative": pytest.approx(0.51 / 0.31, abs=0.01),
    }
    assert made["cost_ms_without"] == {"no-prefill": pytest.approx(50)}
    assert made["cpu_over_streaming"]["speculative"] == 1
    assert made["whole_clip_wer"] == 0.5
    assert (made["settings"]["turns"], made["settings"]["turns_planned"]) == (6, 8)
    assert made["memory_mb"] > 10
    assert made["turns"]["median"]["trace"]["voice_to_voice_ms"] == pytest.approx(310)
    assert made["turns"]["worst"]["clip"] in ("a-002", "a-005")


def test_it_is_one_line_of_json_that_can_be_compared_told_and_shown() -> None:
    own = clips(6)
    made = json.loads(json.dumps(recorded(PLAN, own, 6)))
    assert not compare(made, made).regressed
    slower = [measured(one.clip, later=0.2) for one in own]
    assert compare(made, recorded(PLAN, slower, 6)).regressed
    assert made["turns"]["median"]["clip"] in html(made)
    assert "6 of 6 things said" in text(made)
    assert [*played(own)] == [*SOUNDS]


def test_only_modes_that_decide_for_themselves_are_judged_by_their_cut_offs() -> None:
    made = recorded(PLAN, clips(2), 2)["endpointing"]
    assert list(made["cut_offs"]) == ["speculative"]
    assert made["cut_offs"]["speculative"]["incomplete"] == {
        **{"pauses": 2, "ended": 0, "cut_off": 0},
    }
    assert {name for name, mode in MODES.items() if decides(mode)} == {
        *("speculative", "fixed-600", "trailing-words", "p-eot"),
    }


def test_what_was_not_measured_is_null_or_left_out() -> None:
    plan = replace(PLAN, modes=("streaming", "no-prefill"))
    own = [measured(clip(), modes={"streaming": 0.5, "no-prefill": 0.6})]
    made = recorded(plan, own, 1)
    assert set(made["ratios"].values()) == {None}
    assert made["cost_ms_without"] == made["turns"] == {}
    assert "endpointing" not in made
    silent = measured(clip(), modes={})
    nothing = replace(
        silent,
        takes={"speculative": take()},
        outcomes={"speculative": outcome(take(), clip().said)},
        words={},
        whole=None,
    )
    made = recorded(replace(PLAN, modes=("speculative",)), [nothing], 1)
    assert made["modes"]["speculative"]["missed_endpoints"] == 1
    assert (made["modes"]["speculative"]["wer"], made["turns"]) == (None, {})
    json.dumps(made)
    html(made)
    text(made)


def test_interruptions_and_additions_have_sections_of_their_own() -> None:
    sound = clip("b-000", interruption=("cough", ""))
    interrupted = replace(measured(sound).takes["speculative"], interrupted=round(16_000 * 3.0))
    assert reaction(sound, interrupted) is not None
    own = measured(sound)
    own = replace(own, takes={**own.takes, "speculative": interrupted})
    made = recorded(PLAN, [own], 1)
    assert made["interruptions"]["kinds"]["cough"]["sounds"] == 1
    added_to = replace(clip("c-000"), addition=added("now", "What is it?", "right now?"))
    made = recorded(PLAN, [measured(added_to)], 1)
    assert made["carry_over"]["speculative"]["now"]["clips"] == 1


def test_traces_of_a_mode_follow_one_another_and_keep_their_parts() -> None:
    traces = played(clips(3))["streaming"]
    assert [trace.turn for trace in traces] == [1, 2, 3]

    def moments(trace: TurnTrace) -> list[float]:
        return [*trace.marks.values(), *(span.end for span in trace.spans)]

    for before, after in pairwise(traces):
        assert max(moments(before)) < min(moments(after)) < max(moments(before)) + 10
    assert min(moments(traces[0])) < BEGAN
    for trace in traces:
        assert out_of_order(trace) == [] and parts_ms(trace)
        assert trace.marks[Mark.FIRST_SOUND] > trace.marks[Mark.ENDPOINT]


def test_every_suite_has_modes_and_a_name_in_the_command() -> None:
    assert set(get_args(Suite)) == {*get_args(SuiteName), PEOPLE}
    assert set(SUITES) == {*get_args(SuiteName), PEOPLE, INPUT}
    for suite, own in SUITES.items():
        assert set(own.modes) <= set(MODES)
        assert [mode.name for mode in Plan(Config(), suite).chosen] == [
            name for name in MODES if name in own.modes
        ]


def test_a_number_of_turns_is_the_users_word_and_else_time_is_short() -> None:
    assert Plan(Config()).limit_s < 12 * 60
    assert Plan(Config(), turns=100).limit_s == math.inf
    assert Plan(Config(), turns=100).clips == 100


def test_additions_are_heard_with_a_wait_that_no_pause_outlasts() -> None:
    turns = Plan(Config(), "additions").settings.turns
    assert (turns.endpoint, turns.hangover_ms) == ("fixed", 800)
    assert Plan(Config(), "pauses").settings == Config()


def models(asr: str = "starter", target: str = "starter", most: int = 256) -> Config:
    return Config(asr=AsrConfig(model=asr), llm=LlmConfig(target=target, max_new_tokens=most))


@pytest.mark.parametrize(
    ("config", "suite"),
    [
        (models(), "starter"),
        (models(asr="tiny.en"), "questions"),
        (models(target="some/model"), "questions"),
    ],
)
def test_only_the_starter_models_are_asked_of_their_own_domain(config: Config, suite: str) -> None:
    assert usual_suite(config) == suite


@pytest.mark.parametrize("suite", ["questions", "people"])
def test_what_any_model_answers_is_answered_briefly_in_every_mode(suite: str) -> None:
    plan = Plan(models(asr="tiny.en"), suite)
    assert plan.settings.llm.max_new_tokens == REPLY_TOKENS == 60
    assert Plan(models(most=20), suite).settings.llm.max_new_tokens == 20
    made = recorded(plan, [], 0)
    assert made["settings"]["max_new_tokens"] == 60
    assert Plan(models(), "starter").settings.llm.max_new_tokens == 256


def test_recordings_of_people_are_counted_as_they_are() -> None:
    whole = clip("a-000")
    own = ((at(0.8), at(1.1)), (at(1.3), at(1.6)))
    whole = replace(whole, said=replace(whole.said, own_pauses=own, text="what is the tide"))
    ended = take(answered().trace("done"), ends=[1.05, END + 0.2], heard=["what is", "the time"])
    words = {"speculative": word_errors("what is the tide", "what is the time")}
    heard = Measured(
        whole, {"speculative": ended}, {"speculative": outcome(ended, whole.said)}, words, None
    )
    cut = measured(clip("a-000-001", [("open", 0.8, 1.1)]), modes={"speculative": 0.3})
    plan = Plan(models(asr="tiny.en"), PEOPLE)
    made = recorded(plan, [heard, cut], 2)
    assert made["people"] == {
        **{"recordings": 1, "own_pauses": 2, "own_pauses_that_ended_a_turn": 1},
        **{"with_text": 1, "words": 4, "word_errors": 1},
    }
    assert made["modes"]["speculative"]["false_cutoffs"] == 0.5
    assert made["endpointing"]["cut_offs"]["speculative"]["open"]["pauses"] == 1
    assert "1 of 2" in text(made) and "1 of 4" in text(made)
    html(made)


@pytest.mark.parametrize(
    ("plan", "message", "hint"),
    [
        (Plan(Config(), "people"), "starter recogniser", "--asr.model"),
        (replace(PLAN, modes=("speculativ",)), "'speculativ'", "'speculative'"),
        (replace(PLAN, modes=("zzz",)), "'zzz'", "no-held-audio"),
        (replace(PLAN, turns=0), "no turns", "--turns"),
    ],
)
def test_a_plan_that_cannot_be_carried_out_is_refused(plan: Plan, message: str, hint: str) -> None:
    check(PLAN)
    with pytest.raises(ConfigError) as refused:
        check(plan)
    assert message in refused.value.message and hint in refused.value.hint
