"""Loads the configured engines, each on a thread of its own, and warms them up.

To warm an engine up is to make it work once, since a first call is many times slower than the next.
Loading and warming up run on the thread that the engine will use later. Libraries set up their
state for each thread, and on a GPU for the stream of the thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import wait
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from itertools import islice
from time import perf_counter  # noqa: TID251 -- no event loop runs yet, so there is no clock of it
from typing import Any, cast

import numpy as np

from voiceloop.asr.whisper_model import check_recogniser
from voiceloop.audio.frames import SPEECH_RATE
from voiceloop.catalog.names import prepare
from voiceloop.engines import (
    Asr,
    AsrRequest,
    Engines,
    Kind,
    Llm,
    Own,
    Tts,
    TurnModel,
    Vad,
    build,
    check,
    configured,
    load,
)
from voiceloop.llm.remote.remote import RemoteLlm
from voiceloop.llm.text.rendering import end_rendering
from voiceloop.process import small_work
from voiceloop.runner import ModelThread
from voiceloop.settings.config import Config
from voiceloop.skills.answer import grammar
from voiceloop.skills.claims import ClaimGuard
from voiceloop.skills.clock import zone
from voiceloop.tts.known import check_voice
from voiceloop.turn.resources import load_rules
from voiceloop.types import Clause, Pcm, Span

WARM_STEPS = 8
"""Number of steps with tokens that warm a language model up: several rounds of a reply."""
WARM_WINDOWS = 8
"""Number of windows that warm the VAD up. Its cost is the time of the quickest window, since other
engines load at the same time and slow it down."""
AT_ONCE_S = 0.001
"""Longest time in seconds that a VAD may need for a window if it is to run on the event loop.

It blocks the event loop for that time. A slower VAD runs on its own thread.
"""


def load_asr(config: Config) -> Asr:
    """Load the configured recogniser."""
    return cast(Asr, _load("asr", config.asr.engine, config.asr))


def load_tts(config: Config) -> Tts:
    """Load the configured synthesizer."""
    check_voice(config.tts)
    return cast(Tts, _load("tts", config.tts.engine, config.tts))


def load_vad(config: Config) -> Vad:
    """Load the configured voice activity detector."""
    return cast(Vad, _load("vad", config.vad.engine, config.vad))


def load_llm(config: Config) -> Llm:
    """Load the configured language model."""
    return cast(Llm, _load("llm", config.llm.engine, config.llm))


def open_llm(config: Config) -> Llm:
    """Load the configured language model and warm it up."""
    return warm_llm(load_llm(config))


def load_turn(config: Config) -> TurnModel:
    """Load the configured turn model; there must be one."""
    return cast(TurnModel, _load("turn", config.turns.sound, config.turns))


def _load(kind: Kind, name: str, settings: object) -> object:
    engine = load(kind, name, settings)
    small_work()
    return engine


def of_conversation(engines: Engines, config: Config) -> Engines:
    """Return the engines for one more conversation, which gets a VAD of its own."""
    return replace(engines, vad=engines.new_vad() if engines.new_vad else load_vad(config))


@contextmanager
def open_engines(config: Config, own: Own | None = None) -> Iterator[Engines]:
    """Load and warm up everything that a conversation needs, each model on a thread of its own.

    Before that, missing models are fetched. Errors are raised for models that cannot be fetched,
    for unknown voices, languages, time zones and engines, and for too little memory. Engines load
    in parallel, since much of that is reading and work outside of Python. If one fails, the others
    are waited for, and the first error in the order VAD, ASR, LLM, TTS, turn model is raised. Only
    Ctrl-C does not wait. Engines in `own` replace the configured ones.
    """
    own = own or {}
    zone(config.timezone)
    grammar(config.asr.language)
    prepare(config)
    load_rules(config.turns)
    check_voice(config.tts)
    check_recogniser(config.asr)
    new = dict[Kind, Callable[[], Any]]()
    for kind, name, settings in configured(config):
        if kind in own:
            new[kind] = partial(build, kind, own[kind], settings)
        else:
            check(kind, name, settings)
            new[kind] = partial(_load, kind, name, settings)
    if config.llm.engine == "speculative":
        from voiceloop.assembly.planning import check_memory  # imports torch

        check_memory(config, own=own)
    with ExitStack() as stack:
        stack.callback(end_rendering)
        llm = ModelThread("llm", lambda: warm_llm(new["llm"]()))
        asr = ModelThread("asr", lambda: warm_asr(new["asr"]()))
        tts = ModelThread("tts", lambda: warm_tts(new["tts"]()))
        vad = ModelThread("vad", lambda: warm_vad(new["vad"]()))
        turn = None
        if "turn" in new:
            turn = ModelThread("turn", lambda: warm_turn(new["turn"]()))
        every: list[ModelThread[Any] | None] = [vad, asr, llm, tts, turn]
        threads = [thread for thread in every if thread is not None]
        ClaimGuard("", config.asr.language)  # compiles its patterns before a reply needs them
        wait([thread.model for thread in threads])
        for thread in threads:
            stack.enter_context(thread)
        detector, window_s = vad.model.result()
        yield Engines(
            vad=detector,
            asr=asr.model.result(),
            asr_runner=asr,
            llm=llm.model.result(),
            llm_runner=llm,
            tts=tts.model.result(),
            tts_runner=tts,
            turn=turn and turn.model.result(),
            turn_runner=turn,
            vad_runner=vad if window_s > AT_ONCE_S else None,
            new_vad=new["vad"],
        )


# Each of these functions gives its engine enough work to set up its libraries and to raise errors.


def warm_vad(vad: Vad) -> tuple[Vad, float]:
    """Warm the VAD up. Return it and the time of its quickest window, in seconds."""
    taken, window = list[float](), _noise(vad.frame)
    for _ in range(WARM_WINDOWS):
        begun = perf_counter()
        vad.probability(window)
        taken.append(perf_counter() - begun)
    vad.reset()
    return vad, min(taken)


def warm_asr(asr: Asr) -> Asr:
    asr.transcribe(AsrRequest(_noise(SPEECH_RATE), timed=True))
    return asr


def warm_turn(turn: TurnModel) -> TurnModel:
    turn.end_of_turn_probability(_noise(SPEECH_RATE))
    return turn


def warm_llm(llm: Llm) -> Llm:
    if isinstance(llm, RemoteLlm):  # its replies may cost money or a long thought
        llm.warm()
        return llm
    conversation = llm.conversation()
    for _ in conversation.prefill("Hello", 0):
        pass
    reply = conversation.reply("Hello there.", 0)
    for _ in islice(filter(None, reply), WARM_STEPS):
        pass
    reply.close()
    conversation.close()
    return llm


def warm_tts(tts: Tts) -> Tts:
    for _ in tts.synthesize(Clause(0, 0, "Hello.", "Hello.", (Span(0, 6, 1),), last=True)):
        pass
    return tts


def _noise(samples: int) -> Pcm:
    return np.random.default_rng(0).normal(0, 0.1, samples).astype(np.float32)
