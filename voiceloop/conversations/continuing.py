"""Connects a kept conversation to the session that continues it, in one process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio

from voiceloop.config import Config
from voiceloop.conversations.condensing import condense_in_idle_time
from voiceloop.conversations.keeping import KeptConversation
from voiceloop.engines import Engines
from voiceloop.session import Session
from voiceloop.tools.toolbox import NO_TOOLS, Toolbox
from voiceloop.turn.skills import unusable, wall_time


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
