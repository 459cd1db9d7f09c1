"""Collects the texts of turns from the events of a session."""

from __future__ import annotations

from dataclasses import dataclass

from voiceloop.trace.record import endpoint_to_sound_ms, voice_to_voice_ms
from voiceloop.types import Clause, Outcome, TokenBurst, ToolCall, Transcript, TurnTrace


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
