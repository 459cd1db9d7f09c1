"""Loading: the configured engines with a thread for each, warmed up and ready to converse.

What a model is and how it runs is the engines' own; this module only chooses, counts threads and
makes each do its kind of work once, since a first call is many times slower than the next.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, nullcontext
from itertools import islice
from threading import Thread
from typing import Generic, TypeVar, cast

import numpy as np
from threadpoolctl import ThreadpoolController

from voiceloop.audio.frames import SPEECH_RATE
from voiceloop.catalog.names import prepare
from voiceloop.config import Config
from voiceloop.engines import Asr, Engines, Llm, Tts, TurnModel, Vad, load
from voiceloop.runner import ModelThread
from voiceloop.status import LOADING_THREAD
from voiceloop.types import Clause, Pcm, Span

T = TypeVar("T")

THREADS = "OMP_NUM_THREADS"
WARM_STEPS = 8
"""Steps of a reply, of those that give something, that warm a language model up: some rounds of
guesses, and no whole reply."""


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


def load_turn(config: Config) -> TurnModel | None:
    """The model that judges the end of a turn by its sound, if one is configured."""
    name = config.turns.sound
    return None if name == "none" else cast(TurnModel, load("turn", name, config.turns))


@contextmanager
def open_engines(config: Config) -> Iterator[Engines]:
    """Load and warm up everything that a conversation needs; each model gets its own thread.

    Models that are not on this machine are told of, or fetched, before any is loaded, and so is
    memory that is not there. They are
    loaded side by side, as much of that is reading and work outside of Python. All have ended, one
    way or the other, before anything is raised: the error of the first that failed, in the order
    of a conversation. Only Ctrl-C waits for nothing.
    """
    prepare(config)
    set_threads(config)
    if config.llm.engine == "speculative":
        from voiceloop.planning import check_memory  # torch counts threads when it is imported

        check_memory(config)
    llm = _Loading(lambda: _warm_llm(cast(Llm, load("llm", config.llm.engine, config.llm))))
    asr = _Loading(lambda: _warm_asr(load_asr(config)))
    tts = _Loading(lambda: _warm_tts(load_tts(config)))
    vad = _Loading(lambda: _warm_vad(load_vad(config)))
    turn = _Loading(lambda: _warm_turn(load_turn(config)))
    for thread in (llm, asr, tts, vad, turn):
        thread.join()
    loaded = vad.result(), asr.result(), llm.result(), tts.result(), turn.result()
    # Many objects that stay: looking through them would stop everything for 0.1 s and more.
    gc.collect()
    gc.freeze()
    try:
        with (
            ModelThread("asr") as hearing,
            ModelThread("llm") as thinking,
            ModelThread("tts") as voice,
            nullcontext() if loaded[-1] is None else ModelThread("turn") as ear,
        ):
            notices, hears, thinks, speaks, judges = loaded
            yield Engines(notices, hears, hearing, thinks, thinking, speaks, voice, judges, ear)
    finally:
        gc.unfreeze()


class _Loading(Thread, Generic[T]):
    """A job on a thread of its own, for which nothing waits when the program is interrupted."""

    def __init__(self, job: Callable[[], T]) -> None:
        super().__init__(name=LOADING_THREAD, daemon=True)
        self._job = job
        self._outcome: Future[T] = Future()
        self.start()

    def run(self) -> None:
        """Do the job; called on the thread."""
        try:
            self._outcome.set_result(self._job())
        except BaseException as error:  # raised where the result is asked for
            self._outcome.set_exception(error)

    def result(self) -> T:
        """What the job returned; raises what it raised."""
        return self._outcome.result()


# Each does its engine's kind of work once, no more than shows what is missing and sets it up.


def _warm_vad(vad: Vad) -> Vad:
    vad.probability(_noise(vad.frame))
    vad.reset()
    return vad


def _warm_asr(asr: Asr) -> Asr:
    asr.transcribe(_noise(SPEECH_RATE), final=True, timed=True)
    return asr


def _warm_turn(turn: TurnModel | None) -> TurnModel | None:
    if turn is not None:
        turn.end_of_turn_probability(_noise(SPEECH_RATE))
    return turn


def _warm_llm(llm: Llm) -> Llm:
    conversation = llm.conversation()
    for _ in conversation.prefill("Hello", 0):
        pass
    reply = conversation.reply("Hello there.", 0)
    for _ in islice(filter(None, reply), WARM_STEPS):
        pass
    reply.close()
    conversation.close()
    return llm


def _warm_tts(tts: Tts) -> Tts:
    for _ in tts.synthesize(Clause(0, 0, "Hello.", "Hello.", (Span(0, 6, 1),), last=True)):
        pass
    return tts


def _noise(samples: int) -> Pcm:
    return np.random.default_rng(0).normal(0, 0.1, samples).astype(np.float32)
