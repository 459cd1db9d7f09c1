"""Loading: the configured engines with a thread for each, warmed up and ready to converse.

What a model is and how it runs is the engines' own; this module only chooses, counts threads and
makes each do its kind of work once, since a first call is many times slower than the next.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

import numpy as np
from threadpoolctl import ThreadpoolController

from voiceloop.config import Config
from voiceloop.engines import Asr, Engines, Llm, Tts, Vad, load
from voiceloop.runner import ModelThread
from voiceloop.types import Clause, Span

THREADS = "OMP_NUM_THREADS"


def set_threads(config: Config) -> None:
    """Bound the threads of torch, ctranslate2 and onnxruntime; before any of them is imported.

    Their own defaults take every core each, and then they wait for one another. An OMP_NUM_THREADS
    that is already set is the user's word and stays.
    """
    count = config.threads or max(1, (os.cpu_count() or 1) // 2)
    os.environ.setdefault(THREADS, str(count))
    # numpy's products are small: further threads would only spin until the next one.
    ThreadpoolController().select(internal_api="openblas").limit(limits=1)


def load_asr(config: Config) -> Asr:
    """The configured recogniser."""
    set_threads(config)
    return cast(Asr, load("asr", config.asr.engine, config.asr))


def load_tts(config: Config) -> Tts:
    """The configured synthesizer."""
    set_threads(config)
    return cast(Tts, load("tts", config.tts.engine, config.tts))


def load_vad(config: Config) -> Vad:
    """The configured voice activity detector."""
    set_threads(config)
    return cast(Vad, load("vad", config.vad.engine, config.vad))


@contextmanager
def open_engines(config: Config) -> Iterator[Engines]:
    """Load and warm up everything that a conversation needs; each model gets its own thread."""
    vad, asr, tts = load_vad(config), load_asr(config), load_tts(config)
    llm = cast(Llm, load("llm", config.llm.engine, config.llm))
    warm_up(vad, asr, llm, tts)
    # Half a million objects that stay: looking through them would stop everything for 0.2 s.
    gc.collect()
    gc.freeze()
    try:
        with (
            ModelThread("asr") as hearing,
            ModelThread("llm") as thinking,
            ModelThread("tts") as voice,
        ):
            yield Engines(vad, asr, hearing, llm, thinking, tts, voice)
    finally:
        gc.unfreeze()


def warm_up(vad: Vad, asr: Asr, llm: Llm, tts: Tts) -> None:
    """Do each engine's kind of work once."""
    noise = np.random.default_rng(0).normal(0, 0.1, 32_000).astype(np.float32)
    vad.probability(noise[: vad.frame])
    vad.reset()
    for final in (False, True):
        asr.transcribe(noise, final=final)
    conversation = llm.conversation()
    for text in ("Hello", "Hello there, how are"):
        for _ in conversation.prefill(text, 0):
            pass
    for _ in conversation.reply("Hello there, how are you?", 0):
        pass
    conversation.close()
    for _ in tts.synthesize(Clause(0, 0, "Hello.", "Hello.", (Span(0, 6, 1),), last=True)):
        pass
