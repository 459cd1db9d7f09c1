"""`voiceloop bench llm`: compares plain decoding of a target with decoding by drafts.

Each draft has its own engine. All engines answer the same prompts in turn. The cost of a draft is
read from the counters of its conversation.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from msgspec.structs import replace

from voiceloop.bench import modes
from voiceloop.bench.command import BenchLlm, Found
from voiceloop.bench.modes import MeasuredReply, Progress
from voiceloop.bench.record import BenchRecord, bootstrap, describe, share
from voiceloop.catalog.store import ModelStore
from voiceloop.errors import ConfigError, EngineError, ModelNotFound
from voiceloop.llm.engine import SpeculativeLlm
from voiceloop.llm.pair import load_pair
from voiceloop.llm.rules.stats import LlmCounters
from voiceloop.settings.config import LlmConfig

PROMPTS = Path(__file__).with_name("prompts.txt")
"""File of questions. They are in the domain of the starter models, but not in their training
data."""
TEMPERATURE = 0.8
"""The temperature with --sampled, if `llm.temperature` is 0."""
PLAIN, OWN = "none", "speculative"
"""Names of two modes: the target without a draft, and the engine as configured."""
CHAIN = " (chain)"
"""Suffix to the name of a draft that can draft trees, but is measured with chains only."""
LIMIT_S = 240.0
"""Time limit in seconds. No prompt is begun that would probably exceed it."""
CONFIDENCE = 0.95
"""Confidence of the intervals of ratios."""


def chosen(command: BenchLlm) -> LlmConfig:
    """Return the settings of the language model, with the options of the command applied.

    Penalties and stop texts are removed, because they could make replies shorter.
    """
    config = command.settings.llm
    return replace(
        config,
        target=command.target or config.target,
        draft=command.draft or config.draft,
        max_new_tokens=command.max_new_tokens,
        temperature=(config.temperature or TEMPERATURE) if command.sampled else 0.0,
        seed=0 if config.seed == "auto" else config.seed,  # all modes must give the same replies
        repetition_penalty=1.0,
        presence_penalty=0.0,
        frequency_penalty=0.0,
        stop=(),
    )


def run(command: BenchLlm, progress: Progress) -> Found:
    """Run `voiceloop bench llm`: load the models and measure them; with `--drafts all`, measure all
    drafts that fit.

    Raises the errors of loading, and ConfigError for options that cannot be carried out.
    """
    if (engine := command.settings.llm.engine) != "speculative":
        raise ConfigError(
            f"llm.engine is {engine}, and bench llm measures how models decode in this process",
            "`bench latency` measures conversations with any engine",
        )
    check(command)
    config = chosen(command)
    texts = read_prompts(command.prompts or PROMPTS)
    refused: dict[str, str] = {}
    engines = _every(config, refused, progress) if command.drafts else _own(config, progress)
    first, most = engines[PLAIN], config.max_new_tokens
    prompts = [modes.BenchPrompt(text, modes.prompt_of(first, text)) for text in texts]
    conversations = {name: llm.conversation() for name, llm in engines.items()}
    ours = {name: modes.OurMode(one, most) for name, one in conversations.items()}
    for name, mode in ours.items():
        progress(f"warming up {name}")
        mode.answer(prompts[0])
    before = {name: one.counters for name, one in conversations.items()}
    answers = modes.interleave(ours, prompts * command.repeats, LIMIT_S, progress)
    refuse_empty(answers)
    found: dict[str, dict[str, Any]] = {
        name: modes.figures(own, answers[PLAIN], command.price_per_hour)
        | _over_plain(own, answers[PLAIN])
        | _models(own, before[name], conversations[name].counters)
        for name, own in answers.items()
    }
    plain_ms = found[PLAIN]["models_ms_per_token"]
    for own in found.values():
        own["predicted"] = round(plain_ms / own["models_ms_per_token"], 4)
    machine = describe(modes.target_of(first))
    settings = {
        "target": config.target,
        "draft": config.draft,
        "target_parameters": modes.target_of(first).parameters,
        "num_speculative_tokens": config.num_speculative_tokens,
        "prompts": len(prompts),
        "replies": len(answers[PLAIN]),
        "replies_planned": len(prompts) * command.repeats,
        "max_new_tokens": most,
        "temperature": config.temperature,
        "price_per_hour": command.price_per_hour,
    }
    if OWN in found:
        return BenchRecord("llm", machine, settings, _modes(found, answers, config)), {}
    best = max(found, key=lambda name: found[name]["over_plain"])
    compared = {"drafts": found, "best": best, "refused": refused}
    return BenchRecord("drafts", machine, settings, compared), {}


def _modes(
    found: Mapping[str, Any], answers: Mapping[str, Sequence[MeasuredReply]], config: LlmConfig
) -> dict[str, Any]:
    """Return the figures of plain decoding beside those of the configured draft."""
    ratio = modes.paired(answers[OWN], answers[PLAIN])
    same = [one.ids for one in answers[OWN]] == [one.ids for one in answers[PLAIN]]
    return {
        "modes": {"plain": found[PLAIN], OWN: found[OWN]},
        "ratios": {"speculative_over_plain": modes.rounded(ratio.middle)},
        "spreads": {"speculative_over_plain": modes.edges(ratio)},
        "greedy_equal": same if config.temperature == 0 else None,
    }


# --- engines -------------------------------------------------------------------------------------


def _own(config: LlmConfig, progress: Progress) -> dict[str, SpeculativeLlm]:
    """Load the engine as configured. Return two engines by the names of their modes: `PLAIN`, over
    its target without a draft, and `OWN`, the engine itself. `OWN` is left out if there is no
    draft."""
    progress("loading the models")
    llm = SpeculativeLlm(*load_pair(config), config)
    return {PLAIN: modes.without_draft(llm), **({OWN: llm} if modes.drafts(llm) else {})}


def _every(
    config: LlmConfig, refused: dict[str, str], progress: Progress
) -> dict[str, SpeculativeLlm]:
    """Load an engine for each draft and return them by name, plain decoding first. If a draft
    cannot be used, leave it out and add the reason to `refused`."""
    engines: dict[str, SpeculativeLlm] = {}
    for name in _names(config):
        progress(f"loading the draft {name}" if name != PLAIN else "loading the target")
        own = replace(config, draft=name)
        try:
            llm = SpeculativeLlm(*load_pair(own), own)
        except EngineError as error:
            if name == PLAIN:
                raise
            if not isinstance(error, ModelNotFound):  # which means that it is no language model
                refused[name] = error.message
            continue
        if name == "auto" and not modes.trained(llm):
            continue  # no draft ships for the target, and n-grams are measured already
        engines[name] = llm
        if chained := modes.as_chain(llm):
            engines[f"{name}{CHAIN}"] = chained
    return engines


def _names(config: LlmConfig) -> list[str]:
    """Return the names of possible drafts: built-in ones, the configured one, local models."""
    here = [
        model.name for model in ModelStore().models() if (model.folder / "config.json").is_file()
    ]
    named = [PLAIN, "ngram", config.draft, "auto", "starter", *here]
    if config.target == "starter":  # for this target "auto" and "starter" are the same draft
        named = [name for name in named if name != "auto"]
    # A target cannot be its own draft. The starter's draft is another model of the same name.
    return [name for name in dict.fromkeys(named) if name == "starter" or name != config.target]


# --- prompts and answers -------------------------------------------------------------------------


def check(command: BenchLlm) -> None:
    """Raise ConfigError for options that cannot be carried out."""
    if command.max_new_tokens < 2:
        raise ConfigError(
            "a reply of one token has no round to measure", "set --max-new-tokens to 2 or more"
        )
    if command.repeats < 1:
        raise ConfigError("nothing is measured in no repeats", "set --repeats to 1 or more")
    price = command.price_per_hour
    if price is not None and not 0 <= price < math.inf:
        raise ConfigError(f"{price:g} is no price", "give --price-per-hour a number of 0 or more")


def read_prompts(path: Path) -> list[str]:
    """Return the lines of a file that are not empty.

    Raises ConfigError if the file cannot be read or has no such line.
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


def refuse_empty(answers: Mapping[str, Sequence[MeasuredReply]]) -> None:
    """Raise EngineError if a mode has no reply of two tokens or more."""
    if min(max(answer.tokens for answer in own) for own in answers.values()) < 2:
        raise EngineError(
            "every reply ended with its first token, so there is no round to measure",
            "ask something else with --prompts, or choose a model that was trained to chat",
        )


# --- costs ---------------------------------------------------------------------------------------


def _models(
    own: Sequence[MeasuredReply], before: LlmCounters, after: LlmCounters
) -> dict[str, float | None]:
    """Return the draft's time per drafted token, and the time of draft and target per token of the
    replies `own`. Both are in ms; the first is None if no token was drafted.

    `before` and `after` are the counters before and after the replies.
    """
    drafted = after.drafted - before.drafted
    draft_ms = after.draft_ms - before.draft_ms
    models_ms = draft_ms + after.target_ms - before.target_ms
    return {
        "draft_step_ms": round(draft_ms / drafted, 3) if drafted else None,
        "models_ms_per_token": round(models_ms / sum(answer.tokens for answer in own), 4),
    }


def _over_plain(own: Sequence[MeasuredReply], plain: Sequence[MeasuredReply]) -> dict[str, Any]:
    """Compare the replies `own` with those of plain decoding to the same prompts. Return the median
    ratio of tokens per second, its confidence interval, and the share of equal replies."""
    ratios = [one.rate / other.rate for one, other in zip(own, plain, strict=True)]
    low, high = bootstrap(np.array(ratios), np.median, CONFIDENCE)
    same = sum(one.ids == other.ids for one, other in zip(own, plain, strict=True))
    return {
        "over_plain": round(median(ratios), 4),
        "interval": [round(low, 4), round(high, 4)],
        "same_text": share(same, len(own)),
    }
