"""The models of a whole conversation in real shapes: recogniser, language model and synthesizer.

Each has its own thread and CUDA stream. The stream of the language model has a higher priority.
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
from voiceloop.settings.config import LlmConfig

T = TypeVar("T")
WORDS = 12
"""Number of words in a question."""
ACCEPTANCE = 0.7
"""Probability that a draft token is accepted."""


class Lane:
    """A thread whose work goes to its own CUDA stream; without a GPU it is only a thread."""

    def __init__(self, device: torch.device, *, urgent: bool = False) -> None:
        self._stream = (
            torch.cuda.Stream(device, priority=-1 if urgent else 0)
            if device.type == "cuda"
            else None
        )
        self._thread = ThreadPoolExecutor(1, initializer=self.enter)

    def enter(self) -> None:
        """Send all further work of the calling thread to the stream."""
        if self._stream is not None:
            torch.cuda.set_stream(self._stream)

    def begin(self, job: Callable[[], T]) -> Future[T]:
        """Start `job` on the thread."""
        return self._thread.submit(job)

    def do(self, job: Callable[[], T]) -> T:
        """Run `job` on the thread, and wait for its result."""
        return self.begin(job).result()

    def close(self) -> None:
        """Let the thread end."""
        self._thread.shutdown()


@dataclass(frozen=True, slots=True)
class Cast:
    """The models, ready to work. As a context manager, this ends their threads."""

    asr: WhisperStandIn
    llm: Pair
    tts: VitsStandIn
    lanes: dict[str, Lane]
    """The threads that `asr`, `llm` and `tts` were made on, by these names."""
    question: str
    """The words of the question."""

    def __enter__(self) -> Cast:
        return self

    def __exit__(self, *error: object) -> None:
        for lane in self.lanes.values():
            lane.close()


def cast_of(pair: str, device: torch.device, config: LlmConfig) -> Cast:
    """Build the language models of a synthetic `pair`, a recogniser and a voice. The last two have
    real sizes; on a CPU they are small.

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
