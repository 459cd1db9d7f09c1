"""The ledger of items against a plain list."""

from __future__ import annotations

from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    rule,
)
from msgspec import UNSET
from msgspec.structs import replace

from voiceloop.errors import ProtocolError
from voiceloop.wire.client_events import ItemCreate, ItemTruncate
from voiceloop.wire.items import (
    AudioBytes,
    FunctionCall,
    FunctionCallOutput,
    InputAudioPart,
    InputText,
    Item,
    Message,
    OutputAudioPart,
    OutputText,
    size,
    without_audio,
)
from voiceloop.wire.ledger import PER_MS, Ledger
from voiceloop.wire.server_events import ItemAdded, ItemDeleted, ItemDone

pytestmark = pytest.mark.pure


def ledger(**bounds: int) -> Ledger:
    numbers = count(1)
    return Ledger(lambda kind: f"{kind}_{next(numbers)}", **bounds)


def wrote(text: str = "hello", item_id: str = "") -> Message:
    return Message("user", (InputText(text),), item_id)


def said(item_id: str = "said") -> Message:
    return Message("assistant", (OutputAudioPart("all of it"),), item_id)


def ids(found: Ledger) -> list[str]:
    return [item.id for item in found.items]


class Conversation(RuleBasedStateMachine):
    """Everything client and server can do to a ledger, and what a list of items would be then."""

    known = Bundle("known")
    """Ids that were in the ledger at some time."""

    @initialize(most=st.integers(1, 6), room=st.sampled_from([3000, 10**9]))
    def begin(self, most: int, room: int) -> None:
        self.ledger = ledger(max_items=most, max_bytes=room)
        self.most, self.room = most, room
        self.numbers = count(1)
        self.coming = ""
        """What the ledger was told of last: it stays."""
        self.model: list[Item] = []
        self.samples: dict[str, int] = {}
        self.told: list[str] = []
        """The client's own view, from the events alone."""

    def follow(self, events: list[ItemAdded | ItemDone | ItemDeleted]) -> None:
        """Do to the client's view what the events say, and to the model what had to go."""
        for event in events:
            if isinstance(event, ItemDeleted):
                self.told.remove(event.item_id)
                gone = next(item for item in self.model if item.id == event.item_id)
                older = self.model[: self.model.index(gone)]
                # The oldest goes first, but not what is in progress, nor what has just come.
                assert all(self.stays(item) for item in older)
                assert gone.status != "in_progress"
                self.model.remove(gone)
            elif isinstance(event, ItemAdded):
                after = event.previous_item_id
                self.told.insert(self.told.index(after) + 1 if after else 0, event.item.id)
            else:
                position = self.told.index(event.item.id)
                assert event.previous_item_id == (self.told[position - 1] if position else None)

    def stays(self, item: Item) -> bool:
        return item.status == "in_progress" or item.id == self.coming

    @rule(
        target=known,
        text=st.text(max_size=200),
        own_id=st.sampled_from(["", "a", "b", "root"]),
        previous=st.none() | st.just("root") | known,
    )
    def create(self, text: str, own_id: str, previous: str | None) -> object:
        there = [item.id for item in self.model]
        try:
            events = self.ledger.create(ItemCreate(wrote(text, own_id), previous))
        except ProtocolError as error:
            if own_id in there or own_id == "root":
                assert error.param == "item.id"
            else:
                assert previous not in there and error.param == "previous_item_id"
            return multiple()
        assert own_id not in there and previous in [None, "root", *there]
        added = next(event for event in events if isinstance(event, ItemAdded))
        assert isinstance(events[-1], ItemDone)
        assert own_id in ("", added.item.id)
        place = len(there) if previous is None else 0
        if previous in there:
            place = there.index(previous) + 1
        self.model.insert(place, added.item)
        self.coming = added.item.id
        self.follow(events)
        return added.item.id

    @rule(
        target=known, samples=st.integers(0, 500), kind=st.sampled_from(["open", "whole", "user"])
    )
    def server(self, samples: int, kind: str) -> str:
        item_id = self.coming = f"server_{next(self.numbers)}"
        item: Item = Message("assistant", (), item_id, "in_progress")
        if kind == "user":
            item = Message("user", (InputAudioPart(AudioBytes(bytes(2 * samples))),), item_id)
        self.model.append(item)
        self.follow(self.ledger.begin(item))
        if kind == "whole":
            self.finish_one(item_id, samples)
        return item_id

    def finish_one(self, item_id: str, samples: int) -> None:
        item = said(item_id)
        self.coming = item_id
        self.samples[item_id] = samples
        at = [one.id for one in self.model].index(item_id)
        self.model[at] = item
        self.follow(self.ledger.finish(item, samples))

    @rule(item_id=known, samples=st.integers(0, 500))
    def finish(self, item_id: str, samples: int) -> None:
        if any(item.id == item_id and item.status == "in_progress" for item in self.model):
            self.finish_one(item_id, samples)

    @rule(item_id=known)
    def delete(self, item_id: str) -> None:
        found = [item for item in self.model if item.id == item_id]
        if found and found[0].status != "in_progress":
            assert self.ledger.delete(item_id) == ItemDeleted(item_id)
            self.model.remove(found[0])
            self.told.remove(item_id)
        else:
            with pytest.raises(ProtocolError):
                self.ledger.delete(item_id)

    @rule(item_id=known)
    def retrieve(self, item_id: str) -> None:
        found = [item for item in self.model if item.id == item_id]
        if found:
            assert without_audio(self.ledger.retrieve(item_id).item) == without_audio(found[0])
        else:
            with pytest.raises(ProtocolError) as caught:
                self.ledger.retrieve(item_id)
            assert caught.value.code == "item_retrieve_invalid_item_id"

    @rule(item_id=known, end_ms=st.integers(0, 30))
    def truncate(self, item_id: str, end_ms: int) -> None:
        found = [item for item in self.model if item.id == item_id]
        item = found[0] if found and isinstance(found[0], Message) else None
        part = item.content[0] if item and item.content else None
        if item is None or not isinstance(part, OutputAudioPart):
            with pytest.raises(ProtocolError):
                self.ledger.truncate(ItemTruncate(item_id, 0, end_ms))
            return
        told = self.ledger.truncate(
            ItemTruncate(item_id, 0, end_ms), lambda samples: f"{samples} heard"
        )
        if self.samples[item_id] - end_ms * PER_MS >= PER_MS:
            self.samples[item_id] = end_ms * PER_MS
            cut = OutputAudioPart(f"{end_ms * PER_MS} heard")
            self.model[self.model.index(item)] = replace(item, content=(cut,))
        assert told.audio_end_ms == min(end_ms, self.samples[item_id] // PER_MS)

    @staticmethod
    def is_open(item: Item) -> bool:
        return item.status == "in_progress"

    @invariant()
    def client_and_server_see_the_same(self) -> None:
        assert list(map(without_audio, self.ledger.items)) == list(map(without_audio, self.model))
        assert ids(self.ledger) == self.told
        assert self.ledger.last_id == (self.told[-1] if self.told else None)

    @invariant()
    def the_bounds_hold_but_for_what_must_stay(self) -> None:
        items = self.ledger.items
        free = [item for item in items if not self.is_open(item) and item.id != self.coming]
        if free:
            assert len(items) <= self.most
            assert sum(map(size, items)) <= self.room
        assert sum(map(size, items)) == self.ledger._bytes


TestConversation = Conversation.TestCase
TestConversation.settings = settings(max_examples=60, stateful_step_count=30)


# --- creating -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("item", "param"),
    [
        (wrote(item_id="root"), "item.id"),
        (Message("user", ()), "item.content"),
        (Message("system", ()), "item.content"),
        (Message("assistant", (OutputText("a"), OutputAudioPart("b"))), "item.content"),
        (FunctionCallOutput("call_9", "{}"), "item.call_id"),
        (wrote("x" * 10_000), "item"),
    ],
)
def test_an_item_that_no_client_can_create_is_refused(item: Item, param: str) -> None:
    found = ledger(max_bytes=20_000)
    with pytest.raises(ProtocolError) as caught:
        found.create(ItemCreate(item))
    assert caught.value.param == param
    assert found.items == []


def test_a_created_item_is_whole_and_has_all_its_ids() -> None:
    found = ledger()
    added, done = found.create(ItemCreate(FunctionCall("look", "{}", status="in_progress")))
    assert isinstance(added, ItemAdded) and isinstance(done, ItemDone)
    assert added.item == done.item == FunctionCall("look", "{}", "call_2", "item_1")
    found.create(ItemCreate(FunctionCallOutput("call_2", "seen")))
    assert ids(found) == ["item_1", "item_3"]


def test_events_carry_no_audio_but_a_retrieved_item_does() -> None:
    found = ledger()
    spoken = Message("user", (InputAudioPart(AudioBytes(b"1234"), "hm"), InputText("a")), "mine")
    for event in found.create(ItemCreate(spoken)):
        assert isinstance(event, (ItemAdded, ItemDone))
        assert event.item == Message("user", (InputAudioPart(UNSET, "hm"), InputText("a")), "mine")
    assert found.retrieve("mine").item == spoken
    told = [*found.begin(replace(spoken, id="ours", status="in_progress"))]
    told += found.finish(replace(spoken, id="ours"))
    told += found.told_again()
    items = [event.item for event in told if not isinstance(event, ItemDeleted)]
    assert items == [without_audio(item) for item in items] and len(items) == 6


def test_where_there_is_no_room_audio_goes_before_words() -> None:
    found = ledger(max_bytes=20_000)
    for name in ("a", "b", "c"):
        part = InputAudioPart(AudioBytes(bytes(8000)), f"words of {name}")
        events = found.begin(Message("user", (part,), name))
        assert [type(event) for event in events] == [ItemAdded]
    assert found.items == [
        Message("user", (InputAudioPart(UNSET, "words of a"),), "a"),
        Message("user", (InputAudioPart(AudioBytes(bytes(8000)), "words of b"),), "b"),
        Message("user", (InputAudioPart(AudioBytes(bytes(8000)), "words of c"),), "c"),
    ]


# --- truncating -----------------------------------------------------------------------------------


@given(st.integers(0, 100_000), st.integers(0, 2**53), st.integers(0, 2**53))
def test_a_cut_is_never_past_the_end_and_is_never_undone(
    length: int, once: int, again: int
) -> None:
    found = ledger()
    found.begin(said())
    found.finish(said(), length)
    end = length // PER_MS
    for wish in (once, again):
        end = min(end, wish)
        told = found.truncate(ItemTruncate("said", 0, wish), lambda samples: "heard")
        assert (told.item_id, told.content_index, told.audio_end_ms) == ("said", 0, end)
    (item,) = found.items
    assert isinstance(item, Message) and isinstance(item.content[0], OutputAudioPart)
    whole = min(once, again) >= length // PER_MS
    assert item.content[0].transcript == ("all of it" if whole else "heard")


@pytest.mark.parametrize(
    ("event", "param"),
    [
        (ItemTruncate("nobody", 0, 1), "item_id"),
        (ItemTruncate("user", 0, 1), "item_id"),
        (ItemTruncate("open", 0, 1), "item_id"),
        (ItemTruncate("written", 0, 1), "content_index"),
        (ItemTruncate("said", 1, 1), "content_index"),
    ],
)
def test_only_what_the_model_has_said_can_be_truncated(event: ItemTruncate, param: str) -> None:
    found = ledger()
    found.begin(wrote("a", "user"))
    found.begin(said())
    found.finish(said(), 2400)
    found.begin(Message("assistant", (OutputText("a"),), "written"))
    found.begin(Message("assistant", (), "open", "in_progress"))
    before = found.items
    with pytest.raises(ProtocolError) as caught:
        found.truncate(event)
    assert caught.value.param == param
    assert found.items == before


def test_a_client_that_has_lost_its_connection_is_told_all_items_again() -> None:
    found = ledger()
    first, second = wrote("a", "a"), Message("assistant", (), "b", "in_progress")
    found.begin(first)
    found.begin(second)
    assert found.told_again() == [
        ItemAdded(None, first),
        ItemDone(None, first),
        ItemAdded("a", second),
    ]
