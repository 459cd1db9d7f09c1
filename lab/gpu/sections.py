"""All checks and measurements on a device, in order: first the checks of exactness, then costs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import torch

from lab.decoding.costs import figures_of, most_memory_mb
from lab.decoding.pair import Pair, load_models
from lab.decoding.synthetic import synthetic_prompts, vocabulary
from lab.gpu import checks, fixed
from lab.gpu.cast import ACCEPTANCE, cast_of
from lab.gpu.checks import LITTLE, Size
from lab.gpu.crowd import crowded
from lab.gpu.hearing import hearing
from lab.gpu.layer import layered
from lab.gpu.products import products
from lab.gpu.rows import Row, Section, at_least, at_most, checked, not_here
from lab.gpu.stored import stored
from lab.gpu.together import together
from voiceloop.bench.modes import BenchPrompt, OurMode, interleave
from voiceloop.settings.config import LlmConfig

PROMPT_WORDS = 60
"""Length of the prompts, in words. Each word is one token."""
PROMPTS, TOKENS = 8, 64
SHARE, DRAFT, PREDICTED, GAIN, FIRST_MS = 0.7, 1.4, 0.9, 1.4, 15.0
"""Goals for the largest pair: plain decoding's share of the bandwidth floor, the time of a draft
step relative to its floor, the speed-up relative to the predicted one, the speed-up, and the
milliseconds to the first token."""


@dataclass(frozen=True, slots=True)
class Course:
    """The plan of checks and measurements."""

    device: torch.device
    pairs: Sequence[str]
    """Synthetic pairs. Only the last one has goals, and takes part in conversations."""
    minutes: float
    progress: Callable[[str], None]
    gguf: Path | None = None
    """A file that llama.cpp runs, with the library that is installed."""
    began: float = field(default_factory=perf_counter)

    @property
    def small(self) -> bool:
        """True on a CPU, where the code is only tried out."""
        return self.device.type == "cpu"

    @property
    def left_s(self) -> float:
        """Seconds that are left; at least 10."""
        return max(10.0, 60 * self.minutes - (perf_counter() - self.began))


def sections(course: Course) -> dict[str, Section]:
    """Return all sections by name, in order."""
    device, size = course.device, LITTLE if course.small else Size()

    def announced(name: str, section: Section) -> Section:
        def begun() -> Iterable[Row]:
            course.progress(name)
            yield from section()

        return begun

    exact: dict[str, Section] = {
        "speculative text": lambda: checks.exact_text(device, size),
        "replies broken off": lambda: checks.interrupted(device, size),
        "rounds of fixed shape": lambda: fixed.captured(device, size),
        "waits within a round": lambda: fixed.waits(device, size),
        "passes of fixed shape": lambda: fixed.placed(device, size),
        "what is fused": lambda: fixed.kernel(device),
        "rounding": lambda: checks.rounding(device, size),
        "accuracy": lambda: checks.accuracy(device, size),
        "synthetic pair": lambda: checks.oracle(device, size),
    }
    figures: dict[str, Section] = {
        f"products of {pair}": lambda pair=pair: products(device, pair) for pair in course.pairs
    }
    figures |= {
        f"decoding of {pair}": lambda pair=pair, after=after: decoding(course, pair, after)
        for pair, after in zip(course.pairs, range(len(course.pairs) - 1, -1, -1), strict=True)
    }
    figures["a trained layer"] = lambda: layered(course.pairs[-1], _config(course, 1024))
    figures["long and many conversations"] = lambda: many(course)
    figures["llama.cpp"] = lambda: stored(course.gguf)
    figures["Whisper's encoder"] = lambda: hearing(device)
    figures["all models at once"] = lambda: at_once(course)
    return {name: announced(name, section) for name, section in (exact | figures).items()}


def decoding(course: Course, name: str, after: int) -> Iterator[Row]:
    """Yield the rows about decoding with a pair; `after` is the number of pairs to come."""
    config = _config(course, 1024)
    pair = Pair(*load_models(config, name, ACCEPTANCE), config)
    texts = synthetic_prompts(vocabulary(name), PROMPTS, PROMPT_WORDS)
    prompts = [BenchPrompt(text, pair.prompt(text)) for text in texts]
    modes = {
        "plain": OurMode(pair.plain().conversation(), TOKENS),
        "speculative": OurMode(pair.conversation(), TOKENS),
    }
    for prompt in prompts[:3]:  # graphs are captured when they are first needed
        for mode in modes.values():
            mode.answer(prompt)
    if course.device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    limit_s = 0.25 * course.left_s / (after + 1)
    repeats = 1 if course.small else 3
    answers = interleave(modes, prompts * repeats, limit_s, course.progress)
    found = figures_of(pair, prompts[0], answers, config, None, course.progress)
    same = all(a.ids == b.ids for a, b in zip(*answers.values(), strict=True))
    yield checked(
        f"{name}: speculative text equals plain text", same, f"{len(answers['plain'])} replies"
    )
    for row in _costs(name, found):
        yield row.without_goal() if after or course.small else row
    yield from _gpu(name, found["gpu"])


def many(course: Course) -> Iterator[Row]:
    """Yield the rows about long and many conversations of the last pair."""
    name = course.pairs[-1]
    config = _config(course, 2048)
    pair = Pair(*load_models(config, name, ACCEPTANCE), config)
    yield from crowded(pair, name, vocabulary(name))


def _costs(name: str, found: dict[str, Any]) -> Iterator[Row]:
    """Yield the rows about the costs of decoding."""
    modes, ratios, steps, floor = (
        found[part] for part in ("modes", "ratios", "steps", "bandwidth")
    )
    passes = steps["target_pass_ms"]
    one = passes["1"]
    yield Row(
        f"{name}: a pass over several rows, ms",
        ", ".join(f"{rows}: {took:.3g}" for rows, took in passes.items()),
    )
    yield at_least(
        f"{name}: plain decoding, share of the bandwidth floor",
        floor["share_reached"],
        SHARE,
        f"{{:.0%}}: {modes['plain']['ms_per_token_after_first']:.3g} ms a token, the floor"
        f" {floor['floor_ms']:.3g} ms at {floor['gb_per_s']:.0f} GB/s; a pass {one:.3g} ms",
    )
    yield at_most(
        f"{name}: a draft step over its floor",
        floor["draft_over_floor"],
        DRAFT,
        f"{{:.2f}}: {steps['draft_step_ms']:.3g} ms, the floor {floor['draft_floor_ms']:.3g} ms",
    )
    yield at_most(
        f"{name}: first token of a prompt of {PROMPT_WORDS} tokens",
        modes["speculative"]["ttft_ms"],
        FIRST_MS,
        "{:.1f} ms",
    )
    gain = found["speedup_after_first_token"]
    mode = modes["speculative"]
    accepted = "none drafted" if mode["acceptance"] is None else f"{mode['acceptance']:.2f}"
    yield at_least(
        f"{name}: speculative over plain",
        gain["measured"],
        GAIN,
        f"{{:.2f}} times, {mode['tokens_per_s']:.0f} tokens/s; acceptance {accepted},"
        f" {mode['tokens_per_round']:.2f} tokens a round",
    )
    if gain["predicted"] is not None:
        yield at_least(
            f"{name}: that over what steps and acceptance predict",
            ratios["measured_over_predicted"],
            PREDICTED,
            f"{{:.2f}}: predicted {gain['predicted']:.2f} times",
        )


def _gpu(name: str, own: dict[str, Any] | None) -> Iterator[Row]:
    if own is None:
        yield not_here(f"{name}: kernels and waits a round, graphs, memory")
        return
    yield Row(
        f"{name}: a round",
        f"{own['kernels_per_round']:.0f} kernels, {own['launches_per_round']:.0f} launches,"
        f" {own['waits_per_round']:.1f} waits",
    )
    yield Row(f"{name}: attention", ", ".join(own["attention"][:3]) or "no kernel is called that")
    yield Row(
        f"{name}: graphs",
        f"{own['graphs']} captured in {own['capture_s']:.2f} s, {own['capture_mb']:.0f} MB;"
        f" {own['graphs_done_plainly']} done plainly",
    )
    yield Row(f"{name}: most memory", f"{own['most_memory_mb']:.0f} MB")


def at_once(course: Course) -> Iterator[Row]:
    """Yield the rows about the last pair, a recogniser and a voice: all at work at once, and in a
    session."""
    for row in _at_once(course):
        yield row.without_goal() if course.small else row


def _at_once(course: Course) -> Iterator[Row]:
    device, small = course.device, course.small
    config = _config(course, 1024, 24)
    if not small:
        torch.cuda.reset_peak_memory_stats()
    with cast_of(course.pairs[-1], device, config) as cast:
        sizes = "small ones" if small else "large-v3-turbo's sizes, and the default ones of a VITS"
        yield Row("recogniser and voice", f"{cast.asr.name}, and {cast.tts.name}: {sizes}")
        yield from together(cast, config, 0.5 if small else 4.0)
        # Needs anyio, which transformers installs. Without it, this section is one failed row.
        from lab.gpu.talk import talk

        course.progress("questions in a session")
        yield from talk(cast, config, 1 if small else 8, 0.6 * course.left_s)
    if not small:
        yield Row("most memory of all models", f"{most_memory_mb():.0f} MB")


def _config(course: Course, context: int, tokens: int = TOKENS) -> LlmConfig:
    device: Any = course.device.type
    return LlmConfig(device=device, max_new_tokens=tokens, context=context)
