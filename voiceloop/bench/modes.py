"""Times the replies of decoding modes that answer the same prompts in turn, and computes figures of
them: medians, quartiles, acceptance of draft tokens.

Times are in seconds, except in figures that have `ms` in their names.

The functions at the end reach into private parts of the language model's engine.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median, quantiles
from time import perf_counter
from typing import Any, Protocol, TypeVar

from voiceloop.bench.record import rotation
from voiceloop.llm.conversation import SpeculativeConversation
from voiceloop.llm.draft.featuredraft import LayerDrafter
from voiceloop.llm.engine import SpeculativeLlm
from voiceloop.llm.model.cache import MIB, CachePool
from voiceloop.llm.model.decoder import Decoder
from voiceloop.types import TokenBurst

Progress = Callable[[str], None]
EngineT = TypeVar("EngineT")
LlmT = TypeVar("LlmT", bound=SpeculativeLlm)


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


@dataclass(frozen=True, slots=True)
class BenchPrompt:
    """A prompt: one turn of the user."""

    text: str
    ids: tuple[int, ...]
    """Token ids of the conversation up to where the reply begins."""


class DecodingMode(Protocol):
    """A way of generating replies."""

    def answer(self, prompt: BenchPrompt) -> MeasuredReply:
        """Generate the whole reply to `prompt`, as the first turn of a conversation."""
        ...


class OurMode:
    """A decoding mode of voiceloop's own engine, with or without a draft."""

    def __init__(self, conversation: SpeculativeConversation, max_new_tokens: int) -> None:
        """Use a conversation whose replies have at most `max_new_tokens` tokens."""
        self._conversation = conversation
        self._most = max_new_tokens

    def answer(self, prompt: BenchPrompt) -> MeasuredReply:
        """Generate the whole reply. Its time includes tokenising the prompt."""
        conversation = self._conversation
        counts = [conversation.counters]
        """The counters at the beginning, and those after each pass that gave tokens."""
        first: float | None = None
        known = 0
        began = perf_counter()
        for item in conversation.reply(prompt.text, 0):
            if first is None and isinstance(item, TokenBurst):
                first = perf_counter()
            # Most steps only propose a draft token, and reading counters takes microseconds.
            if len(conversation.ids) > known:
                known = len(conversation.ids)
                counts.append(conversation.counters)
        end = perf_counter()
        counts.append(conversation.counters)  # the last pass may give only the reply's end
        ids = conversation.ids
        conversation.close()  # so that the next reply begins with empty caches
        assert ids[: len(prompt.ids)] == prompt.ids, "both engines must see the same prompt"
        reply = ids[len(prompt.ids) :]
        tokens = min(len(reply) + 1, self._most)
        first_s = (end if first is None else first) - began
        rounds = [
            Verified(
                after.drafted - before.drafted,
                after.accepted - before.accepted,
                tested=after.tested - before.tested,
            )
            for before, after in pairwise(counts)
            if after.target_passes > before.target_passes
        ]
        del rounds[0]  # the first pass reads the prompt
        if rounds:
            last, gained = rounds[-1], sum((one.accepted or 0) + 1 for one in rounds)
            rounds[-1] = replace(last, beyond=gained - (tokens - 1))
        return MeasuredReply(reply, tokens, end - began, first_s, tuple(rounds), tokens - 1)


def interleave(
    modes: Mapping[str, DecodingMode],
    prompts: Sequence[BenchPrompt],
    limit_s: float,
    progress: Progress,
) -> dict[str, list[MeasuredReply]]:
    """Answer every prompt in every mode, in rotation. No prompt is begun that would probably end
    later than `limit_s` seconds from now."""
    answers: dict[str, list[MeasuredReply]] = {name: [] for name in modes}
    for done, order in rotation([*modes], len(prompts), limit_s):
        progress(f"answering in {len(modes)} modes: {done + 1} of {len(prompts)}")
        for name in order:
            answers[name].append(modes[name].answer(prompts[done]))
    return answers


def prompt_of(llm: SpeculativeLlm, text: str) -> tuple[int, ...]:
    """Return the token ids of a conversation up to where the reply to `text` begins."""
    template = llm._template
    before = template.opening(llm.system)
    return (*before, *template.content(text.strip()), *template.user_to_reply)


def target_of(llm: SpeculativeLlm) -> Decoder:
    """Return the decoder of the engine's target."""
    return llm._target


def drafts(llm: SpeculativeLlm) -> bool:
    """Return whether the engine has a draft."""
    return llm._drafter is not None


def trained(llm: SpeculativeLlm) -> bool:
    """Return whether the engine's draft was trained for its target."""
    return isinstance(llm._drafter, LayerDrafter)


def without_draft(llm: EngineT) -> EngineT:
    """Return an engine over the same target without a draft. An engine of another kind is returned
    unchanged."""
    if not isinstance(llm, SpeculativeLlm):
        return llm
    alone = another(llm)
    alone._drafter = None
    return alone


def as_chain(llm: SpeculativeLlm) -> SpeculativeLlm | None:
    """Return an engine over the same models that drafts chains of tokens only, never trees. None if
    `llm` already does so."""
    if not llm._policy.branches:
        return None
    chained = another(llm)
    chained._policy.branches = False
    return chained


def another(llm: LlmT) -> LlmT:
    """Return an engine over the same models, with its own cache pool and its own draft policy.

    Two engines cannot share a cache pool, because all groups of a pool must have the same number of
    caches. They cannot share a draft policy either. During the rounds of one engine, the policy
    would forget what it has learnt from the other engine.
    """
    own = copy.copy(llm)
    own._policy = copy.deepcopy(llm._policy)
    own._pool = CachePool(llm._config.cache_mb * MIB)
    return own
