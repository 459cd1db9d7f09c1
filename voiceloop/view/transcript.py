"""The transcript of a conversation: entries that are final once they are made."""

from __future__ import annotations

from dataclasses import dataclass

from voiceloop.trace.record import Mark, latency_entry
from voiceloop.types import (
    FILTERED,
    Clause,
    Event,
    Notice,
    TokenBurst,
    ToolCall,
    Transcript,
    TurnTrace,
)
from voiceloop.view.text import Exchanges, TurnText, call_text, split_after


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of the transcript."""

    label: str
    """The speaker (`you`, `loop`), the kind of entry (`note`, `call`), or a latency (`143 ms`)."""
    text: str = ""
    unheard: str = ""
    """Words of a reply that were not heard. They follow those of `text`."""
    ending: str = ""
    """How a reply ended; empty if it ended by itself."""
    brief: bool = False
    """Whether a terminal shows the entry on one line and cuts it off."""


class TranscriptWriter:
    """A writer that makes entries of a transcript from the events of a session.

    The user's words become an entry when the reply begins. The reply becomes an entry when the turn
    is over.
    """

    def __init__(self, *, timed: bool = True) -> None:
        self.exchanges = Exchanges()
        self.timed = timed
        """Whether latencies become entries."""
        self._introduced = 0
        """Number of the newest turn with an entry of the user's words."""

    def follow(self, event: Event) -> list[Entry]:
        """Return the entries that the next event completes."""
        match event:
            case Notice():
                return [Entry("note", event.text)]
            case ToolCall(result=""):
                exchange = self.exchanges.live.get(event.turn, TurnText())
                return [*self._introduction(event.turn, exchange), Entry("call", call_text(event))]
            case TurnTrace():
                return self._end(event, self.exchanges.end(event.turn))
            case TokenBurst():
                return self._introduction(event.turn, self.exchanges.follow(event))
            case Transcript() | Clause():
                self.exchanges.follow(event)
            case _:
                pass
        return []

    def _introduction(self, turn: int, exchange: TurnText) -> list[Entry]:
        if turn <= self._introduced or not exchange.said:
            return []
        self._introduced = turn
        return [Entry("you", exchange.said)]

    def _end(self, trace: TurnTrace, exchange: TurnText) -> list[Entry]:
        entries = self._introduction(trace.turn, exchange)
        if exchange.reply.strip() or trace.outcome == "silent":
            heard, unheard = split_after(exchange.reply, _words_heard(trace, exchange))
            entries.append(Entry("loop", heard, unheard, _ending(trace, unheard)))
        if self.timed and (latency := latency_entry(trace)):
            entries.append(Entry(*latency, brief=True))
        return entries


def _ending(trace: TurnTrace, unheard: str) -> str:
    if trace.outcome == "interrupted" and not unheard and Mark.REPLY_END in trace.marks:
        return ""  # the reply was complete, and all of it was heard
    if trace.outcome != "done":
        return trace.outcome
    if trace.counters.get(FILTERED):
        return "cut by the server's filter"
    return "cut at its most tokens" if trace.counters.get("too_long") else ""


def _words_heard(trace: TurnTrace, exchange: TurnText) -> int:
    """Return how many words of the written reply were heard. If the reply was played to its end,
    this is the number of its words: the spoken text may have more or fewer words."""
    if trace.outcome in ("done", "silent"):
        return len(exchange.reply.split())
    return len(trace.heard.split())
