"""The record of a comparison of ways of decoding, on tiny models, and what it refuses."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from lab.decoding.run import Decoding, best_length, run, try_lengths
from tests.bench.conftest import quiet
from tests.lab.conftest import TOKENS
from voiceloop.bench.llm import PROMPTS
from voiceloop.bench.modes import BenchPrompt, MeasuredReply
from voiceloop.errors import ConfigError
from voiceloop.settings.config import Config, LlmConfig

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


class Drafting:
    """A mode that takes as long as a function of its draft length says."""

    def __init__(self, length: int, seconds: Callable[[int], float]) -> None:
        self.seconds = seconds(length)

    def answer(self, prompt: BenchPrompt) -> MeasuredReply:
        return MeasuredReply((), 2, self.seconds, 0.5, (), 1)


@pytest.mark.parametrize(
    ("best", "tried"), [(1, 7), (3, 7), (6, 7), (8, 8), (12, 9), (16, 9), (100, 9)]
)
def test_the_best_draft_length_is_found_where_it_is(best: int, tried: int) -> None:
    def seconds(length: int) -> float:
        return 1.0 + abs(length - best)

    prompts = [BenchPrompt("", ())]
    took = try_lengths(lambda length: Drafting(length, seconds), prompts, math.inf, quiet)
    assert len(took) == tried
    assert best_length(took) == min(best, 16)
    assert len(try_lengths(lambda length: Drafting(length, seconds), prompts, -1.0, quiet)) == 1


@pytest.mark.parametrize(
    "command",
    [
        Decoding(acceptance=1.5),
        Decoding(acceptance=math.nan),
        Decoding(settings=Config(llm=LlmConfig(num_speculative_tokens=0))),
        Decoding(draft="none"),
        Decoding(synthetic="huge"),
        Decoding(synthetic="tiny", prompts=PROMPTS),
    ],
    ids=str,
)
def test_a_plan_that_cannot_be_carried_out_is_refused(command: Decoding) -> None:
    with pytest.raises(ConfigError) as refused:
        run(command, quiet)
    assert refused.value.hint
