"""Makes responses out of the conversation, beside what is said in it.

Each has a conversation of its own with the language model, and is sent as fast as it is made. So it
neither stops nor delays what is spoken. Neither rules nor the server's own tools have a part in it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator
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
from voiceloop.tts.stream import clauses
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
        async with aclosing(_bursts(dialogue, out, spoken, conversation, text)) as bursts:
            if spoken.response.spoken:
                await _speak(dialogue, out, spoken, bursts)
            async for _ in bursts:
                pass
    finally:
        with anyio.CancelScope(shield=True):
            spoken.read = conversation.tokens_read
            await runner.call(conversation.close, priority=GUESS)


async def _bursts(
    dialogue: ClientConversation,
    out: Out,
    spoken: SpokenResponse,
    conversation: Conversation,
    text: str,
) -> AsyncGenerator[TokenBurst, None]:
    """Answer `text`. Yield the bursts, and send their text and the calls. At the end, note how the
    response ends."""
    response, most, said = spoken.response, spoken.response.settings.max_output_tokens, False
    runner, steps = dialogue.engines.llm_runner, conversation.reply(text, 1)
    async with aclosing(runner.stream(steps, priority=GUESS)) as items:
        async for item in items:
            if response.over or spoken.ending:
                return
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
                yield item  # only now: its sound follows the events that begin the message
            if ends:
                return
    limited = await runner.call(lambda: conversation.limited, priority=GUESS)
    spoken.ending = spoken.ending or (TOO_LONG if limited else None if said else NOTHING_SAID)


async def _speak(
    dialogue: ClientConversation,
    out: Out,
    spoken: SpokenResponse,
    bursts: AsyncGenerator[TokenBurst, None],
) -> None:
    """Synthesise the text of `bursts`, and send the audio."""
    tts, voice = dialogue.engines.tts, spoken.response.settings.audio.output.voice
    speed = dialogue.skills.voice.speed
    async with aclosing(clauses(bursts, language(tts.language(voice)))) as cut:
        async for clause in cut:
            assert isinstance(clause, Clause), "there are only bursts"
            steps, resampler = tts.synthesize(clause, voice, speed), Resampler(tts.rate, RATE)
            stream = dialogue.engines.tts_runner.stream(steps, priority=GUESS)
            async with aclosing(stream) as chunks:
                pieces = [resampler.feed(chunk.pcm) async for chunk in chunks]
            for pcm in (*pieces, resampler.flush()):
                for event in spoken.response.audio(spoken.encoder.feed(pcm)):
                    out.put(event)
