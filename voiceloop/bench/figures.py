"""From replies and times to figures: medians, acceptance, and what speculation should gain.

Knows neither models nor clocks: times come in as seconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import quantiles


@dataclass(frozen=True, slots=True)
class Verified:
    """One pass of the target over guesses."""

    drafted: int
    accepted: int | None
    """None where the reply ended within the round, and it is not known what else would stand."""
    beyond: int = 0
    """Tokens that it had room for after the one that ended the reply."""


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
    """Passes of the target that verified guesses or gave the one next token."""
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
class Spread:
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
    """One guess."""
    draft_prefill: float
    """The draft's pass over the prompt, once a reply."""
    rest: float = 0.0
    """What a round takes besides the models; single passes cannot tell."""

    def round(self, drafted: int) -> float:
        """A round of as many guesses."""
        return drafted * self.draft + self.target[drafted + 1] + self.rest


def spread(values: Sequence[float]) -> Spread:
    """Median and quartiles of at least one value, interpolated between order statistics."""
    if len(values) == 1:
        return Spread(values[0], values[0], values[0])
    low, middle, high = quantiles(values, n=4, method="inclusive")
    return Spread(middle, low, high)


def acceptance_by_position(rounds: Sequence[Verified]) -> list[tuple[int, int]]:
    """How often the guess at each position of a round was tested, and how often it stood.

    A guess is tested if all before it in its round stood; after the first that fails the target
    judges none. So `stood / tested` is the acceptance that the formula of Leviathan et al. (2023,
    section 3.1) asks for.
    """
    known = [(one.drafted, one.accepted) for one in rounds if one.accepted is not None]
    return [
        (
            sum(drafted > place and accepted >= place for drafted, accepted in known),
            sum(accepted > place for _, accepted in known),
        )
        for place in range(max((drafted for drafted, _ in known), default=0))
    ]


def acceptance(rounds: Sequence[Verified]) -> float | None:
    """Share of the tested guesses that stood; None where none was tested."""
    places = acceptance_by_position(rounds)
    tested = sum(tested for tested, _ in places)
    return sum(stood for _, stood in places) / tested if tested else None


def expected_tokens(acceptance: float, drafted: int) -> float:
    """Tokens that a round of `drafted` guesses gives (Leviathan et al. 2023, equation 1)."""
    if acceptance == 1:
        return drafted + 1.0
    return (1 - acceptance ** (drafted + 1)) / (1 - acceptance)


def predicted_speedup(
    rounds: Sequence[Verified], acceptance: float, costs: StepCosts, replies: int
) -> float:
    """How much sooner tokens after the first should come than in plain decoding.

    The speed-up of Leviathan et al. (2023, theorem 3.8) with what it leaves out: passes of several
    rows cost more than passes of one, a round has costs besides the models, the draft reads the
    prompt once a reply, and nothing follows the guess that ends one. `rounds` are those of all
    `replies`.
    """
    tokens = sum(expected_tokens(acceptance, one.drafted - one.beyond) for one in rounds)
    seconds = sum(costs.round(one.drafted) for one in rounds) + replies * costs.draft_prefill
    return tokens * (costs.target[1] + costs.rest) / seconds


def paired(fast: Sequence[Answer], slow: Sequence[Answer]) -> Spread:
    """Ratio of tokens per second over replies to the same prompts, one after the other."""
    return spread([one.rate / other.rate for one, other in zip(fast, slow, strict=True)])


def per_round(answers: Sequence[Answer]) -> float:
    """Tokens a round, over all replies; 1 where there was no round."""
    rounds = sum(len(answer.rounds) for answer in answers)
    return sum(answer.round_tokens for answer in answers) / rounds if rounds else 1.0
