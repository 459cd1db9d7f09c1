"""Condenses a long conversation in idle time: the language model summarises its oldest turns.

Whole turns leave the prompt, the oldest first, and their summary stays. Models that are too small
to summarise drop them instead. Each step begins only while nobody speaks and all models have been
quiet, so a user who begins to speak waits for one step at most.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import aclosing
from datetime import datetime

import anyio

from voiceloop.calibration.idle import QUIET_S, quiet
from voiceloop.config import Config
from voiceloop.conversations.keeping import KeptConversation
from voiceloop.conversations.prompt import MOST_SUMMARY_CHARS, transcript
from voiceloop.conversations.records import KeptTurn
from voiceloop.engines import IN_IDLE_TIME, Conversation, Engines
from voiceloop.errors import VoiceloopError
from voiceloop.session import Session
from voiceloop.types import TokenBurst

logger = logging.getLogger(__name__)

MOST_SHARE = 0.45
"""If the history takes more than this share of the room for prompts, it is condensed. Beyond two
thirds of that room, the model itself leaves out the oldest turns."""
LEFT_SHARE = 0.2
"""Share of that room that the history takes afterwards."""
USUAL_ROOM = 3000
"""Room in tokens if the engine does not know its own."""
LEAST_TURNS = 2
"""Number of newest turns that are never condensed."""
SUMMARISE = (
    "You summarise conversations. Write at most 80 words, in the language of the conversation. "
    "Keep names, numbers, dates, wishes and decisions."
)
ASK = "Summarise this conversation between a user and an assistant.\n\n"


async def condense_in_idle_time(
    kept: KeptConversation, session: Session, engines: Engines, config: Config, at: datetime
) -> None:
    """Condense the conversation whenever it has grown too long, until cancelled. It was opened at
    the time `at`."""
    llm, conversation = engines.llm, session.conversation
    while True:
        changed = kept.changed
        await _idle(engines, session)
        if old := _old_turns(kept, conversation):
            text = await _summary(kept, old, session, engines, config)
            await _idle(engines, session)
            kept.condensed(old[-1].number, text)
        if kept.refreshes():
            # Called on the model's thread once it has no other work, with the turns of then.
            session.rewrite(lambda: conversation.rewrite(*kept.prompt(llm, config, at)))
        await changed.wait()


def _old_turns(kept: KeptConversation, conversation: Conversation) -> Sequence[KeptTurn]:
    """Return the turns to condense now, oldest first."""
    turns = list(kept.turns)
    room = (conversation.opening("", ()) or (0, USUAL_ROOM))[1]
    sizes = [_tokens(transcript([turn]), conversation) for turn in turns]
    whole, count = sum(sizes), 0
    if whole <= MOST_SHARE * room or kept.carries_on:
        return ()
    while whole > LEFT_SHARE * room and count < len(turns) - LEAST_TURNS:
        whole -= sizes[count]
        count += 1
    return turns[:count]


def _tokens(text: str, conversation: Conversation) -> int:
    """Return about how many tokens a text takes."""
    found = conversation.opening(text, ())
    return found[0] if found else len(text) // 3


async def _summary(
    kept: KeptConversation,
    turns: Sequence[KeptTurn],
    session: Session,
    engines: Engines,
    config: Config,
) -> str:
    """Return a summary of the former summary and of `turns`. It is empty if the model cannot make
    one."""
    llm = config.llm
    if llm.answers_little or llm.often_wrong:
        return ""
    before = f"{kept.summary.text}\n" if kept.summary and kept.summary.text else ""
    try:
        return await _summarised(f"{ASK}{before}{transcript(turns)}", session, engines)
    except VoiceloopError as error:
        logger.warning("old turns are dropped without a summary: %s", error.message)
        return ""


async def _summarised(request: str, session: Session, engines: Engines) -> str:
    conversation, text = engines.llm.conversation(system=SUMMARISE), ""
    try:
        steps = engines.llm_runner.stream(conversation.reply(request, 1), priority=IN_IDLE_TIME)
        async with aclosing(steps) as items:
            while True:
                await _idle(engines, session)
                begun = anyio.current_time()
                item = await anext(items, None)
                session.note_work("summary", begun, anyio.current_time())
                if item is None or len(text) > MOST_SUMMARY_CHARS:
                    return " ".join(text.split())
                text += item.text if isinstance(item, TokenBurst) else ""
    finally:
        with anyio.CancelScope(shield=True):
            await engines.llm_runner.call(conversation.close, priority=IN_IDLE_TIME)


async def _idle(engines: Engines, session: Session) -> None:
    """Wait until nobody speaks, nothing sounds and all models have been quiet for a while."""
    while True:
        await quiet(engines)
        if session.idle:
            return
        # No event tells that the session is idle and the models were quiet for long.
        await anyio.sleep(QUIET_S / 10)
