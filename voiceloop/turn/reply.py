"""Reply: one attempt to answer a turn, thinking, speaking and playing at once.

A reply may be begun on the guess that the user has finished. Until its gate opens nothing of it
leaves: it is not shown, the player stays silent, tools wait, and no more is thought than the first
clause takes. Whether the guess was right is for others to know.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from voiceloop.dialogue import actions
from voiceloop.trace.record import Mark, Recorder
from voiceloop.turn.gate import Gate
from voiceloop.turn.resources import Resources
from voiceloop.turn.speech import Speech, Voiced
from voiceloop.turn.thinking import Thinking
from voiceloop.types import Event, TokenBurst


class Reply:
    """`run` it once, with what its `thinking` gives."""

    def __init__(
        self, asked: actions.StartReply, recorder: Recorder, resources: Resources, gate: Gate
    ) -> None:
        self.asked = asked
        self.gate = gate
        self.thinking = Thinking(asked, recorder, resources, gate)
        self._withheld: list[Event] = []
        """What is to be shown when the gate opens."""
        self._recorder = recorder
        self._resources = resources

    def begin(self) -> None:
        """Let the player play nothing but this reply from now on, once the gate opens."""
        self._resources.player.begin(self._recorder, lead_s=self._resources.pace.lead_s)

    def shows(self, event: Event) -> list[Event]:
        """What of that is to be shown by now; a guess keeps it."""
        if self.gate.committed:
            return [event]
        self._withheld.append(event)
        return []

    def commit(self) -> list[Event]:
        """Open the gate; what is to be shown now."""
        self.gate.commit()
        self._resources.player.open()
        withheld, self._withheld = self._withheld, []
        return withheld

    async def run(self, bursts: AsyncGenerator[TokenBurst, None], voiced: Voiced) -> bool:
        """Speak to the end; False where the guess was dropped first.

        `voiced` is audio of former attempts at the turn, which is taken where it fits and added
        to. What was not committed leaves nothing behind in the player; else it is left as it is.
        Where the language model fails, what it has said is spoken, then an apology, and then its
        error is raised.
        """
        options, player = self.asked.options, self._resources.player
        speech = Speech(
            self.thinking, options.voice, self._recorder, self._resources, self.gate, voiced
        )
        try:
            with self.gate.scope:
                if not options.spoken:
                    async with aclosing(bursts):
                        async for _ in bursts:
                            pass
                elif self._resources.overlap.stages:
                    await speech.at_once(bursts)
                else:
                    await speech.in_sequence(bursts)
                await self.gate.opened()  # what is written, or says nothing, may be over before
                await player.drain()
                if self.thinking.failure is not None:
                    raise self.thinking.failure
        finally:
            self._account()
        return not self.gate.scope.cancelled_caught

    def _account(self) -> None:
        recorder, thinking = self._recorder, self.thinking
        if self.gate.committed:
            for name, count in thinking.counts.items():
                recorder.count(name, count)
            if thinking.too_long:
                recorder.count("too_long")
            return
        self._resources.player.stop()
        recorder.count("replies_dropped")
        recorder.count("wasted_tokens", thinking.tokens)
        recorder.retract(
            Mark.FIRST_BURST,
            Mark.FIRST_CLAUSE,
            Mark.FIRST_SYNTHESIS,
            Mark.REPLY_END,
            Mark.SYNTHESIS_END,
        )
