"""`voiceloop bench llm --drafts all`: every kind of draft that fits a target, and the best of them.

Each kind has an engine of its own over the same target; all answer the same prompts in turn. What a
kind costs and gives is in its conversations' counters.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from msgspec.structs import replace

from voiceloop.bench.figures import CHAIN, Answer, acceptance_by_position, paired, per_round
from voiceloop.bench.llm import PROMPTS, Plan, Progress, check, interleave, read_prompts
from voiceloop.bench.machine import describe
from voiceloop.bench.modes import OurMode, Prompt
from voiceloop.bench.pair import as_chain, prompt_of, target_of, trained
from voiceloop.bench.record import Record, share
from voiceloop.catalog.store import Store
from voiceloop.config import LlmConfig
from voiceloop.errors import EngineError, ModelNotFound
from voiceloop.llm.conversation import SpeculativeConversation
from voiceloop.llm.engine import SpeculativeLlm, load_pair
from voiceloop.llm.rules.stats import LlmCounters

PLAIN = "none"
SAMPLES = 1000
"""Draws of replies, by which a ratio's interval is found."""


@dataclass(frozen=True, slots=True)
class _Kind:
    """One kind of draft at work."""

    name: str
    llm: SpeculativeLlm
    conversation: SpeculativeConversation


def measure(plan: Plan, progress: Progress, names: Sequence[str] = ()) -> Record:
    """Load what there is for the target of `plan`, or the drafts of those `names`, and measure it.

    Raises what loading the target raises, and ConfigError for a plan that cannot be carried out.
    """
    check(plan)
    texts = read_prompts(plan.prompts or PROMPTS)
    kinds, refused = _kinds(plan.config, names or _names(plan.config), progress)
    first = kinds[0].llm
    prompts = [Prompt(text, prompt_of(first, text)) for text in texts]
    most = plan.config.max_new_tokens
    modes = {kind.name: OurMode(kind.conversation, most) for kind in kinds}
    for name, mode in modes.items():
        progress(f"warming up {name}")
        mode.answer(prompts[0])
    before = {kind.name: kind.conversation.counters for kind in kinds}
    answers = interleave(modes, prompts, plan, progress)
    if not any(answer.tokens > 1 for answer in answers[PLAIN]):
        raise EngineError(
            "every reply ended with its first token, so there is no round to measure",
            "ask something else with --prompts, or choose a model that was trained to chat",
        )
    found = {
        kind.name: _figures(
            answers[kind.name],
            answers[PLAIN],
            _cost(before[kind.name], kind.conversation.counters),
            plan.price_per_hour,
        )
        for kind in kinds
    }
    plain_ms = found[PLAIN]["models_ms_per_token"]
    for own in found.values():
        own["predicted"] = round(plain_ms / own["models_ms_per_token"], 4)
    best = max(found, key=lambda name: found[name]["over_plain"])
    return Record(
        "drafts",
        describe(target_of(first)),
        {
            "target": plan.config.target,
            "prompts": len(prompts),
            "replies": len(answers[PLAIN]),
            "max_new_tokens": most,
            "temperature": plan.config.temperature,
            "price_per_hour": plan.price_per_hour,
        },
        {"drafts": found, "best": best, "refused": refused},
    )


def _kinds(
    config: LlmConfig, names: Sequence[str], progress: Progress
) -> tuple[list[_Kind], dict[str, str]]:
    """Engines with those drafts, plain decoding first, and why others are none."""
    kinds, refused = list[_Kind](), dict[str, str]()
    for name in names:
        progress(f"loading the draft {name}" if name != PLAIN else "loading the target")
        own = replace(config, draft=name)
        try:
            llm = SpeculativeLlm(*load_pair(own), own)
        except EngineError as error:
            if name == PLAIN:
                raise
            if not isinstance(error, ModelNotFound):  # else it is no language model
                refused[name] = error.message
            continue
        if name == "auto" and not trained(llm):
            continue  # none ships for the target, and n-grams are there
        kinds.append(_Kind(name, llm, llm.conversation()))
        if chained := as_chain(llm):
            kinds.append(_Kind(f"{name}{CHAIN}", chained, chained.conversation()))
    return kinds, refused


def _names(config: LlmConfig) -> list[str]:
    """What might draft for the target: what is configured, and all that is here."""
    here = [model.name for model in Store().models() if (model.folder / "config.json").is_file()]
    named = [PLAIN, "ngram", config.draft, "auto", "starter", *here]
    if config.target == "starter":  # whose own is "auto"
        named = [name for name in named if name != "auto"]
    # A target drafts nothing for itself; the starter's draft only has its name.
    return [name for name in dict.fromkeys(named) if name == "starter" or name != config.target]


def _cost(before: LlmCounters, after: LlmCounters) -> LlmCounters:
    """What came between two readings, of sums."""
    names = ("drafted", "tested", "accepted", "target_passes", "draft_ms", "target_ms")
    return LlmCounters(**{name: getattr(after, name) - getattr(before, name) for name in names})


def _figures(
    own: Sequence[Answer], plain: Sequence[Answer], cost: LlmCounters, price: float | None
) -> dict[str, Any]:
    ratios = paired(own, plain)
    low, high = _interval(own, plain)
    rounds = [one for answer in own for one in answer.rounds]
    tokens = sum(answer.tokens for answer in own)
    rate = median(answer.rate for answer in own)
    return {
        "tokens_per_s": round(rate, 2),
        "over_plain": round(ratios.middle, 4),
        "interval": [round(low, 4), round(high, 4)],
        "tokens_per_round": round(per_round(own), 4),
        "acceptance_by_position": [
            share(stood, tested) for tested, stood in acceptance_by_position(rounds) if tested
        ],
        "draft_step_ms": round(cost.draft_ms / cost.drafted, 3) if cost.drafted else None,
        "models_ms_per_token": round((cost.draft_ms + cost.target_ms) / tokens, 4),
        "same_text": share(sum(a.ids == b.ids for a, b in zip(own, plain, strict=True)), len(own)),
        "cost_per_1000_tokens": None if price is None else price / 3600 / rate * 1000,
    }


def _interval(own: Sequence[Answer], plain: Sequence[Answer]) -> tuple[float, float]:
    """Where the median ratio lies in nineteen of twenty draws of replies (the bootstrap)."""
    ratios = [a.rate / b.rate for a, b in zip(own, plain, strict=True)]
    chance = random.Random(0)
    drawn = sorted(median(chance.choices(ratios, k=len(ratios))) for _ in range(SAMPLES))
    return drawn[SAMPLES // 40], drawn[-SAMPLES // 40]
