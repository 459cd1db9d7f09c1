"""Keeps the history of a conversation: cuts replies to what the user has heard, puts other
histories in place, and has the language model read the history before the next turn.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import anyio

from voiceloop.audio.playback import Heard
from voiceloop.dialogue import actions, inputs
from voiceloop.dialogue.state import Returned
from voiceloop.engines import IDLE, LATER, Priority
from voiceloop.errors import VoiceloopError
from voiceloop.runner import run_through
from voiceloop.turn.reply import Reply
from voiceloop.turn.resources import Resources
from voiceloop.types import Outcome, ToolCall


@dataclass(frozen=True, slots=True)
class SpokenExchange:
    """What the user said in a turn, and the committed reply to it, as far as both are known."""

    turn: int
    """Id of the turn."""
    said: str
    """The user's words; empty if a timer or a greeting was announced."""
    language: str
    """Code of the language that the user speaks."""
    replied: str
    """The reply so far, as it was written."""
    calls: Sequence[tuple[ToolCall, str]]
    """Tool calls of the reply, with their results."""
    words: int
    """Number of spoken words that were heard."""
    heard: str
    """The part of the reply that was heard."""
    kept: str
    """The part of the reply that the language model's history keeps. It lacks text that was heard
    but not written by the model, e.g. an apology."""
    outcome: Outcome | None = None
    """How the turn ended; None while its reply sounds."""


def sounding(reply: Reply, heard: Heard) -> SpokenExchange:
    """Return the exchange of a reply that is still sounding. `heard` is the part heard so far."""
    text = reply.thinking.text_of(heard.tokens)
    return _exchange(reply, len(heard.words), text, text, None)


def finished(reply: Reply, words: int, heard: str, outcome: Outcome) -> SpokenExchange | None:
    """Return the exchange of a reply that is over. `words` is the number of spoken words that were
    heard, and `heard` the part of the reply that was heard.

    Returns None if the reply was never committed, was abandoned, or was meant to be silent.
    """
    thinking = reply.thinking
    silent = thinking.answer is not None and not thinking.answer.text
    if silent or not reply.gate.committed or outcome == "abandoned":
        return None
    kept = "" if thinking.instead is not None or thinking.effect else heard
    if outcome == "failed" and thinking.apology:
        kept = kept.removesuffix(thinking.apology).strip()
    return _exchange(reply, words, heard, kept, outcome)


def _exchange(
    reply: Reply, words: int, heard: str, kept: str, outcome: Outcome | None
) -> SpokenExchange:
    asked, thinking = reply.asked, reply.thinking
    calls = tuple(thinking.results)
    if effect := thinking.effect:
        calls = ((effect, effect.result),)
    return SpokenExchange(
        *(asked.turn, asked.text, asked.language, thinking.said, calls, words, heard, kept),
        outcome=outcome,
    )


logger = logging.getLogger(__name__)


class History:
    """The history of a conversation, in which each reply is cut to what the user heard of it."""

    def __init__(self, resources: Resources) -> None:
        self._next = Priority(LATER)
        """Priority of the next turn, and of the reading before that turn begins."""
        self._runner, self._report = resources.engines.llm_runner, resources.report
        self._conversation = resources.conversation
        self._player = resources.player
        self._scope = anyio.CancelScope()
        """Cancel scope of the reading before the next turn begins."""
        self._rewrites: dict[int, Any] = {}
        """Functions that put other histories in place, by the numbers of these histories."""
        self._numbers = count(1)
        self._read = self._conversation.standing.tokens_read
        self._called: Sequence[tuple[ToolCall, str | None]] = ()
        """Tool calls with which the last reply ended, each with its result or None."""
        self._called_after = 0
        """Number of tokens of the last reply. If the next reply continues it after a tool's
        results, this number is added to the heard tokens of the next reply."""

    def replace(self, rewritten: Any) -> inputs.Rewrite:
        """Keep `rewritten`, a function that puts another history in place. Return the report that
        asks the core for that history."""
        number = next(self._numbers)
        self._rewrites[number] = rewritten
        return inputs.Rewrite(number)

    async def rewrite(self, request: actions.RewriteHistory) -> None:
        """Put the requested history in place, and report it."""
        await self._runner.call(self._rewrites[request.rewrite])
        self._discard(request.rewrite)
        self._report(inputs.Rewritten(request.rewrite))

    def _discard(self, number: int) -> None:
        """Discard the functions for history `number`, which is in place, and for all earlier
        histories."""
        self._rewrites = {other: one for other, one in self._rewrites.items() if other > number}

    async def read(self, request: actions.ReadOpening) -> None:
        """Have the language model read the history before the next turn, until `leave` is called.
        The reading has idle priority until the next turn begins. A failure is only logged, because
        the next turn will report it."""
        self._scope, self._next, seen = anyio.CancelScope(), Priority(IDLE), None
        try:
            with self._scope:
                if request.rewrite is not None:
                    await self._runner.call(self._rewrites[request.rewrite], priority=self._next)
                steps = self._conversation.prefill("", request.number)
                await run_through(self._runner, steps, priority=self._next)
                if request.rewrite is not None:
                    self._discard(request.rewrite)
                seen = request.rewrite
        except VoiceloopError as error:
            logger.warning("turn %d is not prepared: %s", request.number, error.message)
        except Exception:
            logger.exception("turn %d is not prepared", request.number)
        self._report(inputs.OpeningRead(seen))

    def leave(self) -> None:
        """Stop reading, because the history has been replaced."""
        self._scope.cancel()

    def begin(self) -> Priority:
        """Begin the next turn, and return its priority. If the history is still being read, the
        reading gets the same priority, instead of the idle priority."""
        priority, self._next = self._next, Priority(LATER)
        priority.level = LATER
        return priority

    def settle(self, reply: Reply | None, finish: actions.Finish) -> tuple[Outcome, str]:
        """Cut a reply to what was heard of it. Returns how its turn ended, and the words that were
        heard."""
        if reply is None:
            return finish.outcome, ""
        outcome, heard = self._settled(reply, finish)
        self._called_after, self._called = reply.thinking.tokens, reply.thinking.called
        return outcome, heard

    def _settled(self, reply: Reply, finish: actions.Finish) -> tuple[Outcome, str]:
        outcome, goes_on, thinking = finish.outcome, bool(reply.asked.returned), reply.thinking
        done = outcome == "done"
        if thinking.answer is not None and not thinking.answer.text:
            return outcome, ""  # the model knows nothing of this turn
        if thinking.instead is not None:
            if not (thinking.called or goes_on):
                self._conversation.heard(0)  # the spoken text is not the model's
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
        """Return the results `returned` by a client, together with the known results of the other
        tools that the same reply called. All are in the order of the calls."""
        given = {call.call_id: result for call, result in returned}
        if not given.keys() <= {call.call_id for call, _ in self._called}:
            return tuple(returned)
        whole = [(call, given.get(call.call_id, result)) for call, result in self._called]
        return tuple((call, result) for call, result in whole if result is not None)

    def newly_read(self) -> int:
        """Return how many tokens the language model has read since the last call."""
        before, self._read = self._read, self._conversation.standing.tokens_read
        return self._read - before
