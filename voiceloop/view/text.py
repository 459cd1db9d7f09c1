"""The texts of turns that are not over yet, by the events of a session."""

from __future__ import annotations

from dataclasses import dataclass

from voiceloop.types import Clause, TokenBurst, ToolCall, Transcript


@dataclass(slots=True)
class TurnText:
    """Text of a turn so far."""

    transcript: Transcript | None = None
    reply: str = ""
    sounding: int = 0
    """Number of words of the reply that have sounded or are about to."""

    @property
    def said(self) -> str:
        """The user's words."""
        return self.transcript.text if self.transcript else ""


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


def split_after(text: str, words: int) -> tuple[str, str]:
    """Split `text` after its first `words` words."""
    parts = text.split()
    return " ".join(parts[:words]), " ".join(parts[words:])


def call_text(call: ToolCall) -> str:
    """Return a tool call as text, in the notation of a function call."""
    return f"{call.name}({', '.join(f'{key}={value!r}' for key, value in call.arguments.items())})"
