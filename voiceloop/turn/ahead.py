"""Work for the next turn, done before that turn begins.

`look_ahead` begins replies to what the user may say next, while all models are idle. `catch_up` has
the language model read the history while a recited reply sounds. A recited reply is one that the
model did not generate, e.g. the answer of a skill.
"""

from __future__ import annotations

import logging
from contextlib import aclosing

import anyio

from voiceloop.dialogue.state import Options
from voiceloop.engines import IN_IDLE_TIME, Engines
from voiceloop.errors import VoiceloopError
from voiceloop.languages import Language, language
from voiceloop.trace.record import Lane, Recorder
from voiceloop.tts.clauses import ClauseCutter
from voiceloop.tts.pace import Tempo
from voiceloop.turn.resources import Resources
from voiceloop.types import Begun, Clause, SpeechChunk

logger = logging.getLogger(__name__)

LOOK_S = 0.01
"""Seconds between two checks whether all models are idle."""


async def look_ahead(
    resources: Resources, recorder: Recorder, text: str, turn: int, options: Options
) -> None:
    """Begin replies to what the user may say in `turn`, if their words begin with `text`, and
    synthesise the first clause of each.

    No step begins while any model has other work. A failure is only logged, because nobody waits
    for the result.
    """
    try:
        begun = await _begin(resources, recorder, text, turn)
        if options.spoken and resources.overlap.held_audio:
            await _speak(resources, recorder, begun, turn, options.voice)
    except VoiceloopError as error:
        logger.warning("nothing is begun ahead: %s", error.message)


async def catch_up(resources: Resources, recorder: Recorder) -> None:
    """Have the model read the history up to the end of a recited reply, while that reply sounds.

    A failure is only logged, because the next turn will report it.
    """
    begun = anyio.current_time()
    steps = resources.conversation.catch_up()
    stream = resources.engines.llm_runner.stream(steps, priority=IN_IDLE_TIME)
    try:
        async with aclosing(stream) as chunks:
            async for _ in chunks:
                pass
    except VoiceloopError as error:
        logger.warning("the history is not read ahead: %s", error.message)
    recorder.span(Lane.PREFILL, "catch up", begun, anyio.current_time())


async def _begin(resources: Resources, recorder: Recorder, text: str, turn: int) -> list[Begun]:
    """Begin replies to what the user may say in `turn`, and return their beginnings, the likeliest
    first. The list is empty if the engine begins nothing ahead."""
    steps, begun = resources.conversation.ahead(text, turn), list[Begun]()
    if steps is None:
        return begun
    engines, known = resources.engines, 0
    async with aclosing(engines.llm_runner.stream(steps, priority=IN_IDLE_TIME)) as found:
        while True:
            await _slack(engines)
            match await anext(found, None):
                case None:
                    return begun
                case Begun() as one:
                    begun.append(one)
                case tokens if tokens > known:
                    recorder.count("tokens_ahead", tokens - known)
                    known = tokens
                case _:
                    pass


async def _speak(
    resources: Resources, recorder: Recorder, begun: list[Begun], turn: int, voice: str | None
) -> None:
    """Synthesise the first clause of each reply, for use if the real reply begins with it."""
    engines, prefetched = resources.engines, resources.prefetched
    speed = resources.skills.voice.speed
    for old in [place for place in prefetched if place[2].turn != turn]:
        del prefetched[old]
    spoken, tempo = language(engines.tts.language(voice)), resources.pace.tempo
    firsts = (_first_clause(one, spoken, tempo) for one in begun)
    for clause in dict.fromkeys(filter(None, firsts)):
        if (voice, speed, clause) in prefetched:
            continue
        chunks, steps = list[SpeechChunk](), engines.tts.synthesize(clause, voice, speed)
        async with aclosing(engines.tts_runner.stream(steps, priority=IN_IDLE_TIME)) as sound:
            while True:
                await _slack(engines)
                chunk = await anext(sound, None)
                if chunk is None:
                    break
                chunks.append(chunk)
        prefetched[voice, speed, clause] = chunks
        recorder.count("clauses_ahead")


def _first_clause(begun: Begun, spoken: Language, tempo: Tempo) -> Clause | None:
    """Return the first clause of a reply, or None if it is not complete yet."""
    if not begun.bursts:
        return None
    cutter = ClauseCutter(begun.bursts[0].turn, spoken, lambda: tempo)
    clauses = [clause for burst in begun.bursts for clause in cutter.feed(burst)]
    if begun.whole:
        clauses += cutter.flush()
    return clauses[0] if clauses else None


async def _slack(engines: Engines) -> None:
    """Wait until no model has other work."""
    # There is no event for the moment at which the last model becomes idle.
    while not all(one.quiet_s() for one in engines.runners):  # noqa: ASYNC110
        await anyio.sleep(LOOK_S)
