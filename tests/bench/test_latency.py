"""The record of `bench latency`, from takes that are known, and what a run refuses."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lab.compare import compare
from tests.bench.conftest import quiet
from tests.bench.made import END, MACHINE, answered, clip, take
from voiceloop.bench.clips import Clip, ClipSpeech
from voiceloop.bench.command import BenchLatency
from voiceloop.bench.latency import (
    REPLY_TOKENS,
    SUITES,
    LatencyPlan,
    Measured,
    modes_of,
    played,
    record,
    run,
    usual_suite,
)
from voiceloop.bench.record import text, word_errors
from voiceloop.bench.takes import Take
from voiceloop.bench.turnfigures import outcome
from voiceloop.errors import ConfigError
from voiceloop.settings.config import AsrConfig, Config, LlmConfig

pytestmark = pytest.mark.pure

SOUNDS = {"sequential": 0.9, "streaming": 0.5, "speculative": 0.3}
"""Seconds from the end of speech to the reply, in each mode."""
PLAN = LatencyPlan(Config(), SUITES["starter"])


def measured(own: Clip, *, modes: dict[str, float] = SOUNDS, later: float = 0.0) -> Measured:
    """A clip whose replies came `later` than usual."""

    def made(sound: float) -> Take:
        turn = answered(sound=sound + later)
        return take(turn.trace("done"), ends=[END + 0.2], heard=["what is the time"])

    takes = {name: made(sound) for name, sound in modes.items()}
    outcomes = {name: outcome(one, own.said) for name, one in takes.items()}
    return Measured(own, takes, outcomes, word_errors("what is the time", "what is"))


def clips(count: int) -> list[Measured]:
    return [measured(clip(f"a-{index:03}"), later=0.01 * (index % 3)) for index in range(count)]


def recorded(plan: LatencyPlan, own: list[Measured], planned: int) -> dict[str, Any]:
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
    assert made["cpu_over_streaming"]["speculative"] == 1
    assert made["whole_clip_wer"] == 0.5
    assert (made["settings"]["turns"], made["settings"]["turns_planned"]) == (6, 8)
    assert made["memory_mb"] > 10
    assert made["turns"]["median"]["trace"]["voice_to_voice_ms"] == pytest.approx(310)
    assert made["turns"]["worst"]["clip"] in ("a-002", "a-005")


def test_it_is_one_line_of_json_that_can_be_compared_and_told() -> None:
    own = clips(6)
    made = json.loads(json.dumps(recorded(PLAN, own, 6)))
    assert not compare(made, made).regressed
    slower = [measured(one.clip, later=0.2) for one in own]
    assert compare(made, recorded(PLAN, slower, 6)).regressed
    told = text(record(PLAN, own, planned=6, machine=MACHINE))
    assert "| voice_to_voice_ms" in told and "a-000" not in told
    assert told.endswith(
        "\n\nIt answered in 0.31 s (the median of 6), from your last sound to its first sound."
    )
    traces = played(own)
    assert [*traces] == [*SOUNDS]
    assert [trace.turn for trace in traces["streaming"]] == [1, 2, 3, 4, 5, 6]


def test_what_was_not_measured_is_null_or_left_out() -> None:
    plan = replace(PLAN, modes=modes_of("streaming"))
    made = recorded(plan, [measured(clip(), modes={"streaming": 0.5})], 1)
    assert set(made["ratios"].values()) == {None}
    assert made["turns"] == {}
    silent = take()
    untold = ClipSpeech(None, clip().said.start, clip().said.end)
    nothing = Measured(
        clip(), {"speculative": silent}, {"speculative": outcome(silent, untold)}, None
    )
    plan = replace(PLAN, modes=modes_of("speculative"))
    made = recorded(plan, [nothing], 1)
    assert made["modes"]["speculative"]["missed_endpoints"] == 1
    assert (made["modes"]["speculative"]["wer"], made["turns"]) == (None, {})
    json.dumps(made)
    told = text(record(plan, [nothing], planned=1, machine=MACHINE))
    assert told.endswith("\n\nIt answered none of the questions.")


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
    plan = LatencyPlan(models(asr="tiny.en"), SUITES[suite])
    assert plan.settings.llm.max_new_tokens == REPLY_TOKENS == 60
    assert LatencyPlan(models(most=20), SUITES[suite]).settings.llm.max_new_tokens == 20
    assert recorded(plan, [], 0)["settings"]["max_new_tokens"] == 60
    assert LatencyPlan(models(), SUITES["starter"]).settings.llm.max_new_tokens == 256


@pytest.mark.parametrize(
    ("command", "message", "hint"),
    [
        (BenchLatency(suite="people", input=Path()), "starter recogniser", "--asr.model"),
        (BenchLatency(modes="speculativ"), "'speculativ'", "'speculative'"),
        (BenchLatency(modes="zzz"), "'zzz'", "streaming"),
        (BenchLatency(turns=0), "no turns", "--turns"),
    ],
)
def test_a_plan_that_cannot_be_carried_out_is_refused(
    command: BenchLatency, message: str, hint: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        run(command, quiet)
    assert message in refused.value.message and hint in refused.value.hint
