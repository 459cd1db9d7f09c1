"""What the language model is told of a conversation that goes on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from voiceloop.conversations.records import KeptTurn
from voiceloop.llm.text.wording import BROKEN_OFF
from voiceloop.skills.known import Fact
from voiceloop.types import Past, ToolCall

MOST_FACT_CHARS = 800
"""Maximum number of characters of all facts in the system prompt; the newest have precedence."""
MOST_SUMMARY_CHARS = 1500
REMEMBER = "The user asked you to remember:"
EARLIER = "Earlier in this conversation:"


def past(turns: Iterable[KeptTurn]) -> list[Past]:
    """Return the exchanges as the language model has them while the conversation lasts.

    A reply has only the part that was heard, and a mark where it broke off. Words without a reply
    that was heard belong to the next exchange; at the end they are left out.
    """
    found, unanswered = list[Past](), list[str]()
    for turn in turns:
        said = " ".join(filter(None, (*unanswered, turn.said)))
        if not turn.kept:
            unanswered = [said]
            continue
        unanswered = []
        calls = [
            (
                ToolCall(turn.number, f"call_{turn.number}_{n}", call.name, call.arguments),
                call.result,
            )
            for n, call in enumerate(turn.calls, 1)
        ]
        reply = f"{turn.kept}{BROKEN_OFF}" if turn.cut else turn.kept
        found.append(Past(said, (*calls, reply)))
    return found


def unanswered_end(turns: Sequence[KeptTurn]) -> bool:
    """Return whether the last turn has words that the next exchange continues."""
    return bool(turns) and not turns[-1].kept


def system_prompt(system: str, facts: Sequence[Fact], summary: str) -> str:
    """Return `system` with what the user asked to be remembered, and with the summary."""
    parts = [system]
    if told := _newest(facts):
        parts.append(f"{REMEMBER} {' '.join(told)}")
    if summary:
        parts.append(f"{EARLIER} {summary[:MOST_SUMMARY_CHARS]}")
    return " ".join(filter(None, parts))


def _newest(facts: Sequence[Fact]) -> list[str]:
    told, left = list[str](), MOST_FACT_CHARS
    for fact in reversed(facts):
        sentence = f"{fact.text.rstrip('.')}."
        left -= len(sentence) + 1
        if left < 0:
            break
        told.insert(0, sentence)
    return told


def transcript(turns: Iterable[KeptTurn]) -> str:
    """Return turns as text, a line for each that speaks."""
    lines = list[str]()
    for turn in turns:
        if turn.said:
            lines.append(f"User: {turn.said}")
        if turn.kept:
            lines.append(f"Assistant: {turn.kept}")
    return "\n".join(lines)
