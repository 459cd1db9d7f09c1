"""`voiceloop bench llm`: ways of decoding, side by side in one process, as one record."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter

from msgspec.structs import replace

from voiceloop.bench.figures import Answer
from voiceloop.bench.gpu.decoding import figures_of
from voiceloop.bench.machine import describe
from voiceloop.bench.modes import Mode, OurMode, Prompt, TransformersMode
from voiceloop.bench.pair import Subjects, load_subjects
from voiceloop.bench.record import Record
from voiceloop.bench.rotation import rotation
from voiceloop.bench.synthetic import synthetic_prompts, vocabulary
from voiceloop.config import LlmConfig
from voiceloop.errors import ConfigError, EngineError

PROMPTS = Path(__file__).with_name("prompts.txt")
"""Questions of the starter models' domain which they were not trained on."""
LENGTHS = (4, 5, 3, 6, 2, 8, 1)
"""Constant draft lengths among which transformers' best is looked for, in this order."""
LONGER = (12, 16)
"""More of them, each tried while the longest so far is the best."""
SEARCHED = 3
"""Prompts that each of them answers."""
TEMPERATURE = 0.8
"""With --sampled, where `llm.temperature` is 0."""
Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Plan:
    """What to measure."""

    config: LlmConfig = field(default_factory=LlmConfig)
    prompts: Path | None = None
    """Questions, one on a line; None is `PROMPTS`, or drawn words for synthetic models."""
    synthetic: str | None = None
    """Name of a pair of shapes; its models take the place of the configured ones."""
    acceptance: float = 0.7
    """Probability that a draft token of the synthetic draft stands."""
    repeats: int = 3
    """Times that every prompt is answered in every mode."""
    limit_s: float = 240.0
    """No prompt is begun that would probably end later than this.

    A quarter of it may be spent on the search for transformers' best draft length.
    """
    price_per_hour: float | None = None
    """Of the machine, in any currency."""


def chosen(
    config: LlmConfig,
    *,
    target: str | None,
    draft: str | None,
    max_new_tokens: int,
    sampled: bool,
) -> LlmConfig:
    """The settings with what the command says in place of what they say.

    Penalties and stop texts are left out: transformers has no such ones, or does them elsewhere.
    """
    return replace(
        config,
        target=target or config.target,
        draft=draft or config.draft,
        max_new_tokens=max_new_tokens,
        temperature=(config.temperature or TEMPERATURE) if sampled else 0.0,
        seed=0 if config.seed == "auto" else config.seed,  # all modes are to say the same
        repetition_penalty=1.0,
        presence_penalty=0.0,
        frequency_penalty=0.0,
        stop=(),
    )


def measure(plan: Plan, progress: Progress) -> Record:
    """Load the models of `plan` and measure them.

    Raises what loading raises, and ConfigError for a plan that cannot be carried out.
    """
    check(plan)
    texts = _texts(plan)
    progress("loading the models")
    return compare(
        load_subjects(plan.config, plan.synthetic, plan.acceptance), texts, plan, progress
    )


def compare(subjects: Subjects, texts: Sequence[str], plan: Plan, progress: Progress) -> Record:
    """Measure loaded models on `texts`."""
    pair, config = subjects.pair, plan.config
    prompts = [Prompt(text, pair.prompt(text)) for text in texts]
    machine = describe(subjects.target)

    def transformers(length: int | None, *, draft: bool = True) -> TransformersMode:
        assistant = subjects.draft if draft else None
        tokenizers = subjects.tokenizers if draft else None
        return TransformersMode(subjects.target, assistant, length, config, pair.eos, tokenizers)

    took: dict[int, float] = {}

    modes: dict[str, Mode] = {
        "plain": OurMode(pair.plain().conversation(), config.max_new_tokens),
        "speculative": OurMode(pair.conversation(), config.max_new_tokens),
        "hf_plain": transformers(None, draft=False),
    }
    if subjects.draft is not None:  # else transformers knows no such draft
        took = try_lengths(transformers, prompts[:SEARCHED], plan.limit_s / 4, progress)
        assisted = transformers(best_length(took))
        modes |= {"hf_assisted": assisted, "hf_assisted_default": transformers(None)}
    for name, mode in modes.items():
        progress(f"warming up {name}")
        mode.answer(prompts[0])
    answers = interleave(modes, prompts, plan, progress)
    if max(answer.tokens for own in answers.values() for answer in own) < 2:
        raise EngineError(
            "every reply ended with its first token, so there is no round to measure",
            "ask something else with --prompts, or choose a model that was trained to chat",
        )
    found = figures_of(pair, prompts[0], answers, config, plan.price_per_hour, progress)
    return Record(
        "llm",
        machine,
        {
            "target": subjects.names[0],
            "draft": subjects.names[1],
            "target_parameters": subjects.target.num_parameters(),
            "draft_parameters": subjects.draft_parameters,
            "synthetic_acceptance": plan.acceptance if plan.synthetic else None,
            "num_speculative_tokens": config.num_speculative_tokens,
            "hf_draft_length": best_length(took) if took else None,
            "hf_draft_lengths_tried": sorted(took),
            "prompts": len(prompts),
            "replies": len(answers["plain"]),
            "replies_planned": len(prompts) * plan.repeats,
            "max_new_tokens": config.max_new_tokens,
            "temperature": config.temperature,
            "price_per_hour": plan.price_per_hour,
        },
        found,
    )


def check(plan: Plan) -> None:
    """Raise ConfigError for a plan that cannot be carried out."""
    if plan.synthetic and plan.prompts:
        raise ConfigError(
            "synthetic models know no words, so they cannot be given prompts",
            "leave out --prompts, or name models with --target and --draft",
        )
    if not 0 <= plan.acceptance <= 1:
        raise ConfigError(
            f"an acceptance of {plan.acceptance:g} is no probability", "choose one from 0 to 1"
        )
    if plan.config.max_new_tokens < 2:
        raise ConfigError(
            "a reply of one token has no round to measure", "set --max-new-tokens to 2 or more"
        )
    if plan.repeats < 1:
        raise ConfigError("nothing is measured in no repeats", "set --repeats to 1 or more")
    if plan.price_per_hour is not None and not 0 <= plan.price_per_hour < math.inf:
        raise ConfigError(
            f"{plan.price_per_hour:g} is no price", "give --price-per-hour a number of 0 or more"
        )


def _texts(plan: Plan) -> list[str]:
    if plan.synthetic:
        return synthetic_prompts(vocabulary(plan.synthetic), 24)
    return read_prompts(plan.prompts or PROMPTS)


def read_prompts(path: Path) -> list[str]:
    """The lines of a file that are not empty.

    Raises ConfigError for a file that cannot be read or has none.
    """
    hint = "give --prompts a text file with one question on a line"
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not a text file", hint) from error
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}", hint) from error
    texts = [line.strip() for line in lines if line.strip()]
    if not texts:
        raise ConfigError(f"there are no prompts in {path}", hint)
    return texts


def try_lengths(
    mode: Callable[[int], Mode], prompts: Sequence[Prompt], limit_s: float, progress: Progress
) -> dict[int, float]:
    """Seconds a token that transformers takes to answer `prompts`, by constant draft length."""
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
    """The draft length with the least seconds a token."""
    return min(took, key=took.__getitem__)


def interleave(
    modes: Mapping[str, Mode], prompts: Sequence[Prompt], plan: Plan, progress: Progress
) -> dict[str, list[Answer]]:
    """Every prompt in every mode, in rotation, for as long as the plan allows."""
    answers: dict[str, list[Answer]] = {name: [] for name in modes}
    turns = [prompt for _ in range(plan.repeats) for prompt in prompts]
    for done, order in rotation([*modes], len(turns), plan.limit_s):
        progress(f"answering in {len(modes)} modes: {done + 1} of {len(turns)}")
        for name in order:
            answers[name].append(modes[name].answer(turns[done]))
    return answers
