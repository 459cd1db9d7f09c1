"""Sessions that tell what the user says and nothing else, over scripted engines on the virtual
clock."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from tests.behaviour.generated import Case, Client
from tests.behaviour.observed import COMPLETED, EVENTS_OF_A_TURN, observed
from tests.behaviour.test_requests import LONG, SEA, SKY, WORLD, events
from tests.support.scenario import Failure, Scenario
from voiceloop.settings.config import Config, LlmConfig, TurnConfig

pytestmark = pytest.mark.virtual

SUN = "The sun is up"
SPEECH = [(0.5, SKY), (4.0, SEA), (8.0, SUN)]
DETECTIONS: list[dict[str, Any] | None] = [
    {"type": "server_vad", "silence_duration_ms": 400},
    {"type": "server_vad", "create_response": True, "idle_timeout_ms": 5000},
    {"type": "semantic_vad", "eagerness": "high", "interrupt_response": True},
]
COMMIT = {"type": "input_audio_buffer.commit"}
RESPOND = {"type": "response.create", "event_id": "mine"}
WORLDS = [
    WORLD,
    replace(WORLD, config=Config(turns=TurnConfig(endpoint="p-eot"))),
    replace(WORLD, config=Config(turns=TurnConfig(), llm=LlmConfig(skills="none"))),
]
"""Among them one in which the language model has a say in where turns end."""


def update(detection: dict[str, Any] | None = DETECTIONS[0], **session: object) -> dict[str, Any]:
    audio = {"input": {"turn_detection": detection, "transcription": {"model": "whisper-1"}}}
    extensions = {"traces": True, "tentative_words": True}
    whole = {"type": "transcription", "audio": audio, "voiceloop": extensions, **session}
    return {"type": "session.update", "session": whole}


def told(
    *sends: tuple[float, dict[str, Any]],
    world: Scenario = WORLD,
    from_the_beginning: bool = True,
    speech: list[tuple[float, str]] = SPEECH,
) -> list[str]:
    client = Client(list(sends), transcribes=from_the_beginning)
    return observed(Case(world, client, 12.0, speech))


def transcripts(lines: list[str]) -> list[str]:
    return [event["transcript"] for event in events(lines, COMPLETED)]


def order(lines: list[str]) -> list[str]:
    """The kinds of events, less our own."""
    kinds = [line.split('"type":"')[1].split('"')[0] for line in lines if ' {"type":"' in line]
    return [kind for kind in kinds if not kind.startswith(("voiceloop.", "session."))]


def asked(lines: list[str]) -> list[str]:
    """All work of the language model, which may free what it keeps in the end."""
    return [line for line in lines if line.startswith("asked ") and line != "asked close None"]


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("detection", DETECTIONS)
def test_every_turn_is_told_and_the_language_model_has_no_work_at_all(
    detection: dict[str, Any], world: Scenario
) -> None:
    lines = told((0.1, update(detection)), world=world)
    assert transcripts(lines) == [SKY, SEA, SUN]
    assert order(lines) == 3 * EVENTS_OF_A_TURN
    assert not asked(lines) and not any(line.startswith("spoken ") for line in lines)
    traces = events(lines, "voiceloop.trace")
    assert [(one["response_id"], one["trace"]["outcome"]) for one in traces] == 3 * [
        (None, "abandoned")
    ]
    assert not any("tokens" in str(one["trace"]["counters"]) for one in traces)


def test_words_are_told_without_any_setting() -> None:
    assert transcripts(told()) == [SKY, SEA, SUN]


def test_turns_that_the_client_ends_are_told_and_nothing_answers_them() -> None:
    commits = [(at, COMMIT) for at in (3.5, 7.5, 11.0)]
    lines = told((0.1, update(None)), *commits, (5.0, RESPOND))
    assert transcripts(lines) == [SKY, SEA, SUN]
    assert "response.created" not in order(lines) and not asked(lines)
    assert not events(lines, "input_audio_buffer.speech_started")
    (refused,) = [line for line in lines if " refused " in line]
    assert "unsupported_event" in refused and "gives no responses" in refused


def test_the_first_update_chooses_though_the_user_is_speaking() -> None:
    for at in (0.1, 0.6, 1.0):
        lines = told((at, update()), from_the_beginning=False)
        assert transcripts(lines)[-2:] == [SEA, SUN], "what was being said may be lost"
        assert "response.created" not in order(lines)
        assert not [line for line in asked(lines) if line.startswith("asked reply")], lines
        (session,) = events(lines, "session.updated")
        assert session["session"]["type"] == "transcription"


@pytest.mark.parametrize(
    "before",
    [
        (0.05, {"type": "session.update", "session": {"type": "realtime"}}),
        (0.05, {"type": "response.create"}),
        (0.05, {"type": "conversation.item.create", "item": {
            "type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hm"}]}}),
        None,
    ],
)  # fmt: skip
def test_a_conversation_stays_one(before: tuple[float, dict[str, Any]] | None) -> None:
    late = (0.1 if before else 3.9, update())
    lines = told(*[one for one in (before, late) if one], from_the_beginning=False)
    refused = [line for line in lines if "session.type" in line and " refused " not in line]
    assert refused and "`realtime`, and cannot change any more" in refused[0]
    assert events(lines, "response.done")
    assert events(lines, "session.updated")[-1]["session"]["type"] == "realtime"


@pytest.mark.parametrize("every_ms", [200, 2000])
def test_what_cannot_be_recognised_is_told_and_begins_no_response(every_ms: int) -> None:
    asr = replace(WORLD.config.asr, partial_every_ms=every_ms)
    world = replace(WORLD, config=replace(WORLD.config, asr=asr), fail=(Failure("asr", "And"),))
    lines = told((0.1, update()), world=world)
    (failed,) = events(lines, "conversation.item.input_audio_transcription.failed")
    committed = [one["item_id"] for one in events(lines, "input_audio_buffer.committed")]
    assert failed["item_id"] in committed
    assert transcripts(lines) == [SKY, SUN]
    assert not [kind for kind in order(lines) if kind.startswith("response.")] and not asked(lines)


def test_items_of_the_client_and_what_it_clears_give_no_work_either() -> None:
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": LONG}]}
    create = {"type": "conversation.item.create", "item": item}
    lines = told(
        *((0.1, update()), (0.2, create), (0.8, {"type": "input_audio_buffer.clear"})),
        *((3.0, {"type": "response.cancel"}), (5.0, {"type": "conversation.item.delete",
                                                     "item_id": "$item"})),
    )  # fmt: skip
    assert transcripts(lines)[-2:] == [SEA, SUN]
    assert not asked(lines)


def test_whoever_comes_back_is_told_words_alone_as_before() -> None:
    client = Client([(0.1, update())], 3.0, transcribes=True)
    lines = observed(Case(WORLD, client, 12.0, SPEECH))
    assert transcripts(lines) == [SKY, SEA, SUN]
    assert not asked(lines)
