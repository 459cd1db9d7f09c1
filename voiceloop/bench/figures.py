"""Computes figures of timed replies: medians, quartiles, acceptance of draft tokens.

Times are in seconds, except in figures that have `ms` in their names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median, quantiles
from typing import Any


@dataclass(frozen=True, slots=True)
class Verified:
    """One pass of the target over draft tokens."""

    drafted: int
    accepted: int | None
    """Number of accepted draft tokens. None: it is not known, because the reply ended before all
    draft tokens had been judged."""
    beyond: int = 0
    """Tokens that the pass gave after the token that ended the reply."""
    tested: int | None = None
    """Number of draft positions that were tested. None means `accepted` + 1, at most `drafted`."""


@dataclass(frozen=True, slots=True)
class MeasuredReply:
    """One reply in one mode."""

    ids: tuple[int, ...]
    """Token ids of the reply, without the token that ended it."""
    tokens: int
    """Number of generated tokens: `ids`, and the token that ended the reply if one did."""
    seconds: float
    """Seconds from when the mode got the prompt, as text or ids, to the end of the reply."""
    first_s: float
    """Seconds from when the mode got the prompt, as text or ids, to the first token."""
    rounds: tuple[Verified, ...]
    """Passes of the target that verified draft tokens or gave just one token."""
    round_tokens: int
    """Number of tokens that the rounds gave. The pass over the prompt may have given one more."""

    @property
    def rate(self) -> float:
        """Tokens per second of the whole reply."""
        return self.tokens / self.seconds

    @property
    def after_first_s(self) -> float:
        """Mean seconds for each token after the first."""
        return (self.seconds - self.first_s) / max(1, self.tokens - 1)


@dataclass(frozen=True, slots=True)
class Quartiles:
    """A median, and the quartiles around it."""

    middle: float
    low: float
    high: float


def quartiles(values: Sequence[float]) -> Quartiles:
    """Return the quartiles of one or more values, interpolated between order statistics."""
    if len(values) == 1:
        return Quartiles(values[0], values[0], values[0])
    low, middle, high = quantiles(values, n=4, method="inclusive")
    return Quartiles(middle, low, high)


def acceptance_by_position(rounds: Sequence[Verified]) -> list[tuple[int, int]]:
    """Count for each position in a round the draft tokens that were tested, and those accepted.

    A draft token is tested if all tokens before it in its round were accepted. So the ratio
    `accepted / tested` is the acceptance rate of Leviathan et al. (2023, section 3.1).
    """
    known = [
        (min(one.drafted, one.accepted + 1) if one.tested is None else one.tested, one.accepted)
        for one in rounds
        if one.accepted is not None
    ]
    return [
        (sum(tested > place for tested, _ in known), sum(accepted > place for _, accepted in known))
        for place in range(max((tested for tested, _ in known), default=0))
    ]


def acceptance(rounds: Sequence[Verified]) -> float | None:
    """Return the share of tested draft tokens that were accepted; None if none was tested."""
    places = acceptance_by_position(rounds)
    tested = sum(tested for tested, _ in places)
    return sum(accepted for _, accepted in places) / tested if tested else None


def paired(fast: Sequence[MeasuredReply], slow: Sequence[MeasuredReply]) -> Quartiles:
    """Return the quartiles of a ratio over all prompts: the tokens per second of `fast` divided by
    those of `slow`."""
    return quartiles([one.rate / other.rate for one, other in zip(fast, slow, strict=True)])


def per_round(answers: Sequence[MeasuredReply]) -> float:
    """Return the mean number of tokens per round over all replies; 1 if there was no round."""
    rounds = sum(len(answer.rounds) for answer in answers)
    return sum(answer.round_tokens for answer in answers) / rounds if rounds else 1.0


def figures(
    own: Sequence[MeasuredReply],
    plain: Sequence[MeasuredReply],
    price_per_hour: float | None = None,
) -> dict[str, Any]:
    """Return the figures of the replies `own` of one mode.

    `plain` are the replies of plain decoding to the same prompts in the same order. Without
    `price_per_hour` there is no cost.
    """
    rates = quartiles([answer.rate for answer in own])
    rounds = [one for answer in own for one in answer.rounds]
    places = acceptance_by_position(rounds)
    same = sum(one.ids == other.ids for one, other in zip(own, plain, strict=True))
    cost = None if price_per_hour is None else price_per_hour / 3600 / rates.middle * 1000
    return {
        "tokens_per_s": rounded(rates.middle),
        "tokens_per_s_quartiles": edges(rates),
        "ttft_ms": ms(median([answer.first_s for answer in own])),
        "ms_per_token_after_first": ms(token_s(own)),
        "tokens": sum(answer.tokens for answer in own),
        "tokens_per_round": rounded(per_round(own)),
        "drafted": sum(one.drafted for one in rounds),
        "acceptance": rounded(acceptance(rounds)),
        "acceptance_by_position": [
            rounded(accepted / tested) for tested, accepted in places if tested
        ],
        "tested_by_position": [tested for tested, _ in places if tested],
        "equal_to_plain": rounded(same / len(own)),
        "cost_per_1000_tokens": rounded(cost),
    }


def token_s(answers: Sequence[MeasuredReply]) -> float:
    """Return the median, over the replies, of the seconds for each token after the first. Replies
    of one token are left out."""
    return median([answer.after_first_s for answer in answers if answer.tokens > 1])


def ms(seconds: float) -> float | None:
    """Convert seconds to milliseconds, rounded to five significant digits."""
    return rounded(seconds * 1000)


def edges(value: Quartiles) -> list[float | None]:
    """Return the lower and the upper quartile, rounded to five significant digits."""
    return [rounded(value.low), rounded(value.high)]


def rounded(value: float | None) -> float | None:
    """Round to five significant digits, since more would be noise. None stays None."""
    return None if value is None else float(f"{value:.5g}")
