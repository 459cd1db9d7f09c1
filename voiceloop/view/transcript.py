"""Write the transcript of a conversation: collect the texts of turns from the events of a session,
and make entries of them that are final, and a summary at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from voiceloop.trace.record import (
    Mark,
    endpoint_to_sound_ms,
    latency_entry,
    percentiles,
    voice_to_voice_ms,
)
from voiceloop.types import (
    FILTERED,
    Clause,
    Event,
    Notice,
    Outcome,
    TokenBurst,
    ToolCall,
    Transcript,
    TurnTrace,
)


@dataclass(slots=True)
class TurnText:
    """The user's words and the reply of a turn so far."""

    transcript: Transcript | None = None
    reply: str = ""
    sounding: int = 0
    """Number of words of the reply that have sounded or are about to."""

    @property
    def said(self) -> str:
        """The user's words."""
        return self.transcript.text if self.transcript else ""


@dataclass(frozen=True, slots=True)
class TurnOver:
    """An event: a turn is over."""

    turn: int
    said: str
    """The user's words; empty for a turn without words of the user."""
    reply: str
    """The whole reply, as the language model wrote it."""
    heard: str
    """The part of the reply that was heard, as it was spoken."""
    outcome: Outcome
    trace: TurnTrace
    """The trace of the turn."""

    @property
    def voice_to_voice_ms(self) -> float | None:
        """Return the ms from the user's last voiced sample to the first audible one of the reply;
        None if one of them is missing."""
        return voice_to_voice_ms(self.trace)

    @property
    def endpoint_to_sound_ms(self) -> float | None:
        """Return the ms from the endpoint to the first audible sample of the reply; None if one of
        them is missing."""
        return endpoint_to_sound_ms(self.trace)


class Exchanges:
    """The turns that are not over yet, each with its text."""

    def __init__(self) -> None:
        self.live: dict[int, TurnText] = {}

    def follow(self, event: Transcript | TokenBurst | Clause) -> TurnText:
        """Add an event to its turn, and return the text of that turn."""
        exchange = self.live.setdefault(event.turn, TurnText())
        match event:
            case Transcript():
                exchange.transcript = event
            case TokenBurst():
                exchange.reply += event.text
            case Clause():
                exchange.sounding += len(event.text.split())
        return exchange

    def end(self, turn: int) -> TurnText:
        """Forget a turn, and return its text."""
        return self.live.pop(turn, TurnText())

    def over(self, trace: TurnTrace) -> TurnOver:
        """Forget the turn of `trace`. Return the event that reports its end."""
        text = self.end(trace.turn)
        reply = text.reply.strip()
        return TurnOver(trace.turn, text.said, reply, trace.heard, trace.outcome, trace)


def split_after(text: str, words: int) -> tuple[str, str]:
    """Split `text` after its first `words` words."""
    parts = text.split()
    return " ".join(parts[:words]), " ".join(parts[words:])


def call_text(call: ToolCall) -> str:
    """Return a tool call as text, in the notation of a function call."""
    return f"{call.name}({', '.join(f'{key}={value!r}' for key, value in call.arguments.items())})"


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


def summary(traces: Sequence[TurnTrace], seconds: float) -> list[str]:
    """Return the lines of a summary of a conversation that lasted `seconds`. Abandoned turns do not
    count. Without other turns there are no lines."""
    turns = [trace for trace in traces if trace.outcome != "abandoned"]
    if not turns:
        return []
    interrupted = sum(trace.outcome == "interrupted" for trace in turns)
    lines = [
        f"{_count(len(turns), 'turn')} in {seconds / 60:.1f} minutes, "
        f"{_count(interrupted, 'interruption')}"
    ]
    latencies = [ms for trace in turns if (ms := voice_to_voice_ms(trace)) is not None]
    if latencies:
        found = percentiles(latencies, (50, 90))
        lines.append(f"voice to voice: median {found['p50']:.0f} ms, p90 {found['p90']:.0f} ms")
    if drafted := sum(trace.counters.get("drafted", 0) for trace in turns):
        accepted = sum(trace.counters.get("accepted", 0) for trace in turns)
        lines.append(f"draft tokens accepted: {accepted / drafted:.0%}")
    return lines


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"
