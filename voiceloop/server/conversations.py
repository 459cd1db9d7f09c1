"""The kept conversations that a server offers to clients on its machine.

Whoever opens a conversation has its lease until it is closed. All that touches the file runs on
worker threads. This module does not know which clients are on this machine.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path

import anyio
import anyio.to_thread
import msgspec

from voiceloop.conversations.keeping import KeptConversation, claimed
from voiceloop.conversations.records import KeptOutline
from voiceloop.conversations.store import ConversationStore
from voiceloop.conversations.writer import ConversationWriter
from voiceloop.errors import VoiceloopError

logger = logging.getLogger(__name__)

MOST_OFFERED = 50
"""Maximum number of names of conversations that are sent to a client."""


class OpenedConversation:
    """A kept conversation that a session of this server has open."""

    def __init__(self, name: str, kept: KeptConversation, writer: ConversationWriter) -> None:
        self.name = name
        self.kept = kept
        self.over = anyio.Event()
        """Set when the conversation can be opened again."""
        self._writer = writer

    async def close(self) -> None:
        """Write all changes that are not in the store yet, and give the lease back."""
        try:
            await anyio.to_thread.run_sync(self._writer.close)
        finally:
            self.over.set()


class OfferedConversations:
    """The store of conversations, as one server offers it."""

    def __init__(self, path: Path) -> None:
        """Offer the conversations in the file `path`, which need not exist yet."""
        self._path = path
        self._untold = list[str]()

    async def names(self) -> tuple[str, ...]:
        """Return the names of the latest conversations, the latest first. Return no names if the
        store cannot be used: `open` then says why."""
        try:
            return await anyio.to_thread.run_sync(self._names)
        except (VoiceloopError, sqlite3.Error, msgspec.MsgspecError) as error:
            logger.warning("conversations cannot be listed", extra={"why": str(error)})
            return ()

    async def open(self, name: str) -> OpenedConversation:
        """Open the conversation `name`, or begin it if there is none of that name. Raises
        VoiceloopError if another process has it open, or if the store cannot be used."""
        found = await anyio.to_thread.run_sync(claimed, self._path, name, self._tell)
        return OpenedConversation(name, *found)

    def news(self) -> Sequence[str]:
        """Return and forget the messages for the user about damage of the store."""
        news, self._untold = self._untold, []
        return news

    def _names(self) -> tuple[str, ...]:
        if not self._path.exists():
            return ()
        with closing(ConversationStore(self._path, self._tell)) as store:
            latest = sorted(store.outlines(), key=_last, reverse=True)
        return tuple(outline.name for outline in latest[:MOST_OFFERED])

    def _tell(self, text: str) -> None:
        logger.warning("the store of conversations was damaged", extra={"why": text})
        self._untold.append(text)


def _last(outline: KeptOutline) -> datetime:
    return outline.last or outline.began
