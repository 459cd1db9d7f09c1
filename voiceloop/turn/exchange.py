"""An exchange of a session: what the user said, the reply, and how much of it was heard."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from voiceloop.audio.playback import Heard
from voiceloop.turn.reply import Reply
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
