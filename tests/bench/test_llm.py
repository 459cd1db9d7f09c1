"""The record of a whole run on tiny models, and what a run refuses."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.bench.conftest import TOKENS, VOCAB, drawn, quiet
from voiceloop.bench.figures import Answer
from voiceloop.bench.llm import (
    PROMPTS,
    Plan,
    best_length,
    chosen,
    compare,
    interleave,
    measure,
    read_prompts,
    try_lengths,
)
from voiceloop.bench.modes import Prompt
from voiceloop.bench.synthetic import synthetic_prompts
from voiceloop.config import LlmConfig
from voiceloop.errors import ConfigError

pytestmark = pytest.mark.models

MODES = ["plain", "speculative", "hf_plain", "hf_assisted", "hf_assisted_default"]
RATIOS = {
    "speculative_over_plain",
    "speculative_over_hf_plain",
    "speculative_over_hf_assisted",
    "plain_over_hf_plain",
    "measured_over_predicted",
}


def test_the_record_holds_what_was_promised(record: dict[str, Any]) -> None:
    assert list(record["modes"]) == MODES
    for name, mode in record["modes"].items():
        assert mode["tokens"] == 4 * TOKENS, name
        assert mode["tokens_per_s"] > 0
        assert mode["ttft_ms"] > 0
        assert mode["tokens_per_round"] >= 1
        assert mode["equal_to_plain"] == 1
    assert set(record["ratios"]) == RATIOS == set(record["spreads"])
    assert all(value > 0 for value in record["ratios"].values())
    assert record["greedy_equal"] is True


def test_the_guesses_of_each_mode_are_counted(record: dict[str, Any]) -> None:
    for name, mode in record["modes"].items():
        if name in ("plain", "hf_plain"):
            assert mode["drafted"] == 0
            assert mode["acceptance"] is None
            assert mode["tokens_per_round"] == 1
        else:
            assert mode["drafted"] > 0, name
            assert 0 < mode["acceptance"] <= 1
            shares, tested = mode["acceptance_by_position"], mode["tested_by_position"]
            assert tested == sorted(tested, reverse=True)
            stood = sum(share * count for share, count in zip(shares, tested, strict=True))
            assert mode["acceptance"] == pytest.approx(stood / sum(tested), rel=1e-3)


def test_the_record_is_one_line_of_json(record: dict[str, Any]) -> None:
    line = json.dumps(record, allow_nan=False)
    assert "\n" not in line
    assert json.loads(line) == record


def test_cost_and_floor_follow_from_the_other_figures(record: dict[str, Any]) -> None:
    for mode in record["modes"].values():  # 3.6 an hour is a thousandth a second
        assert mode["cost_per_1000_tokens"] == pytest.approx(1 / mode["tokens_per_s"], rel=1e-3)
    bandwidth = record["bandwidth"]
    floor_ms = bandwidth["mb_per_pass"] / bandwidth["gb_per_s"]
    assert bandwidth["floor_ms"] == pytest.approx(floor_ms, rel=1e-3)
    token = record["modes"]["plain"]["ms_per_token_after_first"]
    assert bandwidth["share_reached"] == pytest.approx(floor_ms / token, rel=1e-3)


def test_the_prediction_stands_beside_what_was_measured(record: dict[str, Any]) -> None:
    speedup = record["speedup_after_first_token"]
    share = speedup["measured"] / speedup["predicted"]
    # A median of ratios is not the ratio of two medians.
    assert record["ratios"]["measured_over_predicted"] == pytest.approx(share, rel=0.2)
    rows = {int(count) for count in record["steps"]["target_pass_ms"]}
    assert {1, 2} <= rows


def test_drawn_replies_are_equal_in_both_of_our_modes() -> None:
    settings = {"target": None, "draft": None, "max_new_tokens": TOKENS}
    config = chosen(LlmConfig(context=256, device="cpu"), sampled=True, **settings)
    assert config.temperature > 0
    own = compare(drawn(config), synthetic_prompts(VOCAB, 2), Plan(config, repeats=1), quiet)
    assert own.figures["greedy_equal"] is None
    assert own.figures["modes"]["speculative"]["equal_to_plain"] == 1


class Scripted:
    """A mode that only notes that it was asked."""

    def __init__(self, name: str, log: list[str]) -> None:
        self.name, self.log = name, log

    def answer(self, prompt: Prompt) -> Answer:
        self.log.append(self.name)
        return Answer((), 2, 1.0, 0.5, (), 1)


def run(limit_s: float, repeats: int = 4) -> tuple[list[str], dict[str, list[Answer]]]:
    log: list[str] = []
    modes = {name: Scripted(name, log) for name in "abc"}
    prompts = [Prompt("", ()), Prompt("", ())]
    plan = Plan(repeats=repeats, limit_s=limit_s)
    return log, interleave(modes, prompts, plan, quiet)


def test_modes_take_turns_at_being_first() -> None:
    log, answers = run(math.inf)
    rounds = [log[start : start + 3] for start in range(0, len(log), 3)]
    assert all(sorted(one) == ["a", "b", "c"] for one in rounds)
    assert [one[0] for one in rounds] == ["a", "b", "c", "a", "b", "c", "a", "b"]
    assert {len(own) for own in answers.values()} == {8}


def test_when_time_is_up_every_mode_has_answered_as_often() -> None:
    log, answers = run(-1.0)
    assert log == ["a", "b", "c"]
    assert {len(own) for own in answers.values()} == {1}


class Drafting:
    """A mode that takes as long as a function of its draft length says."""

    def __init__(self, length: int, seconds: Callable[[int], float]) -> None:
        self.seconds = seconds(length)

    def answer(self, prompt: Prompt) -> Answer:
        return Answer((), 2, self.seconds, 0.5, (), 1)


@pytest.mark.parametrize(
    ("best", "tried"), [(1, 7), (3, 7), (6, 7), (8, 8), (12, 9), (16, 9), (100, 9)]
)
def test_the_best_draft_length_is_found_where_it_is(best: int, tried: int) -> None:
    def seconds(length: int) -> float:
        return 1.0 + abs(length - best)

    prompts = [Prompt("", ())]
    took = try_lengths(lambda length: Drafting(length, seconds), prompts, math.inf, quiet)
    assert len(took) == tried
    assert best_length(took) == min(best, 16)
    assert len(try_lengths(lambda length: Drafting(length, seconds), prompts, -1.0, quiet)) == 1


@pytest.mark.parametrize("content", [None, b"", b"\n  \n", b"\xff\xfe\x00"], ids=str)
def test_a_file_without_prompts_is_refused(content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "prompts.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError) as refused:
        read_prompts(path)
    assert "prompts.txt" in refused.value.message
    assert "--prompts" in refused.value.hint


def test_a_folder_is_no_file_of_prompts(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        read_prompts(tmp_path)


@pytest.mark.parametrize(
    "plan",
    [
        Plan(acceptance=1.5),
        Plan(acceptance=math.nan),
        Plan(repeats=0),
        Plan(price_per_hour=-1.0),
        Plan(price_per_hour=math.inf),
        Plan(LlmConfig(max_new_tokens=1)),
        Plan(LlmConfig(num_speculative_tokens=0)),
        Plan(LlmConfig(draft="none")),
        Plan(synthetic="huge"),
        Plan(synthetic="tiny", prompts=PROMPTS),
    ],
    ids=str,
)
def test_a_plan_that_cannot_be_carried_out_is_refused(plan: Plan) -> None:
    with pytest.raises(ConfigError) as refused:
        measure(plan, quiet)
    assert refused.value.hint


def test_the_questions_are_of_the_domain_and_were_held_out() -> None:
    from models.train.domain import questions

    asked = read_prompts(PROMPTS)
    assert len(asked) == len(set(asked)) >= 24
    assert set(asked) <= set(questions("heldout", 3000))


KINDS = {".txt", ".toml", ".css"}


def test_what_is_no_code_ships_in_the_wheel() -> None:
    from hatchling.builders.wheel import WheelBuilder

    root = Path(__file__).resolve().parents[2]
    files = {file.distribution_path for file in WheelBuilder(str(root)).recurse_included_files()}
    data = [path for path in (root / "voiceloop" / "bench").rglob("*.*") if path.suffix in KINDS]
    assert len(data) == 6
    assert {path.relative_to(root).as_posix() for path in data} <= files
