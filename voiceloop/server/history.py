"""What the language model gets to see of a conversation that its client may have rewritten."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from voiceloop.wire.items import (
    InputAudioPart,
    InputText,
    Item,
    Message,
    OutputAudioPart,
    OutputText,
)


def text_of(item: Item) -> str:
    """What an item says."""
    if not isinstance(item, Message):
        return ""
    found: list[str] = []
    for part in item.content:
        match part:
            case InputText() | OutputText():
                found.append(part.text)
            case InputAudioPart() | OutputAudioPart():
                found.append(part.transcript or "")
    return " ".join(text for text in found if text)


def unanswered(items: Sequence[Item]) -> str:
    """What the user has said since the model said something last."""
    said: list[str] = []
    for item in items:
        if isinstance(item, Message) and item.role == "assistant":
            said = []
        elif isinstance(item, Message) and item.role == "user":
            said.append(text_of(item).strip())
    return " ".join(filter(None, said))


def history(
    instructions: str, items: Iterable[Item], waiting: Collection[str]
) -> tuple[str, list[tuple[str, str]]]:
    """The system prompt, and what was said and replied, turn by turn.

    Notes of the system among the items go behind the `instructions`. Messages of the user whose
    ids are `waiting` for a response are no turns yet, and neither is one without a reply.
    """
    notes = [instructions]
    exchanges: list[tuple[str, str]] = []
    said: list[str] = []
    for item in items:
        text = text_of(item)
        match item:
            case Message(role="system"):
                notes.append(text)
            case Message(role="user") if item.id not in waiting:
                said.append(text)
            case Message(role="assistant") if text:
                exchanges.append((" ".join(filter(None, said)), text))
                said = []
            case _:
                pass
    return "\n".join(filter(None, notes)), exchanges
