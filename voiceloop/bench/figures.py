"""From replies and times to figures: medians, acceptance, and what speculation should gain.

Knows neither models nor clocks: times come in as seconds, and go out in milliseconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median, quantiles
from typing import Any

CHAIN = " (chain)"
"""What is said of a kind that drafts one token for each place, beside the same in trees."""


@dataclass(frozen=True, slots=True)
class Verified:
    """One pass of the target over draft tokens."""

    drafted: int
    accepted: int | None
    """None where the reply ended within the round, and it is not known what else would stand."""
    beyond: int = 0
    """Tokens that it had room for after the one that ended the reply."""
    tested: int | None = None
    """Places whose draft tokens it judged; None where there was one for each place."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One reply in one mode."""

    ids: tuple[int, ...]
    """Up to the token that ended the reply, which is left out."""
    tokens: int
    """All that were generated: `ids`, and the token that ended the reply where one did."""
    seconds: float
    """From the prompt's text or ids to the end of the reply."""
    first_s: float
    """From there to the first token."""
    rounds: tuple[Verified, ...]
    """Passes of the target that verified draft tokens or gave the one next token."""
    round_tokens: int
    """Tokens that the rounds gave: where the first comes straight from the prompt, all others."""

    @property
    def rate(self) -> float:
        """Tokens per second of the whole reply."""
        return self.tokens / self.seconds

    @property
    def after_first_s(self) -> float:
        """Seconds for each token after the first."""
        return (self.seconds - self.first_s) / max(1, self.tokens - 1)


@dataclass(frozen=True, slots=True)
class Quartiles:
    """A median, and the quartiles around it."""

    middle: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class StepCosts:
    """What the parts of a round take, in seconds."""

    target: Mapping[int, float]
    """A pass of the target, by the number of rows."""
    draft: float
    """One draft token."""
    draft_prefill: float
    """The draft's pass over the prompt, once a reply."""
    rest: float = 0.0
    """What a round takes besides the models; single passes cannot tell."""

    def round(self, drafted: int) -> float:
        """A round of as many draft tokens."""
        return drafted * self.draft + self.target[drafted + 1] + self.rest


def quartiles(values: Sequence[float]) -> Quartiles:
    """Median and quartiles of at least one value, interpolated between order statistics."""
    if len(values) == 1:
        return Quartiles(values[0], values[0], values[0])
    low, middle, high = quantiles(values, n=4, method="inclusive")
    return Quartiles(middle, low, high)


def acceptance_by_position(rounds: Sequence[Verified]) -> list[tuple[int, int]]:
    """How often the draft token at each position of a round was tested, and how often it stood.

    One is tested if all before it in its round stood; after the first that fails the target judges
    none. So `stood / tested` is the acceptance that the formula of Leviathan et al. (2023,
    section 3.1) asks for.
    """
    known = [
        (min(one.drafted, one.accepted + 1) if one.tested is None else one.tested, one.accepted)
        for one in rounds
        if one.accepted is not None
    ]
    return [
        (sum(tested > place for tested, _ in known), sum(stood > place for _, stood in known))
        for place in range(max((tested for tested, _ in known), default=0))
    ]


def acceptance(rounds: Sequence[Verified]) -> float | None:
    """Share of the tested draft tokens that stood; None where none was tested."""
    places = acceptance_by_position(rounds)
    tested = sum(tested for tested, _ in places)
    return sum(stood for _, stood in places) / tested if tested else None


def expected_tokens(acceptance: float, drafted: int) -> float:
    """Tokens that a round of `drafted` draft tokens gives (Leviathan et al. 2023, equation 1)."""
    if acceptance == 1:
        return drafted + 1.0
    return (1 - acceptance ** (drafted + 1)) / (1 - acceptance)


def predicted_speedup(
    rounds: Sequence[Verified], acceptance: float, costs: StepCosts, replies: int
) -> float:
    """How much sooner tokens after the first should come than in plain decoding.

    The speed-up of Leviathan et al. (2023, theorem 3.8) with what it leaves out: passes of several
    rows cost more than passes of one, a round has costs besides the models, the draft reads the
    prompt once a reply, and nothing follows the token that ends one. `rounds` are those of all
    `replies`.
    """
    tokens = sum(expected_tokens(acceptance, one.drafted - one.beyond) for one in rounds)
    seconds = sum(costs.round(one.drafted) for one in rounds) + replies * costs.draft_prefill
    return tokens * (costs.target[1] + costs.rest) / seconds


def paired(fast: Sequence[Answer], slow: Sequence[Answer]) -> Quartiles:
    """Ratio of tokens per second over replies to the same prompts, one after the other."""
    return quartiles([one.rate / other.rate for one, other in zip(fast, slow, strict=True)])


def per_round(answers: Sequence[Answer]) -> float:
    """Tokens a round, over all replies; 1 where there was no round."""
    rounds = sum(len(answer.rounds) for answer in answers)
    return sum(answer.round_tokens for answer in answers) / rounds if rounds else 1.0


# --- what the record says ------------------------------------------------------------------------

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

    Our two modes must be there, and in each mode a reply of more than one token.
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
    bandwidth: float, pass_bytes: tuple[int, int], found: Mapping[str, Any]
) -> dict[str, float | None]:
    """What `bandwidth` bytes a second allow if every token of the target, and of the draft, needs
    `pass_bytes` of weights; and what of that was `found`, the `figures`."""
    floor_s, draft_s = (size / bandwidth for size in pass_bytes)
    return {
        "gb_per_s": _rounded(bandwidth / 1e9),
        "mb_per_pass": _rounded(pass_bytes[0] / 1e6),
        "floor_ms": _ms(floor_s),
        "floor_tokens_per_s": _rounded(1 / floor_s),
        "share_reached": _rounded(
            1000 * floor_s / found["modes"]["plain"]["ms_per_token_after_first"]
        ),
        "draft_floor_ms": _ms(draft_s),
        "draft_over_floor": _rounded(found["steps"]["draft_step_ms"] / (1000 * draft_s)),
    }


def _mode(
    own: Sequence[Answer], plain: Sequence[Answer], price_per_hour: float | None
) -> dict[str, Any]:
    rates = quartiles([answer.rate for answer in own])
    rounds = [one for answer in own for one in answer.rounds]
    places = acceptance_by_position(rounds)
    same = sum(one.ids == other.ids for one, other in zip(own, plain, strict=True))
    cost = None if price_per_hour is None else price_per_hour / 3600 / rates.middle * 1000
    return {
        "tokens_per_s": _rounded(rates.middle),
        "tokens_per_s_quartiles": _edges(rates),
        "ttft_ms": _ms(median([answer.first_s for answer in own])),
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
    return median([answer.after_first_s for answer in answers if answer.tokens > 1])


def _ratios(answers: Answers, costs: StepCosts) -> dict[str, Any]:
    """`ratios`, `spreads`, and what the last of them is a ratio of."""
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
        # Of each reply by itself: how much there is to gain depends on where it ends.
        each = [predicted_speedup(own.rounds, share, costs, replies=1) for _, own in both]
        predicted = quartiles(each)
        found["measured_over_predicted"] = quartiles(
            [got / said for got, said in zip(measured, each, strict=True)]
        )
    return {
        "ratios": {
            name: _rounded(found[name].middle) if name in found else None
            for name in (*RATIOS, "measured_over_predicted")
        },
        "spreads": {name: _edges(value) for name, value in found.items()},
        "speedup_after_first_token": {
            "measured": _rounded(median(measured)),
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


def _edges(value: Quartiles) -> list[float | None]:
    return [_rounded(value.low), _rounded(value.high)]


def _rounded(value: float | None) -> float | None:
    """Five digits: more would be noise."""
    return None if value is None else float(f"{value:.5g}")
