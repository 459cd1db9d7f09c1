"""Compares the speed-up by speculation with the one predicted from the times of single passes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from voiceloop.bench.modes import (
    MeasuredReply,
    Quartiles,
    Verified,
    acceptance,
    edges,
    figures,
    ms,
    paired,
    quartiles,
    rounded,
    token_s,
)


@dataclass(frozen=True, slots=True)
class StepCosts:
    """The times of the parts of a round, in seconds."""

    target: Mapping[int, float]
    """Time of a pass of the target, by the number of rows."""
    draft: float
    """Time of one draft token."""
    draft_prefill: float
    """Time of the draft's pass over the prompt, once per reply."""
    rest: float = 0.0
    """Time of a round outside of the models, which timing single passes does not show."""

    def round(self, drafted: int) -> float:
        """Return the time of a round with `drafted` draft tokens, in seconds."""
        return drafted * self.draft + self.target[drafted + 1] + self.rest


def expected_tokens(acceptance: float, drafted: int) -> float:
    """Return the expected tokens of a round (Leviathan et al. 2023, equation 1)."""
    if acceptance == 1:
        return drafted + 1.0
    return (1 - acceptance ** (drafted + 1)) / (1 - acceptance)


def predicted_speedup(
    rounds: Sequence[Verified], acceptance: float, costs: StepCosts, replies: int
) -> float:
    """Return the expected speed-up over plain decoding, for the tokens after the first.

    This is the speed-up of Leviathan et al. (2023, theorem 3.8) with four corrections: passes of
    several rows cost more than passes of one, a round has costs outside of the models, the draft
    reads the prompt once per reply, and no token follows the one that ends a reply. `rounds` are
    the rounds of all replies, and `replies` is the number of replies.
    """
    tokens = sum(expected_tokens(acceptance, one.drafted - one.beyond) for one in rounds)
    seconds = sum(costs.round(one.drafted) for one in rounds) + replies * costs.draft_prefill
    return tokens * (costs.target[1] + costs.rest) / seconds


RATIOS = {
    "speculative_over_plain": ("speculative", "plain"),
    "speculative_over_hf_plain": ("speculative", "hf_plain"),
    "speculative_over_hf_assisted": ("speculative", "hf_assisted"),
    "plain_over_hf_plain": ("plain", "hf_plain"),
}

Answers = Mapping[str, Sequence[MeasuredReply]]


def compared(
    answers: Answers, passes: StepCosts, *, greedy: bool, price_per_hour: float | None
) -> dict[str, Any]:
    """Return all figures of `answers`: replies by mode, to the same prompts in the same order.

    The modes `plain` and `speculative` must be there. Each mode must have a reply of more than one
    token.
    """
    costs = _costs(passes, answers["plain"])
    rounds = [one for answer in answers["speculative"] for one in answer.rounds]
    return {
        "modes": {
            name: figures(own, answers["plain"], price_per_hour) for name, own in answers.items()
        },
        **_ratios(answers, costs),
        "greedy_equal": _equal(answers) if greedy else None,
        "steps": _steps(costs, answers, [one.drafted for one in rounds]),
    }


def floor(
    bandwidth: float, pass_bytes: tuple[int, int], found: Mapping[str, Any]
) -> dict[str, float | None]:
    """Return the least time per token of the target and of the draft, and how close the measured
    figures `found` come to it. In this time the weights are read once: `pass_bytes` of the target
    and of the draft, at `bandwidth` bytes per second."""
    floor_s, draft_s = (size / bandwidth for size in pass_bytes)
    return {
        "gb_per_s": rounded(bandwidth / 1e9),
        "mb_per_pass": rounded(pass_bytes[0] / 1e6),
        "floor_ms": ms(floor_s),
        "floor_tokens_per_s": rounded(1 / floor_s),
        "share_reached": rounded(
            1000 * floor_s / found["modes"]["plain"]["ms_per_token_after_first"]
        ),
        "draft_floor_ms": ms(draft_s),
        "draft_over_floor": rounded(found["steps"]["draft_step_ms"] / (1000 * draft_s)),
    }


def _costs(passes: StepCosts, plain: Sequence[MeasuredReply]) -> StepCosts:
    """Add to `passes` the time that plain decoding spends on a token outside of its pass."""
    return replace(passes, rest=max(0.0, token_s(plain) - passes.target[1]))


def _ratios(answers: Answers, costs: StepCosts) -> dict[str, Any]:
    """Return the ratios of modes, their quartiles, and the measured and predicted speed-up."""
    found = {
        name: paired(answers[a], answers[b])
        for name, (a, b) in RATIOS.items()
        if {a, b} <= answers.keys()
    }
    share = acceptance([one for answer in answers["speculative"] for one in answer.rounds])
    both = [
        (plain, own)
        for plain, own in zip(answers["plain"], answers["speculative"], strict=True)
        if plain.tokens > 1 and own.tokens > 1
    ]
    measured = [plain.after_first_s / own.after_first_s for plain, own in both]
    predicted: Quartiles | None = None
    if share is not None:
        # Predicted for each reply, since the possible gain depends on where a reply ends.
        each = [predicted_speedup(own.rounds, share, costs, replies=1) for _, own in both]
        predicted = quartiles(each)
        found["measured_over_predicted"] = quartiles(
            [got / said for got, said in zip(measured, each, strict=True)]
        )
    return {
        "ratios": {
            name: rounded(found[name].middle) if name in found else None
            for name in (*RATIOS, "measured_over_predicted")
        },
        "spreads": {name: edges(value) for name, value in found.items()},
        "speedup_after_first_token": {
            "measured": rounded(median(measured)),
            "predicted": rounded(predicted.middle if predicted else None),
        },
    }


def _equal(answers: Answers) -> bool:
    plain = [answer.ids for answer in answers["plain"]]
    return all([answer.ids for answer in own] == plain for own in answers.values())


def _steps(costs: StepCosts, answers: Answers, counts: Sequence[int]) -> dict[str, Any]:
    """Return the times of the parts of a round, and how much of a token's time each part takes."""
    tokens = max(1, sum(answer.round_tokens for answer in answers["speculative"]))
    target = sum(costs.target[count + 1] for count in counts) / tokens
    draft = sum(counts) * costs.draft / tokens
    plain, own = token_s(answers["plain"]), token_s(answers["speculative"])
    return {
        "target_pass_ms": {str(rows): ms(took) for rows, took in sorted(costs.target.items())},
        "draft_step_ms": ms(costs.draft),
        "draft_prefill_ms": ms(costs.draft_prefill),
        "rest_ms": ms(costs.rest),
        "mean_draft_length": rounded(sum(counts) / len(counts)) if counts else None,
        "ms_per_token": {
            "plain": _parts(plain, costs.target[1], 0.0),
            "speculative": _parts(own, target, draft),
        },
    }


def _parts(total: float, target: float, draft: float) -> dict[str, float | None]:
    rest = max(0.0, total - target - draft)
    return {"target": ms(target), "draft": ms(draft), "rest": ms(rest)}
