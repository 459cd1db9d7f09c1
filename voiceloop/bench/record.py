"""From replies and step times to the record that `--json` prints.

Knows neither models nor clocks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from voiceloop.bench.figures import (
    Answer,
    Spread,
    StepCosts,
    acceptance,
    acceptance_by_position,
    paired,
    per_round,
    predicted_speedup,
    spread,
)

RATIOS = {
    "speculative_over_plain": ("speculative", "plain"),
    "speculative_over_hf_plain": ("speculative", "hf_plain"),
    "speculative_over_hf_assisted": ("speculative", "hf_assisted"),
    "plain_over_hf_plain": ("plain", "hf_plain"),
}

Answers = Mapping[str, Sequence[Answer]]


def figures(
    answers: Answers, passes: StepCosts, *, greedy: bool, price_per_hour: float | None
) -> dict[str, Any]:
    """All figures of replies to the same prompts: `answers` by mode, in the same order.

    All five modes must be there, and in each a reply of more than one token.
    """
    costs = _costs(passes, answers["plain"])
    rounds = [one for answer in answers["speculative"] for one in answer.rounds]
    return {
        "modes": {
            name: _mode(own, answers["plain"], price_per_hour) for name, own in answers.items()
        },
        **_ratios(answers, costs),
        "greedy_equal": _equal(answers) if greedy else None,
        "steps": _steps(costs, answers, [one.drafted for one in rounds]),
    }


def floor(
    bandwidth: float, pass_bytes: int, modes: Mapping[str, Mapping[str, Any]]
) -> dict[str, float | None]:
    """What `bandwidth` bytes a second allow if every token needs `pass_bytes` of weights."""
    floor_s = pass_bytes / bandwidth
    return {
        "gb_per_s": _rounded(bandwidth / 1e9),
        "mb_per_pass": _rounded(pass_bytes / 1e6),
        "floor_ms": _ms(floor_s),
        "floor_tokens_per_s": _rounded(1 / floor_s),
        "share_reached": _rounded(1000 * floor_s / modes["plain"]["ms_per_token_after_first"]),
    }


def _mode(
    own: Sequence[Answer], plain: Sequence[Answer], price_per_hour: float | None
) -> dict[str, Any]:
    rates = spread([answer.rate for answer in own])
    rounds = [one for answer in own for one in answer.rounds]
    places = acceptance_by_position(rounds)
    same = sum(one.ids == other.ids for one, other in zip(own, plain, strict=True))
    cost = None if price_per_hour is None else price_per_hour / 3600 / rates.middle * 1000
    return {
        "tokens_per_s": _rounded(rates.middle),
        "tokens_per_s_quartiles": _quartiles(rates),
        "ttft_ms": _ms(spread([answer.first_s for answer in own]).middle),
        "ms_per_token_after_first": _ms(_token_s(own)),
        "tokens": sum(answer.tokens for answer in own),
        "tokens_per_round": _rounded(per_round(own)),
        "drafted": sum(one.drafted for one in rounds),
        "acceptance": _rounded(acceptance(rounds)),
        "acceptance_by_position": [_rounded(stood / tested) for tested, stood in places if tested],
        "tested_by_position": [tested for tested, _ in places if tested],
        "equal_to_plain": _rounded(same / len(own)),
        "cost_per_1000_tokens": _rounded(cost),
    }


def _costs(passes: StepCosts, plain: Sequence[Answer]) -> StepCosts:
    """The passes, and what plain decoding spends on a token besides its pass."""
    return replace(passes, rest=max(0.0, _token_s(plain) - passes.target[1]))


def _token_s(answers: Sequence[Answer]) -> float:
    return spread([answer.after_first_s for answer in answers if answer.tokens > 1]).middle


def _ratios(answers: Answers, costs: StepCosts) -> dict[str, Any]:
    """`ratios`, `spreads`, and what the last of them is a ratio of."""
    found = {name: paired(answers[a], answers[b]) for name, (a, b) in RATIOS.items()}
    share = acceptance([one for answer in answers["speculative"] for one in answer.rounds])
    both = [
        (plain, own)
        for plain, own in zip(answers["plain"], answers["speculative"], strict=True)
        if plain.tokens > 1 and own.tokens > 1
    ]
    measured = [plain.after_first_s / own.after_first_s for plain, own in both]
    predicted: Spread | None = None
    if share is not None:
        # Of each reply by itself: how much there is to gain depends on where it ends.
        each = [predicted_speedup(own.rounds, share, costs, replies=1) for _, own in both]
        predicted = spread(each)
        found["measured_over_predicted"] = spread(
            [got / said for got, said in zip(measured, each, strict=True)]
        )
    return {
        "ratios": {
            name: _rounded(found[name].middle) if name in found else None
            for name in (*RATIOS, "measured_over_predicted")
        },
        "spreads": {name: _quartiles(value) for name, value in found.items()},
        "speedup_after_first_token": {
            "measured": _rounded(spread(measured).middle),
            "predicted": _rounded(predicted.middle if predicted else None),
        },
    }


def _equal(answers: Answers) -> bool:
    plain = [answer.ids for answer in answers["plain"]]
    return all([answer.ids for answer in own] == plain for own in answers.values())


def _steps(costs: StepCosts, answers: Answers, counts: Sequence[int]) -> dict[str, Any]:
    """The parts of a round, and what they make of the time of one token."""
    tokens = max(1, sum(answer.round_tokens for answer in answers["speculative"]))
    target = sum(costs.target[count + 1] for count in counts) / tokens
    draft = sum(counts) * costs.draft / tokens
    plain, own = _token_s(answers["plain"]), _token_s(answers["speculative"])
    return {
        "target_pass_ms": {str(rows): _ms(took) for rows, took in sorted(costs.target.items())},
        "draft_step_ms": _ms(costs.draft),
        "draft_prefill_ms": _ms(costs.draft_prefill),
        "rest_ms": _ms(costs.rest),
        "mean_draft_length": _rounded(sum(counts) / len(counts)) if counts else None,
        "ms_per_token": {
            "plain": _parts(plain, costs.target[1], 0.0),
            "speculative": _parts(own, target, draft),
        },
    }


def _parts(total: float, target: float, draft: float) -> dict[str, float | None]:
    rest = max(0.0, total - target - draft)
    return {"target": _ms(target), "draft": _ms(draft), "rest": _ms(rest)}


def _ms(seconds: float) -> float | None:
    return _rounded(seconds * 1000)


def _quartiles(value: Spread) -> list[float | None]:
    return [_rounded(value.low), _rounded(value.high)]


def _rounded(value: float | None) -> float | None:
    """Five digits: more would be noise."""
    return None if value is None else float(f"{value:.5g}")
