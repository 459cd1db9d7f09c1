"""All that takes part in a conversation, of real shapes: what listens, thinks and speaks.

Each has a thread and a stream of its own, the language model's before the others.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import torch
from transformers import VitsConfig

from lab.decoding.pair import Pair, load_models
from lab.decoding.synthetic import synthetic_prompts, vocabulary
from lab.gpu.standins import (
    SMALL_VITS,
    SMALL_WHISPER,
    TURBO,
    VitsStandIn,
    WhisperStandIn,
)
from voiceloop.config import LlmConfig

T = TypeVar("T")
WORDS = 12
"""Of a question."""
ACCEPTANCE = 0.7
"""Probability that a draft token stands."""


class Lane:
    """A thread, whose work goes to a stream of its own; where there is no GPU, a thread."""

    def __init__(self, device: torch.device, *, urgent: bool = False) -> None:
        self._stream = (
            torch.cuda.Stream(device, priority=-1 if urgent else 0)
            if device.type == "cuda"
            else None
        )
        self._thread = ThreadPoolExecutor(1, initializer=self.enter)

    def enter(self) -> None:
        """From now on the work of the thread that this is called on goes to the stream."""
        if self._stream is not None:
            torch.cuda.set_stream(self._stream)

    def begin(self, job: Callable[[], T]) -> Future[T]:
        """Do it on the thread."""
        return self._thread.submit(job)

    def do(self, job: Callable[[], T]) -> T:
        """Do it there, and wait for it."""
        return self.begin(job).result()

    def close(self) -> None:
        """Let the thread end."""
        self._thread.shutdown()


@dataclass(frozen=True, slots=True)
class Cast:
    """What takes part, ready to work; used as a context manager, it ends its threads."""

    asr: WhisperStandIn
    llm: Pair
    tts: VitsStandIn
    lanes: dict[str, Lane]
    """The threads that `asr`, `llm` and `tts` were made on, by these names."""
    question: str
    """What is asked."""

    def __enter__(self) -> Cast:
        return self

    def __exit__(self, *error: object) -> None:
        for lane in self.lanes.values():
            lane.close()


def cast_of(pair: str, device: torch.device, config: LlmConfig) -> Cast:
    """The language models of a synthetic `pair`, with a recogniser and a voice of real sizes; on a
    processor, with small ones.

    Raises what `load_models` raises, and OutOfMemory.
    """
    small = device.type == "cpu"
    (question,) = synthetic_prompts(vocabulary(pair), 1, WORDS)
    lanes = {name: Lane(device, urgent=name == "llm") for name in ("asr", "llm", "tts")}
    shape, dtype = (SMALL_WHISPER, torch.float32) if small else (TURBO, torch.float16)
    voice = SMALL_VITS if small else VitsConfig()
    llm = lanes["llm"].begin(lambda: Pair(*load_models(config, pair, ACCEPTANCE), config))
    asr = lanes["asr"].begin(lambda: WhisperStandIn(shape, question.split(), device, dtype))
    tts = lanes["tts"].begin(lambda: VitsStandIn(voice, device))
    return Cast(asr.result(), llm.result(), tts.result(), lanes, question)
