"""Condenses a long conversation in idle time: the language model summarises the oldest turns.

Whole turns leave the prompt, the oldest first, and a summary takes their place. If the model is too
small to summarise, the turns are dropped. A step begins only after nobody has spoken and all models
have been quiet for a while. So a user who begins to speak waits for one step at most. `Continuing`
connects a kept conversation to the session that continues it, in one process.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import aclosing
from datetime import datetime
from typing import Any

import anyio

from voiceloop.calibration.idle import QUIET_S, quiet
from voiceloop.conversations.keeping import KeptConversation
from voiceloop.conversations.records import MOST_SUMMARY_CHARS, KeptTurn, transcript
from voiceloop.engines import IN_IDLE_TIME, Conversation, Engines
from voiceloop.errors import VoiceloopError
from voiceloop.session import Session
from voiceloop.settings.config import Config
from voiceloop.tools.toolbox import NO_TOOLS, Toolbox
from voiceloop.turn.skills import unusable, wall_time
from voiceloop.types import TokenBurst

logger = logging.getLogger(__name__)

MOST_SHARE = 0.45
"""The history is condensed if it takes more than this share of the room for prompts. Above two
thirds of the room, the model itself leaves out the oldest turns."""
LEFT_SHARE = 0.2
"""Maximum share of the room for prompts that the history takes after it was condensed."""
USUAL_ROOM = 3000
"""The room for prompts, in tokens, if the engine does not know it."""
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
    """Condense the conversation each time it has grown too long. Runs until cancelled. `at` is the
    time at which the conversation was opened."""
    llm, conversation = engines.llm, session.conversation
    while True:
        changed = kept.changed
        await _idle(engines, session)
        if old := _old_turns(kept, conversation):
            text = await _summary(kept, old, session, engines, config)
            await _idle(engines, session)
            kept.condensed(old[-1].number, text)
        if kept.refreshes():
            # Called later, when the model's thread is free; it takes the turns of that moment.
            session.rewrite(lambda: conversation.rewrite(*kept.prompt(llm, config, at)))
        await changed.wait()


def _old_turns(kept: KeptConversation, conversation: Conversation) -> Sequence[KeptTurn]:
    """Return the turns to condense now, oldest first; none if the history is short enough, or if
    the user's last words have no reply yet."""
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
    """Estimate the number of tokens of `text`. It is counted as a system prompt; if the engine
    cannot count, it is a third of the characters."""
    found = conversation.opening(text, ())
    return found[0] if found else len(text) // 3


async def _summary(
    kept: KeptConversation,
    turns: Sequence[KeptTurn],
    session: Session,
    engines: Engines,
    config: Config,
) -> str:
    """Return a new summary of the previous summary and of `turns`; an empty string if the model
    cannot make one."""
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
    """Wait until no turn is open and all models have been quiet for a while."""
    while True:
        await quiet(engines)
        if session.idle:
            return
        # No event says that the session is idle and the models have been quiet for a while.
        await anyio.sleep(QUIET_S / 10)


class Continuing:
    """Continues a kept conversation in a session."""

    def __init__(
        self,
        kept: KeptConversation,
        engines: Engines,
        config: Config,
        notice: Callable[[str], None],
        toolbox: Toolbox = NO_TOOLS,
    ) -> None:
        """`notice` shows a message about a problem to the user. The language model may call the
        tools in `toolbox`."""
        self._kept, self._engines, self._config, self._notice = kept, engines, config, notice
        self._at = wall_time(config.timezone)
        self._skills = kept.skills(engines)
        self._conversation = kept.conversation(engines.llm, config, self._at, toolbox)
        if reason := unusable(self._conversation, config, toolbox):
            notice(reason)

    def options(self, *, greets: bool = True) -> dict[str, Any]:
        """Return the keyword arguments for the `Session`. With `greets`, the session begins with a
        greeting if the conversation has earlier turns."""
        return {
            "conversation": self._conversation,
            "skills": self._skills,
            "greeting": self._kept.greeting(self._engines) if greets else "",
            "kept": self._kept.note,
        }

    async def keep(self, session: Session) -> None:
        """Write down what is said and heard, and condense the history when it is long. Runs until
        cancelled."""
        kept = self._kept
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(kept.follow, session, self._notice)
            tasks.start_soon(
                condense_in_idle_time, kept, session, self._engines, self._config, self._at
            )

    async def aclose(self) -> None:
        """Free the language model's caches of this conversation."""
        await self._engines.llm_runner.call(self._conversation.close)
