"""The commands of `voiceloop conversations`: list, show, export and delete kept conversations.

SQLite and the session are imported only when a command runs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from voiceloop.conversations.names import checked
from voiceloop.errors import VoiceloopError
from voiceloop.settings.flags import POSITIONAL, Command, Commands, written
from voiceloop.terminal import tell

if TYPE_CHECKING:
    from voiceloop.conversations.keeping import KeptConversation
    from voiceloop.conversations.records import KeptOutline
    from voiceloop.conversations.store import ConversationStore


class OfConversations(Command, frozen=True, kw_only=True):
    """A command about kept conversations."""

    uses = ()
    docs = "docs/conversations.md"


class OfConversation(OfConversations, frozen=True, kw_only=True):
    """A command about one kept conversation."""

    name: Annotated[str, POSITIONAL, written("NAME")]
    """Name of the conversation."""


class ConversationsList(OfConversations, frozen=True, kw_only=True):
    """List the conversations that are kept on this machine."""

    examples = ("voiceloop conversations list",)


class ConversationsShow(OfConversation, frozen=True, kw_only=True):
    """Show what was said in a conversation, and what you asked to be remembered."""

    examples = ("voiceloop conversations show work",)


class ConversationsExport(OfConversation, frozen=True, kw_only=True):
    """Write all that is kept of a conversation as JSON."""

    examples = ("voiceloop conversations export work --out work.json",)

    out: Annotated[Path | None, written("F.json")] = None
    """A new file; without it the JSON is printed."""


class ConversationsDelete(OfConversation, frozen=True, kw_only=True):
    """Delete a conversation."""

    examples = ("voiceloop conversations delete work",)


class ConversationsForget(OfConversation, frozen=True, kw_only=True):
    """Forget one thing that you asked to be remembered."""

    examples = ("voiceloop conversations forget work 2",)

    number: Annotated[int, POSITIONAL, written("NUMBER"), Meta(ge=1)]
    """Its number in the list of `voiceloop conversations show`."""


def conversations_list(command: ConversationsList) -> int:
    """Run `voiceloop conversations list`."""
    from voiceloop.conversations.store import location

    outlines: list[KeptOutline] = []
    if location().exists():  # to open a store would make it
        with _store() as store:
            outlines = store.outlines()
    for one in outlines:
        last = f", last on {one.last.astimezone():%Y-%m-%d %H:%M}" if one.last else ""
        facts = f", {one.facts} remembered" if one.facts else ""
        tell(f"{one.name:<24} {one.turns} turn{'s' * (one.turns != 1)}{last}{facts}")
    none = "no conversation is kept; `voiceloop talk --conversation NAME` keeps one"
    tell(f"they are in {location().absolute()}" if outlines else none)
    return 0


def conversations_show(command: ConversationsShow) -> int:
    """Run `voiceloop conversations show`."""
    with _store() as store:
        record = store.record(checked(command.name))
    if record.facts:
        tell("remembered:")
    for fact in record.facts:
        tell(f"{fact.number:>4}  {fact.text}")
    summaries = [one for one in record.summaries if one.text]
    for one in summaries[-1:]:
        tell(f"summary of turns 1 to {one.through}: {one.text}")
    for turn in record.turns:
        tell(f"[{turn.number}] {turn.at.astimezone():%Y-%m-%d %H:%M:%S}")
        if turn.said:
            tell(f"you: {turn.said}")
        for call in turn.calls:
            tell(f"tool: {call.name} -> {call.result}")
        tell(f"     {turn.heard}{' —' * turn.cut}")
    return 0


def conversations_export(command: ConversationsExport) -> int:
    """Run `voiceloop conversations export`."""
    import msgspec

    with _store() as store:
        record = store.record(checked(command.name))
    text = msgspec.json.format(msgspec.json.encode(record), indent=1).decode()
    if command.out is None:
        print(text)
        return 0
    try:
        # Only the owner may read the file, as only the owner may read the store.
        with os.fdopen(
            os.open(command.out, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb"
        ) as file:
            file.write(f"{text}\n".encode())
    except OSError as error:
        raise VoiceloopError(
            f"{command.out} cannot be written: {error.strerror}",
            "name a new file in a folder that you may write to",
        ) from error
    return 0


def conversations_delete(command: ConversationsDelete) -> int:
    """Run `voiceloop conversations delete`."""
    with _store() as store:
        store.delete(checked(command.name))
    tell(f"'{command.name}' is deleted")
    return 0


def conversations_forget(command: ConversationsForget) -> int:
    """Run `voiceloop conversations forget`."""
    with _store() as store:
        fact = store.forget(checked(command.name), command.number)
    tell(f"forgotten: {fact}")
    return 0


@contextmanager
def opened(name: str | None) -> Iterator[KeptConversation | None]:
    """Open the kept conversation `name` while the context lasts, and begin it if it is new.

    Yield None if `name` is None.
    """
    if name is None:
        yield None
        return
    from voiceloop.conversations.keeping import kept
    from voiceloop.conversations.store import location

    with kept(location(), name, _tell) as found:
        yield found


@contextmanager
def _store() -> Iterator[ConversationStore]:
    import sqlite3

    from voiceloop.conversations.store import ConversationStore, location

    path = location()
    try:
        with closing(ConversationStore(path, _tell)) as store:
            yield store
    except (sqlite3.Error, ValueError) as error:
        raise VoiceloopError(
            f"{path} cannot be read: {error}", "try again, or move the file away"
        ) from error


def _tell(text: str) -> None:
    tell(f"voiceloop: {text}", sys.stderr)


COMMANDS: Commands = {
    "conversations list": (ConversationsList, conversations_list),
    "conversations show": (ConversationsShow, conversations_show),
    "conversations export": (ConversationsExport, conversations_export),
    "conversations delete": (ConversationsDelete, conversations_delete),
    "conversations forget": (ConversationsForget, conversations_forget),
}
