"""What is done for a turn beside its reply. Each job yields what it finds: reports to the core."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from functools import partial
from typing import Any

import anyio

from voiceloop.audio.frames import SPEECH_RATE
from voiceloop.dialogue import inputs
from voiceloop.dialogue.state import Turn
from voiceloop.engines import Conversation, Engines, first
from voiceloop.trace.record import Lane, Mark
from voiceloop.turn.work import Work
from voiceloop.types import Pcm

Reports = AsyncGenerator[inputs.Input, None]
SURE_OF_LANGUAGE = 0.8
"""Probability at which a turn tells the language of all that come: Whisper base took German and
Spanish for other languages at up to 0.64."""


async def recognise(
    work: Work, engines: Engines, known: Callable[[], Turn | None], *, partials: bool
) -> Reports:
    """Decode what the user says until every sample before the endpoint has been decoded; without
    `partials`, once they have finished. `known` is the turn as the core has it by now."""
    asr, runner, transcriber = engines.asr, engines.asr_runner, work.transcriber
    assert transcriber is not None, "somebody speaks"
    while not (work.newest and work.newest.final):
        changed = work.changed
        job = transcriber.next_job() if work.ended or partials else None
        turn = known()
        if job is None or turn is None:
            await changed.wait()
            continue
        begun = anyio.current_time()
        priority = first if job.final else work.priority
        sure = False
        if turn.detects:
            code, probability = await runner.call(
                partial(asr.detect_language, job.pcm), priority=priority
            )
            sure = probability >= SURE_OF_LANGUAGE
            yield inputs.LanguageDetected(work.turn, code)
            turn = known() or turn
        words = await runner.call(
            partial(
                asr.transcribe,
                job.pcm,
                final=job.final,
                timed=job.timed,
                language=turn.language.code,
            ),
            priority=priority,
        )
        name = "final" if job.final else "partial"
        text = " ".join(word.text for word in words)
        now, until_s = anyio.current_time(), job.end / SPEECH_RATE
        work.recorder.span(Lane.ASR, name, begun, now, words=len(words), text=text, until_s=until_s)
        work.take_down(transcriber.accept(job, words), now)
        yield inputs.Recognised(work.turn, work.words, sure and bool(words) and job.final)


async def judge_sound(work: Work, engines: Engines, since: int, pcm: Pcm) -> Reports:
    """Have a silence judged by the sound of the voice before it."""
    model, runner = engines.turn, engines.turn_runner
    assert model is not None and runner is not None, "there is an ear"
    begun = anyio.current_time()
    probability = await runner.call(
        partial(model.end_of_turn_probability, pcm), priority=work.priority
    )
    now = anyio.current_time()
    work.recorder.span(Lane.VAD, "end by its sound?", begun, now, probability=probability)
    yield inputs.SoundJudged(work.turn, since, probability)


async def read(work: Work, engines: Engines, conversation: Conversation, text: str) -> Reports:
    """Have the language model read what the user says."""
    begun = anyio.current_time()
    if text:
        work.recorder.mark(Mark.PREFILL_START, begun)
    steps = conversation.prefill(text, work.recorder.turn)
    async with aclosing(engines.llm_runner.stream(steps, priority=work.priority)) as chunks:
        async for _ in chunks:
            pass
    work.recorder.span(Lane.PREFILL, "prefill", begun, anyio.current_time(), text=text)
    yield has_read(work, conversation, text, begun)


async def rewrite(engines: Engines, rewritten: Any) -> Reports:
    """Have the language model see another history."""
    await engines.llm_runner.call(rewritten)
    yield inputs.Rewritten(rewritten)


def has_read(work: Work, conversation: Conversation, text: str, begun: float) -> inputs.Read:
    """What the language model makes of a turn's end, now that it has read `text`."""
    probability = conversation.end_of_turn_probability()
    return inputs.Read(work.turn, text, probability, begun, conversation.exchanges)
