"""Makes the prompt with which the language model continues a kept conversation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from voiceloop.conversations.records import KeptTurn
from voiceloop.skills.known import Fact
from voiceloop.types import Past, ToolCall

MOST_FACT_CHARS = 800
"""Maximum number of characters of all facts in the system prompt. If the facts are longer, the
oldest ones are left out."""
MOST_SUMMARY_CHARS = 1500
REMEMBER = "The user asked you to remember:"
EARLIER = "Earlier in this conversation:"


def past(turns: Iterable[KeptTurn]) -> list[Past]:
    """Return the exchanges for the language model, in the form that they have in an open
    conversation.

    Of each reply only the part `kept` is there, and of what a rule did only the call. If nothing of
    it is there, the user's words are put before the words of the next turn. At the end of `turns`,
    such words are left out.
    """
    found, unanswered = list[Past](), list[str]()
    for turn in turns:
        said = " ".join(filter(None, (*unanswered, turn.said)))
        if not turn.answered:
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
        found.append(Past(said, tuple(calls) if turn.by_rule else (*calls, turn.kept)))
    return found


def unanswered_end(turns: Sequence[KeptTurn]) -> bool:
    """Return whether nothing of the last turn's reply is kept. The next exchange then begins with
    its words."""
    return bool(turns) and not turns[-1].answered


def system_prompt(system: str, facts: Sequence[Fact], summary: str) -> str:
    """Return `system` with the facts and the summary added. An empty summary is left out."""
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
    """Return the turns as text, with one line for each time that the user or the assistant
    speaks."""
    lines = list[str]()
    for turn in turns:
        if turn.said:
            lines.append(f"User: {turn.said}")
        if turn.kept:
            lines.append(f"Assistant: {turn.kept}")
    return "\n".join(lines)
