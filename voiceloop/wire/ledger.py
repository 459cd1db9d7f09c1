"""The items of one conversation in their order, as client and server both see them.

Every change returns the events that tell the client of it. The ledger is bounded: where it is full
the oldest audio goes first, then the oldest items, and the client is told which. What the language
model has in its context is not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from voiceloop.errors import Code, ProtocolError
from voiceloop.wire.client_events import ItemCreate, ItemTruncate
from voiceloop.wire.ids import NewId
from voiceloop.wire.items import (
    FunctionCall,
    FunctionCallOutput,
    Item,
    ItemReference,
    Message,
    OutputAudioPart,
    size,
    without_audio,
)
from voiceloop.wire.session_events import (
    ItemAdded,
    ItemDeleted,
    ItemDone,
    ItemRetrieved,
    ItemTruncated,
)
from voiceloop.wire.sound import RATE

MAX_ITEMS = 2000
MAX_BYTES = 32 * 2**20
"""Holds eleven minutes of speech in PCM16; transcripts stay longer."""
ROOT = "root"
"""The id that stands for the place before the first item."""
PER_MS = RATE // 1000
"""Samples in a millisecond."""

Change = ItemAdded | ItemDone | ItemDeleted


class Ledger:
    """The items of one conversation."""

    def __init__(
        self, new_id: NewId, *, max_items: int = MAX_ITEMS, max_bytes: int = MAX_BYTES
    ) -> None:
        self._new_id = new_id
        self._max_items = max_items
        self._max_bytes = max_bytes
        self._order: list[str] = []
        self._items: dict[str, Item] = {}
        self._samples: dict[str, int] = {}
        """How long the audio of the model's messages is, by their ids."""
        self._bytes = 0

    @property
    def items(self) -> list[Item]:
        """All items, in their order."""
        return [self._items[item_id] for item_id in self._order]

    @property
    def last_id(self) -> str | None:
        """The id of the last item, if there is one."""
        return self._order[-1] if self._order else None

    def create(self, event: ItemCreate) -> list[Change]:
        """Add an item of the client's. Raises ProtocolError where that is not possible."""
        item = self._creatable(event.item)
        previous = event.previous_item_id
        if previous is None:
            position = len(self._order)
        elif previous == ROOT:
            position = 0
        else:
            where, code = "previous_item_id", "item_create_invalid_previous_item_id"
            position = self._order.index(self._found(previous, where, code).id) + 1
        deleted = self._insert(position, item)
        told = without_audio(item)
        before = self._before(item.id)
        return [*deleted, ItemAdded(before, told), ItemDone(before, told)]

    def begin(self, item: Item) -> list[Change]:
        """Add an item of the server's at the end; `finish` follows where it is `in_progress`."""
        deleted = self._insert(len(self._order), item)
        return [*deleted, ItemAdded(self._before(item.id), without_audio(item))]

    def finish(self, item: Item, samples: int = 0) -> list[Change]:
        """An item that was begun is whole, or as whole as it gets; nothing where it has gone.

        `samples` is how long it sounds, at 24 kHz.
        """
        if item.id not in self._items:
            return []
        self._samples[item.id] = samples
        deleted = self.replace(item)
        return [*deleted, ItemDone(self._before(item.id), without_audio(item))]

    def replace(self, item: Item) -> list[Change]:
        """More is known of an item than when it was told: the words in the user's audio.

        Nothing happens where it has gone meanwhile.
        """
        if item.id not in self._items:
            return []
        self._bytes += size(item) - size(self._items[item.id])
        self._items[item.id] = item
        return self._make_room(item.id)

    def retrieve(self, item_id: str) -> ItemRetrieved:
        """Tell an item with its audio. Raises ProtocolError where there is no such item."""
        return ItemRetrieved(self._found(item_id, "item_id", "item_retrieve_invalid_item_id"))

    def quoted(self, given: Sequence[Item | ItemReference], param: str) -> list[Item]:
        """The items that are `given`, or referred to; ProtocolError, which names one within
        `param`, where there is none of that id."""
        code: Code = "item_retrieve_invalid_item_id"
        return [
            self._found(item.id, f"{param}[{at}].id", code)
            if isinstance(item, ItemReference)
            else item
            for at, item in enumerate(given)
        ]

    def delete(self, item_id: str) -> ItemDeleted:
        """Remove an item. Raises ProtocolError where there is none, or it is in progress."""
        item = self._found(item_id, "item_id", "item_delete_invalid_item_id")
        self._refuse_in_progress(item)
        return self._remove(item_id)

    def truncate(
        self, event: ItemTruncate, said: Callable[[int], str] = lambda samples: ""
    ) -> ItemTruncated:
        """Cut a message of the model off at what was heard of it.

        `said` gives the words in the first so many samples, at 24 kHz; without it none are kept.
        A point past the end is the end. Raises ProtocolError for what has no such audio.
        """
        code: Code = "item_truncate_invalid_item_id"
        item = self._found(event.item_id, "item_id", code)
        self._refuse_in_progress(item)
        if not (isinstance(item, Message) and item.role == "assistant"):
            raise ProtocolError(
                f"item_id {item.id} is no message of the model",
                "only what the model said can be truncated",
                code=code,
                param="item_id",
            )
        index = event.content_index
        part = item.content[index] if index < len(item.content) else None
        if not isinstance(part, OutputAudioPart):
            raise ProtocolError(
                f"content_index {index} is no audio of {item.id}",
                "content_index is 0 for what the model said",
                param="content_index",
            )
        samples = self._samples.get(item.id, 0)
        end = min(event.audio_end_ms * PER_MS, samples)
        # Clients count whole milliseconds: less than one from the end is the end.
        if samples - end >= PER_MS:
            cut = replace(part, transcript=said(end))
            self._samples[item.id] = end
            content = (*item.content[:index], cut, *item.content[index + 1 :])
            self.replace(replace(item, content=content))
        return ItemTruncated(item.id, index, end // PER_MS)

    def told_again(self) -> list[Change]:
        """All items as events, for a client that has lost its connection."""
        events: list[Change] = []
        previous = None
        for item in map(without_audio, self.items):
            events.append(ItemAdded(previous, item))
            if item.status != "in_progress":
                events.append(ItemDone(previous, item))
            previous = item.id
        return events

    def _creatable(self, item: Item) -> Item:
        """`item` with all its ids; ProtocolError where a client cannot create it."""
        if item.id in self._items or item.id == ROOT:
            raise ProtocolError(
                f"item.id {item.id} is taken",
                "choose another, or leave it to the server",
                code="item_create_duplicate_item_id",
                param="item.id",
            )
        item = replace(item, id=item.id or self._new_id("item"), status="completed")
        if isinstance(item, FunctionCall):
            item = replace(item, call_id=item.call_id or self._new_id("call"))
        elif isinstance(item, FunctionCallOutput):
            self._refuse_unknown_call(item.call_id)
        elif not item.content:
            raise ProtocolError(
                "item.content is empty", "give at least one part", param="item.content"
            )
        elif any(isinstance(part, OutputAudioPart) for part in item.content):
            raise ProtocolError(
                "item.content has audio of the model, which no client can create",
                "send the words as `output_text`",
                param="item.content",
            )
        if size(item) > self._max_bytes:
            raise ProtocolError("item is larger than a conversation may be", param="item")
        return item

    def _refuse_unknown_call(self, call_id: str) -> None:
        calls = {item.call_id for item in self.items if isinstance(item, FunctionCall)}
        if call_id not in calls:
            raise ProtocolError(
                "item.call_id is that of no call in the conversation",
                "use the call_id of response.function_call_arguments.done",
                param="item.call_id",
            )

    def _refuse_in_progress(self, item: Item) -> None:
        if item.status == "in_progress":
            raise ProtocolError(
                f"item_id {item.id} is in progress",
                "send response.cancel first, or wait for conversation.item.done",
                code="item_in_progress",
                param="item_id",
            )

    def _found(self, item_id: str, param: str, code: Code) -> Item:
        item = self._items.get(item_id)
        if item is None:
            raise ProtocolError(
                f"{param} is that of no item in the conversation",
                "conversation.item.added and .deleted tell which there are",
                code=code,
                param=param,
            )
        return item

    def _before(self, item_id: str) -> str | None:
        position = self._order.index(item_id)
        return self._order[position - 1] if position else None

    def _insert(self, position: int, item: Item) -> list[Change]:
        self._order.insert(position, item.id)
        self._items[item.id] = item
        self._bytes += size(item)
        return self._make_room(item.id)

    def _remove(self, item_id: str) -> ItemDeleted:
        self._order.remove(item_id)
        self._bytes -= size(self._items.pop(item_id))
        self._samples.pop(item_id, None)
        return ItemDeleted(item_id)

    def _make_room(self, kept: str) -> list[Change]:
        """Forget the oldest until the bounds hold, but neither `kept` nor what is in progress."""
        old = [item for item in self.items if item.id != kept and item.status != "in_progress"]
        for item in old:
            if self._bytes <= self._max_bytes:
                break
            silent = without_audio(item)
            self._bytes += size(silent) - size(item)
            self._items[item.id] = silent
        deleted: list[Change] = []
        for item in old:
            if self._bytes <= self._max_bytes and len(self._order) <= self._max_items:
                break
            deleted.append(self._remove(item.id))
        return deleted
