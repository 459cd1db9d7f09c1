"""The events of a response: their order, and that they tell one story, whatever is fed."""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.values import TEXT
from voiceloop.settings.schema import tag_of
from voiceloop.wire import server_events as events
from voiceloop.wire.client_events import ItemTruncate
from voiceloop.wire.items import FunctionCall, Message, OutputAudioPart, OutputText
from voiceloop.wire.ledger import PER_MS, Ledger
from voiceloop.wire.responses import (
    CLIENT_CANCELLED,
    TOO_LONG,
    TURN_DETECTED,
    Response,
    failed,
)
from voiceloop.wire.server_events import ServerEvent
from voiceloop.wire.settings import (
    AudioFormat,
    PcmaFormat,
    PcmFormat,
    PcmuFormat,
    ResponseAudio,
    ResponseOutput,
    ResponseSettings,
)

pytestmark = pytest.mark.pure

# One letter for each event of an item, in the order that the API's documentation gives.
LETTERS = {
    "response.output_item.added": "I",
    "conversation.item.added": "i",
    "response.content_part.added": "P",
    "response.output_audio_transcript.delta": "w",
    "response.output_audio.delta": "a",
    "response.output_text.delta": "t",
    "response.function_call_arguments.delta": "c",
    "response.output_audio.done": "A",
    "response.output_audio_transcript.done": "W",
    "response.output_text.done": "T",
    "response.function_call_arguments.done": "C",
    "response.content_part.done": "p",
    "conversation.item.done": "d",
    "response.output_item.done": "D",
}
IN_CONVERSATION = re.compile("IiP[wa]+AWpdD|IiPt+TpdD|Iic*CdD")
OUT_OF_BAND = re.compile("IP[wa]+AWpD|IPt+TpD|Ic*CD")

Feed = tuple[str, tuple[Any, ...]]
FEEDS: st.SearchStrategy[Feed] = st.one_of(
    st.tuples(st.just("start"), st.just(())),
    st.tuples(st.just("text"), st.tuples(TEXT)),
    st.tuples(st.just("audio"), st.tuples(st.binary(max_size=4).map(lambda one: one * 2))),
    st.tuples(st.just("call"), st.tuples(st.sampled_from("xyz"), TEXT, st.booleans())),
)
ENDINGS = [None, TURN_DETECTED, CLIENT_CANCELLED, TOO_LONG, failed("it broke", "broken")]


FORMATS = [PcmFormat(), PcmuFormat(), PcmaFormat()]


def begun(
    modality: Any = "audio", conversation: Any = "auto", format: AudioFormat = FORMATS[0]
) -> tuple[Response, Ledger]:
    numbers = count(1)
    ledger = Ledger(lambda kind: f"{kind}_{next(numbers)}")
    settings = ResponseSettings(
        conversation,
        output_modalities=(modality,),
        audio=ResponseAudio(ResponseOutput(format)),
        metadata={"a": "b"},
    )
    new_id = (f"{n}" for n in count(1))
    return (
        Response(lambda kind: f"{kind}_{next(new_id)}", settings, ledger, conversation_id="conv"),
        ledger,
    )


def feed(response: Response, feeds: list[Feed]) -> list[ServerEvent]:
    told: list[ServerEvent] = []
    for verb, arguments in feeds:
        if verb == "call":
            call_id, delta, last = arguments
            told += response.call(call_id, f"do_{call_id}", delta, last=last)
        elif verb != "audio" or response.settings.output_modalities == ("audio",):
            told += getattr(response, verb)(*arguments)
    return told


def item_of(event: Any) -> str:
    return event.item.id if hasattr(event, "item") else event.item_id


@given(
    st.lists(FEEDS, max_size=12),
    st.sampled_from(["audio", "text"]),
    st.sampled_from(["auto", "none"]),
    st.sampled_from(ENDINGS),
    st.none() | TEXT,
    st.sampled_from(FORMATS),
)
def test_whatever_is_fed_the_events_come_in_the_documented_order_and_agree(
    feeds: list[Feed],
    modality: str,
    conversation: str,
    ending: Any,
    heard: str | None,
    format: AudioFormat,
) -> None:
    response, ledger = begun(modality, conversation, format)
    told = feed(response, feeds) + response.end(ending, heard=heard)
    first, *between, last = told
    assert isinstance(first, events.ResponseCreated) and isinstance(last, events.ResponseDone)

    # Each item by itself is in order, and items begin in the order of their numbers.
    stories: defaultdict[str, list[Any]] = defaultdict(list)
    for event in between:
        stories[item_of(event)].append(event)
    order = IN_CONVERSATION if conversation == "auto" else OUT_OF_BAND
    for story in stories.values():
        assert order.fullmatch("".join(LETTERS[tag_of(event)] for event in story))
        assert {e.output_index for e in story if hasattr(e, "output_index")} == {
            list(stories).index(item_of(story[0]))
        }
        assert {e.response_id for e in story if hasattr(e, "response_id")} == {response.id}
        assert {e.content_index for e in story if hasattr(e, "content_index")} <= {0}

    # What is told at the end is what was told piece by piece.
    finished = [story[-1].item for story in stories.values()]
    for story, item in zip(stories.values(), finished, strict=True):
        agrees(response, story, item, heard)
    assert list(last.response.output) == finished
    details = last.response.status_details
    assert details == ending
    assert last.response.status == (ending.type if ending else "completed")
    assert first.response.id == last.response.id == response.id
    assert (first.response.status, first.response.output) == ("in_progress", ())
    assert last.response.conversation_id == ("conv" if conversation == "auto" else None)
    assert ledger.items == (finished if conversation == "auto" else [])
    for item in ledger.items:
        if response.spoken and isinstance(item, Message):  # the ledger knows how long it sounds
            cut = ledger.truncate(ItemTruncate(item.id, 0, 2**31))
            assert cut.audio_end_ms == response.samples // PER_MS
    for item in finished:
        if ending is None:
            assert item.status == "completed"
        elif isinstance(item, Message):
            assert item.status == "incomplete"

    # What comes later was in flight.
    assert feed(response, [*feeds, ("text", ("late",))]) == response.end() == []


def agrees(response: Response, story: list[Any], item: Any, heard: str | None) -> None:
    """Deltas, the events at the end, and the item say the same."""

    def joined(kind: Any) -> str:
        return "".join(event.delta for event in story if isinstance(event, kind))

    if isinstance(item, FunctionCall):
        done = next(event for event in story if isinstance(event, events.ArgumentsDone))
        assert joined(events.ArgumentsDelta) == done.arguments == item.arguments
        assert (done.call_id, done.name) == (item.call_id, item.name)
        assert item.name == f"do_{item.call_id}"
        return
    assert isinstance(item, Message) and item.role == "assistant"
    (part,) = item.content
    ended = next(event.part for event in story if isinstance(event, events.ContentPartDone))
    if isinstance(part, OutputText):
        assert ended == events.TextPart(part.text)
        assert joined(events.OutputTextDelta) == part.text
        done = next(event for event in story if isinstance(event, events.OutputTextDone))
        assert done.text == part.text
        return
    assert isinstance(part, OutputAudioPart)
    said = joined(events.OutputTranscriptDelta) if heard is None else heard
    done = next(event for event in story if isinstance(event, events.OutputTranscriptDone))
    assert said == part.transcript == done.transcript
    assert ended == events.AudioPart(said)
    format, at = response.settings.audio.output.format, 0
    for event in story:
        if isinstance(event, events.OutputAudioDelta):
            assert event.start == at
            at += len(event.delta) // format.sample_bytes
    assert response.samples * format.rate == at * 24_000


def test_a_response_that_is_cancelled_before_any_output_has_none() -> None:
    response, ledger = begun()
    created, done = response.end(TURN_DETECTED)
    assert isinstance(created, events.ResponseCreated)
    assert isinstance(done, events.ResponseDone)
    assert (done.response.status, done.response.output) == ("cancelled", ())
    assert done.response.status_details == events.StatusDetails("cancelled", "turn_detected")
    assert ledger.items == []


def test_a_call_is_whole_while_the_message_still_sounds() -> None:
    response, ledger = begun()
    response.text("Let me look.")
    response.call("call_1", "look", '{"at": ', last=False)
    assert [tag_of(event) for event in response.call("call_1", "look", '"it"}', last=True)] == [
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
        "conversation.item.done",
        "response.output_item.done",
    ]
    response.audio(bytes(2))
    response.end(CLIENT_CANCELLED)
    assert ledger.items == [
        Message("assistant", (OutputAudioPart("Let me look."),), "item_2", "incomplete"),
        FunctionCall("look", '{"at": "it"}', "call_1", "item_3"),
    ]
