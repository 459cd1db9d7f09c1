"""What goes over the wire against the types of the openai package, which stock clients use."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai import BaseModel
from openai.types import realtime as sdk
from openai.types.realtime.realtime_session_create_response import RealtimeSessionCreateResponse
from pydantic import TypeAdapter

from tests.wire.values import IDS, PCM, messages, objects
from tools.protocol import SERVER_EVENTS
from voiceloop.errors import ProtocolError
from voiceloop.settings.schema import hints_of, is_struct, members, tag_of
from voiceloop.wire.client_events import (
    CLIENT_EVENTS,
)
from voiceloop.wire.items import PARTS, Message
from voiceloop.wire.parsing import UNSUPPORTED, parse
from voiceloop.wire.server_events import (
    FRAME_HEADER,
    OutputAudioDelta,
    ServerEvent,
    SessionCreated,
    TraceSent,
)
from voiceloop.wire.settings import SessionSettings

pytestmark = pytest.mark.pure


def models(union: Any) -> dict[str, type[BaseModel]]:
    """The members of a union of the package's events, by their type."""
    members = get_args(get_args(union)[0])
    return {get_args(one.model_fields["type"].annotation)[0]: one for one in members}


THEIR_SERVER = models(sdk.RealtimeServerEvent)
ANY_SERVER_EVENT: TypeAdapter[Any] = TypeAdapter(sdk.RealtimeServerEvent)
THEIR_CLIENT = models(sdk.RealtimeClientEvent)
NOT_SENT = {
    "conversation.created",  # before the protocol became stable
    "conversation.item.created",  # likewise: .added and .done took its place
    "conversation.item.input_audio_transcription.segment",  # speakers are not told apart
    "input_audio_buffer.dtmf_event_received",  # telephones
    "output_audio_buffer.started",  # WebRTC
    "output_audio_buffer.stopped",
    "output_audio_buffer.cleared",
    "rate_limits.updated",  # there are none
    "mcp_list_tools.in_progress",  # servers of tools are for the client to ask
    "mcp_list_tools.completed",
    "mcp_list_tools.failed",
    "response.mcp_call_arguments.delta",
    "response.mcp_call_arguments.done",
    "response.mcp_call.in_progress",
    "response.mcp_call.completed",
    "response.mcp_call.failed",
}
"""Events of the API that voiceloop never sends."""
EXTENSIONS_SENT = {
    "voiceloop.transcript",
    "voiceloop.trace",
    "voiceloop.output.clause",
    "voiceloop.output.paused",
    "voiceloop.output.resumed",
    "voiceloop.session.token",
    "voiceloop.session.resumed",
    "voiceloop.llm_server.used",
}
EXTENSIONS_TAKEN = {
    "voiceloop.played",
    "voiceloop.resume",
    "voiceloop.session.token.received",
    "voiceloop.llm_server.use",
    "voiceloop.conversation.open",
}


def unknown_keys(value: object) -> set[str]:
    """Keys that the package keeps, anywhere in a model, without having a field for them."""
    if isinstance(value, BaseModel):
        inner = [getattr(value, name) for name in type(value).model_fields]
        return set(value.model_extra or ()).union(*map(unknown_keys, inner))
    if isinstance(value, list):
        return set().union(*map(unknown_keys, value))
    return set()


# --- what the server says -------------------------------------------------------------------------


def test_every_event_of_the_api_is_sent_or_named_as_not_sent() -> None:
    assert set(SERVER_EVENTS) == (set(THEIR_SERVER) - NOT_SENT) | EXTENSIONS_SENT
    assert NOT_SENT < set(THEIR_SERVER)


def test_every_class_of_an_event_is_in_the_list() -> None:
    waiting, found = [ServerEvent], set[type]()
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        found |= {kind} if tag_of(kind) else set()
    assert found == set(SERVER_EVENTS.values())


@pytest.mark.parametrize("name", sorted(set(SERVER_EVENTS) - EXTENSIONS_SENT))
@settings(max_examples=settings().max_examples // 3)
@given(st.data())
def test_an_event_is_read_by_the_openai_package_and_written_by_it_again(
    name: str, data: st.DataObject
) -> None:
    text = data.draw(objects(SERVER_EVENTS[name])).to_json("event_1")
    model = THEIR_SERVER[name].model_validate_json(text, strict=True)
    chosen = ANY_SERVER_EVENT.validate_json(text)
    assert type(chosen) is THEIR_SERVER[name]
    # The session's own id is not in the model of what a client sends, which this event shares.
    session = {"id", "object", "voiceloop"} if name.startswith("session.") else set()
    assert unknown_keys(model) == session
    assert model.model_dump(mode="json", exclude_unset=True) == json.loads(text)


@given(objects(SessionSettings))
def test_the_session_that_is_told_is_one_of_the_openai_package(session: SessionSettings) -> None:
    told = json.loads(SessionCreated(session).to_json("event_1"))["session"]
    model = RealtimeSessionCreateResponse.model_validate_json(json.dumps(told), strict=True)
    changes = sdk.RealtimeSessionCreateRequest.model_validate(told)
    assert unknown_keys(model) & unknown_keys(changes) == {"voiceloop"}
    assert model.model_dump(mode="json", exclude_unset=True) == told


@given(IDS, PCM, st.integers(0, 2**32 - 1))
def test_a_binary_frame_names_the_item_and_the_first_sample(
    item_id: str, pcm: bytes, start: int
) -> None:
    frame = OutputAudioDelta("resp", item_id, 0, 0, pcm, start, len(pcm) // 2).to_frame()
    assert frame == item_id.encode() + start.to_bytes(4, "little") + pcm
    assert FRAME_HEADER.size == 28


def test_a_number_that_json_has_not_is_never_sent() -> None:
    with pytest.raises(ValueError, match="JSON"):
        TraceSent(None, None, {"seconds": float("nan")}).to_json("event_1")


# --- what the client says -------------------------------------------------------------------------


def test_every_event_of_a_client_is_understood_or_refused_by_name() -> None:
    assert set(THEIR_CLIENT) == (set(CLIENT_EVENTS) - EXTENSIONS_TAKEN) | (
        set(UNSUPPORTED) & set(THEIR_CLIENT)
    )
    for name in UNSUPPORTED:
        with pytest.raises(ProtocolError, match="not supported") as caught:
            parse(json.dumps({"type": name}))
        assert caught.value.code == "unsupported_event"


@pytest.mark.parametrize("name", sorted(set(CLIENT_EVENTS) - EXTENSIONS_TAKEN))
@settings(max_examples=settings().max_examples // 2)
@given(st.data())
def test_what_can_be_said_to_voiceloop_can_be_said_with_the_openai_package(
    name: str, data: st.DataObject
) -> None:
    message = data.draw(messages(CLIENT_EVENTS[name]))
    if name == "session.update":  # the package has no session without its type
        message["session"]["type"] = "realtime"
    if response := message.get("response"):  # nor references, which the API takes
        own = [item for item in response.get("input") or () if item["type"] != "item_reference"]
        response |= {"input": own} if response.get("input") else {}
    model = THEIR_CLIENT[name].model_validate_json(json.dumps(message))
    assert unknown_keys(model) <= {"voiceloop"}
    # As RealtimeConnection.send writes it.
    assert parse(model.to_json(use_api_names=True, exclude_unset=True)) == parse(
        json.dumps(message)
    )


REFUSED = {
    # as values of a key that has only one here
    *("NoiseReduction", "ResponsePrompt", "RealtimeTruncationRetentionRatio"),
    *("TracingConfiguration", "VoiceID", "OutputVoiceID"),
    # by their type
    *(
        "Mcp",
        "RealtimeResponseCreateMcpTool",
        "ToolChoiceMcp",
        "RealtimeMcpApprovalResponse",
    ),
    *("RealtimeMcpListTools", "RealtimeMcpToolCall", "RealtimeMcpApprovalRequest"),
}
"""Objects of the API that a client may send and voiceloop refuses."""
IMAGES = {"detail", "image_url"}
OURS_ALONE = {"id", "object", "voiceloop"}


def theirs_in(annotation: Any) -> set[type[BaseModel]]:
    """The models of the openai package that a field may hold."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return {annotation}
    return set().union(*map(theirs_in, get_args(annotation)))


def ours_in(hint: Any) -> set[Any]:
    """The wire objects that a field may hold."""
    if is_struct(hint):
        return {hint}
    return set().union(*map(ours_in, get_args(hint)))


def choices(kind: Any, key: str) -> tuple[str, ...]:
    """What a key of ours can be, where that is one of a few words."""
    if kind.__struct_config__.tag_field == key:
        return (tag_of(kind),)
    return get_args(members(hints_of(kind)[key])[0]) if key in hints_of(kind) else ()


def tagged(model: type[BaseModel], kinds: set[Any]) -> set[Any]:
    """Those of `kinds` that have the tags of `model`, where it has them."""
    for tag in ("type", "role"):
        field = model.model_fields.get(tag)
        literals = members(field.annotation) if field else []
        words = [word for one in literals for word in get_args(one)]
        if len(words) == 1:
            kinds = {kind for kind in kinds if words[0] in choices(kind, tag)}
    return kinds


def pairs(model: type[BaseModel], kinds: set[Any]) -> Iterator[tuple[type[BaseModel], set[Any]]]:
    """A model with the objects that stand for it, and likewise everything within."""
    yield model, kinds
    for name, field in model.model_fields.items():
        hints = [hints_of(kind)[name] for kind in kinds if name in hints_of(kind)]
        ours = set().union(*map(ours_in, hints))
        if Message in kinds and name == "content":
            ours = set(PARTS[get_args(model.model_fields["role"].annotation)[0]])
        for inner in theirs_in(field.annotation):
            if hints and inner.__name__ not in REFUSED:
                yield from pairs(inner, tagged(inner, ours))


@pytest.mark.parametrize("name", sorted(set(THEIR_CLIENT) & set(CLIENT_EVENTS)))
def test_every_key_that_a_stock_client_can_send_is_known(name: str) -> None:
    for model, kinds in pairs(THEIR_CLIENT[name], {CLIENT_EVENTS[name]}):
        assert kinds, f"nothing stands for {model.__name__}"
        keys = [{*hints_of(kind), kind.__struct_config__.tag_field} - {None} for kind in kinds]
        known = set().union(*keys)
        named = [getattr(kind, name, ()) for kind in kinds for name in ("unsupported", "tunes")]
        known_of = known.union(*named)
        assert set(model.model_fields) <= known_of | IMAGES, model.__name__
        if not model.__name__.startswith("RealtimeTranscriptionSession"):  # these have less
            assert known - set(model.model_fields) <= OURS_ALONE, model.__name__


class Recorder:
    """Stands for the socket of a stock client."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    def send(self, text: str) -> None:
        self.sent.append(text)
