"""The log of one client's turns: what was said, what was answered, and how each turn ended."""

from __future__ import annotations

import logging
from collections.abc import Callable

from voiceloop.trace.record import voice_to_voice_ms
from voiceloop.types import Clause, Event, TokenBurst, Transcript, TurnTrace
from voiceloop.view.transcript import Exchanges, TurnText

logger = logging.getLogger(__name__)


class TurnLog:
    """The turn log of one client session. It passes events on, and logs each turn that ends unless
    the turn had nothing to answer."""

    def __init__(
        self,
        show: Callable[[Event], None],
        report: Callable[[TurnTrace, TurnText], None] = lambda trace, text: None,
    ) -> None:
        """`show` is called with every event, before anything is logged about it. `report` is called
        with each turn that has ended."""
        self._show = show
        self._report = report
        self._exchanges = Exchanges()

    def show(self, event: Event) -> None:
        """Pass the next event on, and log the turn that it ends, if any."""
        self._show(event)
        match event:
            case Transcript() | TokenBurst() | Clause():
                self._exchanges.follow(event)
            case TurnTrace():
                self._end(event)
            case _:
                pass

    def _end(self, trace: TurnTrace) -> None:
        exchange = self._exchanges.end(trace.turn)
        self._report(trace, exchange)
        if trace.outcome != "abandoned":  # there was nothing to answer
            fields = {
                "turn": trace.turn,
                "outcome": trace.outcome,
                "transcript": exchange.said,
                "reply": exchange.reply.strip(),
                "heard": trace.heard,
                "voice_to_voice_ms": voice_to_voice_ms(trace),
            }
            logger.info("a turn is over", extra=fields)
