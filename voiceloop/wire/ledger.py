"""The ledger: the items of one conversation in their order, as client and server both see them.

Every change returns the events that report it to the client. The size is bounded: a full ledger
drops its oldest audio first, then its oldest items, with an event for each item. The ledger does
not know what the language model has in its context.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from voiceloop.errors import Code, ProtocolError
from voiceloop.wire.client_events import ItemCreate, ItemTruncate
from voiceloop.wire.items import (
    RATE,
    FunctionCall,
    FunctionCallOutput,
    Item,
    ItemReference,
    Message,
    NewId,
    OutputAudioPart,
    size,
    without_audio,
)
from voiceloop.wire.server_events import (
    ItemAdded,
    ItemDeleted,
    ItemDone,
    ItemRetrieved,
    ItemTruncated,
)

MAX_ITEMS = 2000
"""Maximum number of items, unless the caller sets another maximum."""
MAX_BYTES = 32 * 2**20
"""Maximum memory of all items in bytes, unless the caller sets another maximum. It is enough for
eleven minutes of speech in PCM16. Transcripts stay longer than audio, which is dropped first."""
ROOT = "root"
"""The `previous_item_id` that means the beginning of the conversation. No item may have this id."""
PER_MS = RATE // 1000
"""Samples per millisecond at 24 kHz."""

Change = ItemAdded | ItemDone | ItemDeleted


class LedgerState(Struct, frozen=True):
    """The items of a conversation for another ledger, without audio."""

    items: tuple[Item, ...]
    samples: dict[str, int]
    """Length of the audio of the model's messages, in samples at 24 kHz, by item id."""


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
        """Length of the audio of the model's messages, in samples at 24 kHz, by item id."""
        self._bytes = 0

    @property
    def items(self) -> list[Item]:
        """All items, in their order."""
        return [self._items[item_id] for item_id in self._order]

    @property
    def last_id(self) -> str | None:
        """The id of the last item; None if there is none."""
        return self._order[-1] if self._order else None

    def create(self, event: ItemCreate) -> list[Change]:
        """Add an item that the client gives. Raises ProtocolError if that is not possible."""
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
        sent = without_audio(item)
        before = self._before(item.id)
        return [*deleted, ItemAdded(before, sent), ItemDone(before, sent)]

    def begin(self, item: Item) -> list[Change]:
        """Add an item that the server makes, at the end. If its status is `in_progress`, `finish`
        must follow."""
        deleted = self._insert(len(self._order), item)
        return [*deleted, ItemAdded(self._before(item.id), without_audio(item))]

    def finish(self, item: Item, samples: int = 0) -> list[Change]:
        """Replace an item that was begun by its final form. Do nothing if it was deleted.

        `samples` is the length of its audio, in samples at 24 kHz.
        """
        if item.id not in self._items:
            return []
        self._samples[item.id] = samples
        deleted = self.replace(item)
        return [*deleted, ItemDone(self._before(item.id), without_audio(item))]

    def replace(self, item: Item) -> list[Change]:
        """Replace an item by one with more content, such as the transcript of its audio.

        Do nothing if the item was deleted.
        """
        if item.id not in self._items:
            return []
        self._bytes += size(item) - size(self._items[item.id])
        self._items[item.id] = item
        return self._make_room(item.id)

    def retrieve(self, item_id: str) -> ItemRetrieved:
        """Return the event with an item and its audio. Raises ProtocolError for an unknown id."""
        return ItemRetrieved(self._found(item_id, "item_id", "item_retrieve_invalid_item_id"))

    def quoted(self, given: Sequence[Item | ItemReference], param: str) -> list[Item]:
        """Return the `given` items, with references replaced by the items that they name.

        Raises ProtocolError for an unknown id; `param` is the name of the list in that error.
        """
        code: Code = "item_retrieve_invalid_item_id"
        return [
            self._found(item.id, f"{param}[{at}].id", code)
            if isinstance(item, ItemReference)
            else item
            for at, item in enumerate(given)
        ]

    def delete(self, item_id: str) -> ItemDeleted:
        """Remove an item. Raises ProtocolError if it is unknown or in progress."""
        item = self._found(item_id, "item_id", "item_delete_invalid_item_id")
        self._refuse_in_progress(item)
        return self._remove(item_id)

    def truncate(
        self, event: ItemTruncate, said: Callable[[int], str] = lambda samples: ""
    ) -> ItemTruncated:
        """Cut a message of the model off at the point up to which it was heard.

        `said(n)` returns the text of the first `n` samples of the message, at 24 kHz. By default no
        text is kept. A point past the end counts as the end. Raises ProtocolError if the item is
        unknown, is in progress, or has no audio of the model.
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
        # Clients send whole milliseconds, so less than 1 ms before the end counts as the end.
        if samples - end >= PER_MS:
            cut = replace(part, transcript=said(end))
            self._samples[item.id] = end
            content = (*item.content[:index], cut, *item.content[index + 1 :])
            self.replace(replace(item, content=content))
        return ItemTruncated(item.id, index, end // PER_MS)

    def state(self) -> LedgerState:
        """Return the items that are not in progress, without their audio, for `restore`."""
        items = [without_audio(item) for item in self.items if item.status != "in_progress"]
        return LedgerState(
            tuple(items),
            {item.id: self._samples[item.id] for item in items if item.id in self._samples},
        )

    def restore(self, state: LedgerState) -> None:
        """Take over the items of another ledger. This ledger must be empty."""
        for item in state.items:
            self._insert(len(self._order), item)
        self._samples = dict(state.samples)

    def told_again(self) -> list[Change]:
        """Return events that report all items to a client that has connected again."""
        events: list[Change] = []
        previous = None
        for item in map(without_audio, self.items):
            events.append(ItemAdded(previous, item))
            if item.status != "in_progress":
                events.append(ItemDone(previous, item))
            previous = item.id
        return events

    def _creatable(self, item: Item) -> Item:
        """Return `item` with the status `completed` and an id in place of each missing one. Raises
        ProtocolError if a client may not create it."""
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
        """Return the id of the item before this one; None if this is the first."""
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
        """Drop old audio, then old items, until the ledger is within its maximum memory and number
        of items. Keep the item with the id `kept`, and items in progress. Return the events about
        dropped items."""
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
