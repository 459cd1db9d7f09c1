"""Makes responses out of the conversation, beside what is said in it.

Each has a conversation of its own with the language model, and is sent as fast as it is made. So it
neither stops nor delays what is spoken. Neither rules nor the server's own tools have a part in it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from functools import partial

import anyio

from voiceloop.audio.frames import Resampler
from voiceloop.engines import GUESS, Conversation
from voiceloop.errors import VoiceloopError, first_cause
from voiceloop.languages import language
from voiceloop.server.session import choices
from voiceloop.server.session.audio import RATE
from voiceloop.server.session.client_conversation import ClientConversation
from voiceloop.server.session.history import SILENCE, history, unanswered
from voiceloop.server.session.responses import Out, Responses, SpokenResponse
from voiceloop.tts.clauses import ClauseCutter
from voiceloop.types import FILTERED, Clause, TokenBurst, ToolCall
from voiceloop.wire.responses import CONTENT_FILTERED, NOTHING_SAID, TOO_LONG, failed

logger = logging.getLogger(__name__)


async def respond(
    dialogue: ClientConversation, responses: Responses, out: Out, spoken: SpokenResponse
) -> None:
    """Make a response that was announced, and end it. Stop early if it is cancelled. A failure ends
    only this response."""
    try:
        await _make(dialogue, out, spoken)
    except Exception as error:
        cause = first_cause(error)
        known = isinstance(cause, VoiceloopError)
        logger.warning("a response failed: %s", cause, exc_info=None if known else error)
        spoken.ending = failed(cause.message if known else repr(cause))
    responses.withdraw(spoken.response.id, spoken.ending)


async def _make(dialogue: ClientConversation, out: Out, spoken: SpokenResponse) -> None:
    runner, settings = dialogue.engines.llm_runner, spoken.response.settings
    seen, items = dialogue.seen(settings), dialogue.read(settings)
    system, past = history(seen.instructions, items, ())
    conversation = dialogue.engines.llm.conversation(system=system)
    conversation.effort, conversation.parallel_calls = seen.effort, seen.parallel_calls
    tools = choices.offered(settings)
    try:
        begin = partial(conversation.rewrite, system, past, tools, seen.required)
        await runner.call(begin, priority=GUESS)
        text = unanswered(items) or SILENCE
        tts, voice = dialogue.engines.tts, settings.audio.output.voice
        cutter = ClauseCutter(1, language(tts.language(voice)))

        async def speak(clauses: Sequence[Clause]) -> None:
            if spoken.response.spoken:
                for clause in clauses:
                    await _speak(dialogue, out, spoken, clause)

        async def write(burst: TokenBurst) -> None:
            await speak(cutter.feed(burst))

        if await _answer(dialogue, out, spoken, conversation, text, write):
            await speak(cutter.flush())
    finally:
        with anyio.CancelScope(shield=True):
            spoken.read = conversation.standing.tokens_read
            await runner.call(conversation.close, priority=GUESS)


async def _answer(
    dialogue: ClientConversation,
    out: Out,
    spoken: SpokenResponse,
    conversation: Conversation,
    text: str,
    write: Callable[[TokenBurst], Awaitable[None]],
) -> bool:
    """Answer `text`: send the text and the calls, and give each burst to `write`. At the end, note
    how the response ends. Returns whether there was a burst."""
    response, most = spoken.response, spoken.response.settings.max_output_tokens
    said = written = False
    runner, steps = dialogue.engines.llm_runner, conversation.reply(text, 1)
    async with aclosing(runner.stream(steps, priority=GUESS)) as items:
        async for item in items:
            if response.over or spoken.ending:
                return written
            if isinstance(item, ToolCall) and not item.problem:
                call = dialogue.new_id("call"), item.name, json.dumps(dict(item.arguments))
                events, ends = response.call(*call, last=True), not conversation.parallel_calls
            elif isinstance(item, TokenBurst):
                spoken.tokens += len(item.ids)
                spoken.ending = CONTENT_FILTERED if FILTERED in item.facts else spoken.ending
                events, ends = response.text(item.text), most != "inf" and spoken.tokens >= most
                spoken.ending = TOO_LONG if ends else spoken.ending
            else:
                continue
            said = said or bool(events)
            for event in events:
                out.put(event)
            if isinstance(item, TokenBurst):
                written = True
                await write(item)  # only now: its sound follows the events that begin the message
            if ends:
                return written
    limited = conversation.standing.limited
    spoken.ending = spoken.ending or (TOO_LONG if limited else None if said else NOTHING_SAID)
    return written


async def _speak(
    dialogue: ClientConversation, out: Out, spoken: SpokenResponse, clause: Clause
) -> None:
    """Synthesise a clause, and send the audio."""
    tts, voice = dialogue.engines.tts, spoken.response.settings.audio.output.voice
    steps = tts.synthesize(clause, voice, dialogue.skills.voice.speed)
    resampler = Resampler(tts.rate, RATE)
    async with aclosing(dialogue.engines.tts_runner.stream(steps, priority=GUESS)) as chunks:
        pieces = [resampler.feed(chunk.pcm) async for chunk in chunks]
    for pcm in (*pieces, resampler.flush()):
        for event in spoken.response.audio(spoken.encoder.feed(pcm)):
            out.put(event)
