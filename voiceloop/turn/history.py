"""What stands before the next turn: the language model goes on from what the user has heard."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import aclosing
from typing import Any

import anyio

from voiceloop.dialogue import actions, inputs
from voiceloop.dialogue.inputs import Reports
from voiceloop.dialogue.state import Returned
from voiceloop.engines import IDLE, LATER, Priority
from voiceloop.errors import VoiceloopError
from voiceloop.turn.reply import Reply
from voiceloop.turn.resources import Resources
from voiceloop.types import Outcome, ToolCall

logger = logging.getLogger(__name__)


class History:
    """The conversation as it was heard, of which each reply is a piece."""

    def __init__(self, resources: Resources) -> None:
        self._next = Priority(LATER)
        """Of the turn that goes on with it, also before that begins."""
        self._runner = resources.engines.llm_runner
        self._conversation, self._observer = resources.conversation, resources.observer
        self._player = resources.player
        self._scope = anyio.CancelScope()
        """Of what is read before the next turn begins."""
        self._read = self._observer.standing.tokens_read
        self._called: Sequence[tuple[ToolCall, str | None]] = ()
        """The calls that the last reply ended with, and the results that there are."""
        self._called_after = 0
        """Tokens of the last reply: where it called somebody else's tool, those before the rest of
        it."""

    async def read(self, asked: actions.ReadOpening) -> Reports:
        """Have the language model read what stands before the next turn, in time that nobody else
        wants; or until `leave`. Where it fails, the next turn will tell why."""
        rewritten: Any = asked.rewrite
        self._scope, self._next, seen = anyio.CancelScope(), Priority(IDLE), None
        try:
            with self._scope:
                if rewritten is not None:
                    await self._runner.call(rewritten, priority=self._next)
                steps = self._observer.steps(self._conversation.prefill("", asked.number))
                async with aclosing(self._runner.stream(steps, priority=self._next)) as chunks:
                    async for _ in chunks:
                        pass
                seen = rewritten
        except VoiceloopError as error:
            logger.warning("turn %d is not prepared: %s", asked.number, error.message)
        except Exception:
            logger.exception("turn %d is not prepared", asked.number)
        yield inputs.OpeningRead(seen)

    def leave(self) -> None:
        """It is another by now: nothing is read on."""
        self._scope.cancel()

    def begin(self) -> Priority:
        """Somebody waits for what is read from now on: return the priority of the next turn."""
        priority, self._next = self._next, Priority(LATER)
        priority.level = LATER
        return priority

    def settle(self, reply: Reply | None, finish: actions.Finish) -> tuple[Outcome, str]:
        """Cut a reply to what was heard of it; how its turn ended, and the words."""
        if reply is None:
            return finish.outcome, ""
        outcome, heard = self._settled(reply, finish)
        self._called_after, self._called = reply.thinking.tokens, reply.thinking.called
        return outcome, heard

    def _settled(self, reply: Reply, finish: actions.Finish) -> tuple[Outcome, str]:
        outcome, goes_on, thinking = finish.outcome, bool(reply.asked.returned), reply.thinking
        done = outcome == "done"
        if thinking.answer is not None and not thinking.answer.text:
            return outcome, ""  # the model was told nothing of it
        if thinking.instead is not None:
            if not (thinking.called or goes_on):
                self._conversation.heard(0)  # the model has said nothing of it
            return ("silent", thinking.instead) if done else (outcome, "")
        if done and not thinking.too_long:
            return outcome, thinking.said.strip()
        whole = reply.gate.committed and (done or not reply.asked.options.spoken)
        tokens = thinking.tokens if whole else self._player.stop().tokens
        if goes_on and tokens:
            tokens += self._called_after
        heard = self._conversation.heard(0 if finish.forgotten else tokens).strip()
        if outcome == "failed":
            heard = f"{heard} {thinking.apology}".strip()
        return outcome, heard

    def completed(self, returned: Sequence[Returned]) -> Sequence[Returned]:
        """What came back for the calls of one reply, with what tools of ours that were called
        beside them have returned already."""
        given = {call.call_id: result for call, result in returned}
        if not given.keys() <= {call.call_id for call, _ in self._called}:
            return tuple(returned)
        whole = [(call, given.get(call.call_id, result)) for call, result in self._called]
        return tuple((call, result) for call, result in whole if result is not None)

    def newly_read(self) -> int:
        """Tokens that the language model has read since this was asked last."""
        before, self._read = self._read, self._observer.standing.tokens_read
        return self._read - before
