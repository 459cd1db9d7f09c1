"""Compares ways of decoding in one process: our engine's, and transformers' on the same weights.

    python -m lab.decoding.run
    python -m lab.decoding.run --synthetic 8b+1b --acceptance 0.7

Besides the figures of `voiceloop bench llm`, the record has the times of single passes, the
speed-up that they predict, and the share of the memory bandwidth that plain decoding reaches.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import Annotated

from lab.command import carry_out
from lab.decoding.costs import figures_of
from lab.decoding.pair import Subjects, load_subjects
from lab.decoding.synthetic import synthetic_prompts, vocabulary
from lab.decoding.transformers import TransformersMode
from voiceloop.bench.command import BenchLlm, Found
from voiceloop.bench.llm import (
    LIMIT_S,
    PROMPTS,
    check,
    chosen,
    read_prompts,
    refuse_empty,
)
from voiceloop.bench.modes import BenchPrompt, DecodingMode, OurMode, Progress, interleave
from voiceloop.bench.record import BenchRecord, describe
from voiceloop.errors import ConfigError
from voiceloop.settings.config import LlmConfig
from voiceloop.settings.flags import written

LENGTHS = (4, 5, 3, 6, 2, 8, 1)
"""Constant draft lengths that are tried with transformers, in this order."""
LONGER = (12, 16)
"""Longer draft lengths, which are tried as long as the longest one so far is the best."""
SEARCHED = 3
"""Number of prompts that are answered with each draft length."""


class Decoding(BenchLlm, frozen=True, kw_only=True):
    """Compare ways of decoding."""

    synthetic: Annotated[str | None, written("PAIR")] = None
    """Models of these shapes instead, without trained weights; tiny, 120m+8m, 1b+0.1b, 7b+0.5b or
    8b+1b."""
    acceptance: Annotated[float, written("SHARE")] = 0.7
    """Probability that a draft token of the synthetic pair is accepted."""


def run(command: Decoding, progress: Progress) -> Found:
    """Load the models and measure them.

    Raises what loading raises, and ConfigError for options that cannot be carried out.
    """
    check(command)
    if command.synthetic and command.prompts:
        raise ConfigError(
            "synthetic models know no words, so they cannot be given prompts",
            "leave out --prompts, or name models with --target and --draft",
        )
    if not 0 <= command.acceptance <= 1:
        raise ConfigError(
            f"an acceptance of {command.acceptance:g} is no probability", "choose one from 0 to 1"
        )
    if command.synthetic:
        texts = synthetic_prompts(vocabulary(command.synthetic), 24)
    else:
        texts = read_prompts(command.prompts or PROMPTS)
    progress("loading the models")
    config = chosen(command)
    subjects = load_subjects(config, command.synthetic, command.acceptance)
    return compare(subjects, texts, command, config, progress), {}


def compare(
    subjects: Subjects,
    texts: Sequence[str],
    command: Decoding,
    config: LlmConfig,
    progress: Progress,
) -> BenchRecord:
    """Measure loaded models on `texts`. Up to a quarter of the time goes into the search for
    transformers' best draft length."""
    pair = subjects.pair
    prompts = [BenchPrompt(text, pair.prompt(text)) for text in texts]
    machine = describe(subjects.target)

    def transformers(length: int | None, *, draft: bool = True) -> TransformersMode:
        assistant = subjects.draft if draft else None
        tokenizers = subjects.tokenizers if draft else None
        return TransformersMode(subjects.target, assistant, length, config, pair.eos, tokenizers)

    took: dict[int, float] = {}

    modes: dict[str, DecodingMode] = {
        "plain": OurMode(pair.plain().conversation(), config.max_new_tokens),
        "speculative": OurMode(pair.conversation(), config.max_new_tokens),
        "hf_plain": transformers(None, draft=False),
    }
    if subjects.draft is not None:  # otherwise transformers has no such draft
        took = try_lengths(transformers, prompts[:SEARCHED], LIMIT_S / 4, progress)
        assisted = transformers(best_length(took))
        modes |= {"hf_assisted": assisted, "hf_assisted_default": transformers(None)}
    for name, mode in modes.items():
        progress(f"warming up {name}")
        mode.answer(prompts[0])
    answers = interleave(modes, prompts * command.repeats, LIMIT_S, progress)
    refuse_empty(answers)
    found = figures_of(pair, prompts[0], answers, config, command.price_per_hour, progress)
    return BenchRecord(
        "llm",
        machine,
        {
            "target": subjects.names[0],
            "draft": subjects.names[1],
            "target_parameters": subjects.target.num_parameters(),
            "draft_parameters": subjects.draft_parameters,
            "synthetic_acceptance": command.acceptance if command.synthetic else None,
            "num_speculative_tokens": config.num_speculative_tokens,
            "hf_draft_length": best_length(took) if took else None,
            "hf_draft_lengths_tried": sorted(took),
            "prompts": len(prompts),
            "replies": len(answers["plain"]),
            "replies_planned": len(prompts) * command.repeats,
            "max_new_tokens": config.max_new_tokens,
            "temperature": config.temperature,
            "price_per_hour": command.price_per_hour,
        },
        found,
    )


def try_lengths(
    mode: Callable[[int], DecodingMode],
    prompts: Sequence[BenchPrompt],
    limit_s: float,
    progress: Progress,
) -> dict[int, float]:
    """Return the seconds per token of transformers for `prompts`, by constant draft length."""
    took: dict[int, float] = {}
    mode(LENGTHS[0]).answer(prompts[0])  # warms up
    began = perf_counter()
    for length in LENGTHS + LONGER:
        late = perf_counter() - began > limit_s
        if took and (late or (length in LONGER and best_length(took) != max(took))):
            break
        progress(f"looking for transformers' best draft length: {length}")
        own = [mode(length).answer(prompt) for prompt in prompts]
        took[length] = sum(answer.seconds for answer in own) / sum(one.tokens for one in own)
    return took


def best_length(took: Mapping[int, float]) -> int:
    """Return the draft length with the least seconds per token."""
    return min(took, key=took.__getitem__)


if __name__ == "__main__":
    sys.exit(carry_out(Decoding, run, sys.argv[1:]))
