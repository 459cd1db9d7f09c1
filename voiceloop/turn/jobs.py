"""Jobs that run beside replies. Each reports to the core what it finds."""

from __future__ import annotations

from functools import partial

import anyio

from voiceloop.audio.frames import SPEECH_RATE
from voiceloop.dialogue import actions, inputs
from voiceloop.engines import URGENT
from voiceloop.runner import run_through
from voiceloop.trace.record import Lane, Mark
from voiceloop.turn.ahead import look_ahead
from voiceloop.turn.resources import Resources
from voiceloop.turn.work import TurnTasks
from voiceloop.types import Clause, Pcm

SURE_OF_LANGUAGE = 0.8
"""Minimum probability of a detected language for which later turns keep it too. Whisper base
mistook German and Spanish for other languages with probabilities of up to 0.64."""


async def recognise(work: TurnTasks, resources: Resources) -> None:
    """Decode the user's speech until every sample before the endpoint has been decoded. If stages
    do not overlap, decode only once the user has finished."""
    engines, transcriber = resources.engines, work.transcriber
    asr, runner, partials = engines.asr, engines.asr_runner, resources.overlap.stages
    assert transcriber is not None, "somebody speaks"
    while not (work.newest and work.newest.final):
        changed = work.changed
        job = transcriber.next_job() if work.ended or partials else None
        known = work.known
        if job is None or known is None:
            await changed.wait()
            continue
        begun = anyio.current_time()
        priority = URGENT if job.final else work.priority
        sure = False
        if known.detects:
            code, probability = await runner.call(
                partial(asr.detect_language, job.pcm), priority=priority
            )
            sure = probability >= SURE_OF_LANGUAGE
            resources.report(inputs.LanguageDetected(work.turn, code))
            known = work.known or known
        words = await runner.call(partial(job.decode, known.language.code), priority=priority)
        name = "final" if job.final else "partial"
        now, until_s = anyio.current_time(), job.end / SPEECH_RATE
        if words is None:
            work.recorder.span(Lane.ASR, f"abandoned {name}", begun, now, until_s=until_s)
            job.abandon()
            continue
        text = " ".join(word.text for word in words)
        work.recorder.span(Lane.ASR, name, begun, now, words=len(words), text=text, until_s=until_s)
        work.take_down(job.accept(words), now)
        sure = sure and bool(words) and job.final
        resources.report(inputs.Recognised(work.turn, work.words, sure))


async def judge_sound(work: TurnTasks, resources: Resources, since: int, pcm: Pcm) -> None:
    """Have the turn model judge from the sound `pcm` whether the turn is over. The silence began at
    sample `since`."""
    model, runner = resources.engines.turn, resources.engines.turn_runner
    assert model is not None and runner is not None, "there is a turn model"
    begun = anyio.current_time()
    probability = await runner.call(
        partial(model.end_of_turn_probability, pcm), priority=work.priority
    )
    now = anyio.current_time()
    work.recorder.span(Lane.VAD, "end by its sound?", begun, now, probability=probability)
    resources.report(inputs.SoundJudged(work.turn, since, probability))


async def read(work: TurnTasks, resources: Resources, request: actions.ReadWords) -> None:
    """Have the language model read the user's words, and report the end probability. Then, except
    in the first turn, begin replies to what the user may say next."""
    conversation, text, begun = resources.conversation, request.text, anyio.current_time()
    if text:
        work.recorder.mark(Mark.PREFILL_START, begun)
    steps = resources.observer.steps(conversation.prefill(text, work.recorder.turn))
    await run_through(resources.engines.llm_runner, steps, priority=work.priority)
    work.recorder.span(Lane.PREFILL, "prefill", begun, anyio.current_time(), text=text)
    found = resources.observer.standing
    resources.report(inputs.Read(work.turn, text, found.end_probability, begun, found.exchanges))
    if text and work.recorder.turn > 1:  # a first question cannot be predicted
        await look_ahead(resources, work.recorder, text, work.recorder.turn, request.options)


async def call_tool(resources: Resources, action: actions.CallTool) -> None:
    """Run one of the user's own tools, and report its result."""
    result = await resources.toolbox.call(action.call)
    resources.report(inputs.ToolReturned(action.turn, action.call, result))


async def play(resources: Resources) -> None:
    """Play replies for as long as the session lasts, and report each clause that begins to
    sound."""

    def sounds(clause: Clause) -> None:
        resources.show(clause)
        resources.report(inputs.Sounding(resources.player.turn))

    await resources.player.run(sounds)
