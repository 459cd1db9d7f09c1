"""All checks in the order in which they run, among them those of the sound card and of the stages.

The sound of the microphone is only checked for silence, and is not kept. Devices are not named,
because their names may contain names of people and serial numbers. A conversation in the browser
needs no sound card, so no finding about it is worse than a warning.

Each stage is loaded as configured, and a little of its work is timed, one stage after the other.
Loading is not timed, and neither is the first piece of work, because it includes preparations.
Replies of the language model are not shown: they may repeat the user's own instructions.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from itertools import takewhile
from pathlib import PurePath
from time import perf_counter
from typing import Any

import numpy as np

from voiceloop.asr.transcript import normalise
from voiceloop.assembly import loading
from voiceloop.audio.files import AudioFile
from voiceloop.audio.frames import SPEECH_RATE
from voiceloop.audio.portaudio import NAMES, Kind, Opener, names, open_stream
from voiceloop.bundled import bundled
from voiceloop.doctor import machine
from voiceloop.doctor.examine import Case, Check
from voiceloop.doctor.findings import Finding, judged
from voiceloop.engines import AsrRequest
from voiceloop.errors import DeviceError, EngineError
from voiceloop.status import asr_name, tts_name
from voiceloop.types import Clause, Pcm, Span, TokenBurst

LISTEN_S = 0.5
"""Seconds of sound that are read from a microphone, or written to a speaker."""
PATIENCE_S = 3.0
"""Seconds within which a device must read or write `LISTEN_S` of sound. A slower device counts as
not working."""
POLL_S = 0.02
CURE = (
    "see that the sound server runs and that no other program holds the device; "
    "voiceloop devices lists those there are"
)
ELSEWHERE = "voiceloop serve uses those of the browser"
QUESTION = "Why is the sky blue?"
"""The words of the bundled recording."""
SENTENCE = "It is half past four, and everything works."
MOST_S = 10.0
"""Seconds after which a reply is cut off."""
MOST_TOKENS = 64


def sound(case: Case) -> Iterator[Finding]:
    """Open the default microphone and the default speaker for a moment, and report whether each
    works."""
    del case
    for kind in NAMES:
        yield of_device(kind)


def of_device(
    kind: Kind,
    opener: Opener = open_stream,
    listed: Callable[[Kind], list[str]] = names,
    wait: Callable[[float], object] = time.sleep,
) -> Finding:
    """Return the finding for the default device of the given kind. `listed` returns the names of
    all devices of a kind; `wait` waits for some seconds."""
    title = NAMES[kind]
    try:
        there = listed(kind)
    except DeviceError as error:
        return Finding(title, "warning", error.message, f"{error.hint}; {ELSEWHERE}")
    try:
        seconds, loudest, rate = _try(kind, opener, wait)
    except Exception as error:  # sounddevice's own error classes are not imported here
        why = str(error)
        for name in sorted(there, key=len, reverse=True):
            why = why.replace(f" '{name}'", "").replace(name, "it")
        return Finding(title, "warning", f"the default one does not work: {why}", CURE)
    if seconds < LISTEN_S:
        verb = "gives no sound" if kind == "input" else "takes no sound"
        return Finding(title, "warning", f"the default one opens and {verb}", CURE)
    if kind == "input" and not loudest:
        cure = "see that it is not muted, and that the system lets this terminal hear it"
        return Finding(title, "warning", "the default one gives nothing but zeros", cure)
    count = f"is one {title}" if len(there) == 1 else f"are {len(there)} {title}s"
    return Finding(title, "ok", f"the default one works at {rate} Hz; there {count}")


def _try(kind: Kind, opener: Opener, wait: Callable[[float], object]) -> tuple[float, float, int]:
    """Let the default device of a kind work, until `LISTEN_S` of sound are through or `PATIENCE_S`
    are over. Return the seconds of sound, the largest amplitude of a microphone, and the sample
    rate."""
    moved, loudest = 0, 0.0

    def callback(pcm: Any, frames: int, time: Any, status: Any) -> None:
        nonlocal moved, loudest
        del time, status
        if kind == "input":
            loudest = max(loudest, float(np.abs(pcm).max(initial=0.0)))
        else:
            pcm[:] = 0
        moved += frames

    _, stream = opener(kind, None, callback, lambda: None, None)
    rate = round(stream.samplerate)
    try:
        stream.start()
        for _ in range(round(PATIENCE_S / POLL_S)):
            if moved >= LISTEN_S * rate:
                break
            wait(POLL_S)
        stream.abort()
    finally:
        stream.close()
    return moved / rate, loudest, rate


def voice_detector(case: Case) -> Iterator[Finding]:
    """Report whether the voice detector finds speech in the bundled recording."""
    vad, window_s = loading.warm_vad(loading.load_vad(case.config))
    pcm = _question()
    places = range(0, len(pcm) - vad.frame, vad.frame)
    loudest = max(vad.probability(pcm[place : place + vad.frame]) for place in places)
    if loudest < case.config.turns.threshold:
        raise EngineError("it hears no speech in the bundled recording", "install voiceloop again")
    figures = {"s_per_s": window_s * SPEECH_RATE / vad.frame}
    text = f"{case.config.vad.engine} hears the bundled question"
    yield Finding("voice detector", "ok", text, figures=figures)


def recogniser(case: Case) -> Iterator[Finding]:
    """Report whether the recogniser understands the bundled recording, and how much time it
    takes."""
    if absent := case.absent("asr"):
        raise absent
    asr, pcm = loading.warm_asr(loading.load_asr(case.config)), _question()
    known = "en" if "en" in asr.languages else None
    begun = perf_counter()
    words = asr.transcribe(AsrRequest(pcm, timed=True, language=known))
    taken = perf_counter() - begun
    name, figures = asr_name(case.config.asr), {"s_per_s": taken * SPEECH_RATE / len(pcm)}
    said, understood = QUESTION.split(), {normalise(word.text) for word in words}
    if sum(normalise(word) in understood for word in said) * 2 < len(said):
        heard = " ".join(word.text for word in words)
        text = f"{name} understands '{heard}' where a synthetic voice says '{QUESTION}'"
        cure = "choose a larger model, or one for the language that you speak"
        yield Finding("recogniser", "warning", text, cure, figures)
        return
    yield judged("recogniser", f"{name}, {taken * 1000:.0f} ms for a question", figures)


def end_of_turn(case: Case) -> Iterator[Finding]:
    """Report whether the turn model runs, if one is configured."""
    sound = case.config.turns.sound
    if sound == "none":
        return
    if absent := case.absent("turn"):
        raise absent
    turn, pcm = loading.warm_turn(loading.load_turn(case.config)), _question()
    begun = perf_counter()
    turn.end_of_turn_probability(pcm)
    taken = perf_counter() - begun
    text = f"{sound}, {taken * 1000:.0f} ms for a question"
    yield Finding("end of turn", "ok", text, figures={"s": taken})


def language_model(case: Case) -> Iterator[Finding]:
    """Report whether the language model answers a question, after what time, and at what speed."""
    if absent := case.absent("llm"):
        raise absent
    config, llm = case.config.llm, loading.warm_llm(loading.load_llm(case.config))
    conversation = llm.conversation()
    begun = perf_counter()
    came: list[tuple[float, int]] = []
    """For each burst: the seconds from the question to the burst, and the number of its tokens."""
    reply = conversation.reply(QUESTION, 0)
    for item in takewhile(lambda _: perf_counter() - begun < MOST_S, reply):
        if isinstance(item, TokenBurst):
            came.append((perf_counter() - begun, len(item.ids)))
        if sum(count for _, count in came) >= MOST_TOKENS:
            break
    reply.close()
    conversation.close()
    name = f"llm {PurePath(config.target).name}"
    if not came:
        raise EngineError(f"{name} answers with no word", "try another model, or its server")
    (first, _), (last, _) = came[0], came[-1]
    figures, later = {"first_token_s": first}, sum(count for _, count in came[1:])
    speed = ""
    if last > first:
        figures["tokens_per_s"] = later / (last - first)
        speed = f", then {figures['tokens_per_s']:.0f} tokens/s"
    yield judged("language model", f"{name}, first word after {first:.2f} s{speed}", figures)


def synthesizer(case: Case) -> Iterator[Finding]:
    """Report whether the synthesizer speaks a sentence, after what time, and at what speed."""
    if absent := case.absent("piper", "kokoro"):
        raise absent
    tts = loading.warm_tts(loading.load_tts(case.config))
    begun, first, pieces = perf_counter(), 0.0, list[Pcm]()
    spans = (Span(0, len(SENTENCE), 1),)
    for chunk in tts.synthesize(Clause(0, 0, SENTENCE, SENTENCE, spans, last=True)):
        if chunk is not None:
            first = first or perf_counter() - begun
            pieces.append(chunk.pcm)
    taken, name = perf_counter() - begun, tts_name(case.config.tts)
    said = np.concatenate(pieces) if pieces else np.zeros(0, np.float32)
    if not np.any(said):
        raise EngineError(f"{name} says nothing", "choose another voice: voiceloop voices")
    figures = {"first_sound_s": first, "s_per_s": taken * tts.rate / len(said)}
    speed = f"{figures['s_per_s']:.2g} s for a second of sound"
    text = f"{name}, first sound after {first * 1000:.0f} ms, {speed}"
    yield judged("synthesizer", text, figures)


def _question() -> Pcm:
    """Return the bundled recording, at 16 kHz."""
    with AudioFile(bundled("models/starter/demo.wav"), SPEECH_RATE) as file:
        return np.concatenate(list(file.blocks()))


CHECKS: Mapping[str, Check] = {
    "python": machine.python,
    "configuration": machine.configuration,
    "processor": machine.processor,
    "memory": machine.memory,
    "graphics": machine.graphics,
    "disk": machine.disk,
    "models": machine.models,
    "port": machine.port,
    "sound": sound,
    "voice detector": voice_detector,
    "recogniser": recogniser,
    "end of turn": end_of_turn,
    "language model": language_model,
    "synthesizer": synthesizer,
}
"""The checks by name. The name is shown while a check runs, and in its finding if it fails."""
