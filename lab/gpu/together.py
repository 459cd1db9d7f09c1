"""Measures how much slower each of the three models is while the other two work.

The other two work without a pause. In a conversation they do not, so this is the worst case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from threading import Event
from time import perf_counter

from lab.gpu.cast import Cast
from lab.gpu.rows import Row, at_most
from lab.gpu.standins import RATE, spoken
from voiceloop.bench.modes import BenchPrompt, OurMode
from voiceloop.engines import AsrRequest
from voiceloop.settings.config import LlmConfig
from voiceloop.types import Clause, Span

SLOWED = 1.25
"""Goal for the language model: the maximum time of a token beside the other models, relative to the
time of a token when it works alone."""


@dataclass(frozen=True, slots=True)
class Load:
    """Work of one model that can be done over and over."""

    unit: str
    """The unit in which the work is counted."""
    work: Callable[[], float]
    """Does the work once, and returns its amount."""


def loads(cast: Cast, config: LlmConfig) -> dict[str, Load]:
    """Return the work of each model, by the name of its lane."""
    mode = OurMode(cast.llm.conversation(), config.max_new_tokens)
    prompt = BenchPrompt(cast.question, cast.llm.prompt(cast.question))
    sound = spoken(len(cast.question.split()))
    text = cast.question
    clause = Clause(0, 0, text, text, (Span(0, len(text), 1),), last=True)

    def speak() -> float:
        chunks = filter(None, cast.tts.synthesize(clause))
        return sum(len(chunk.pcm) for chunk in chunks) / RATE

    return {
        "llm": Load("tokens", lambda: mode.answer(prompt).tokens),
        "asr": Load("windows", lambda: float(bool(cast.asr.transcribe(AsrRequest(sound))))),
        "tts": Load("seconds spoken", speak),
    }


def together(cast: Cast, config: LlmConfig, seconds: float) -> Iterator[Row]:
    """Yield the rows about the work of each model per second, alone and beside the others."""
    each = loads(cast, config)
    for name, load in each.items():
        cast.lanes[name].do(load.work)  # warms up
    alone = {name: rates(cast, {name: load}, seconds)[name] for name, load in each.items()}
    beside = rates(cast, each, seconds)
    for name, load in each.items():
        times = alone[name] / beside[name]
        form = f"{{:.2f}} times as long: {alone[name]:.1f} {load.unit}/s alone, {beside[name]:.1f}"
        label = f"{name} beside the other two"
        if name == "llm":
            yield at_most(f"{label}, a token", times, SLOWED, form)
        else:
            yield Row(label, form.format(times))


def rates(cast: Cast, each: Mapping[str, Load], seconds: float) -> dict[str, float]:
    """Do all loads at once for `seconds`. Return the work of each per second."""
    over = Event()

    def rate(load: Load) -> float:
        began, done = perf_counter(), 0.0
        while not done or not over.is_set():
            done += load.work()
        return done / (perf_counter() - began)

    running: dict[str, Future[float]] = {
        name: cast.lanes[name].begin(lambda load=load: rate(load)) for name, load in each.items()
    }
    over.wait(seconds)
    over.set()
    return {name: future.result() for name, future in running.items()}
