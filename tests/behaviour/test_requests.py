"""What clients ask for while the user speaks, over scripted engines on the virtual clock."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from tests.behaviour.generated import Case, Client
from tests.behaviour.observed import COMPLETED, observed
from tests.support.scenario import Failure, Scenario, ScriptedReply
from voiceloop.settings.config import AsrConfig, Config, TurnConfig

pytestmark = pytest.mark.virtual

SKY, SEA = "Tell me about the sky", "And what about the sea"
LONG = "The sky is blue, and it goes on and on and on, over the hills and far away, for ever."
WORLD = Scenario(
    reply=(ScriptedReply(SKY, LONG), ScriptedReply(says="Of course it is.")),
    config=Config(turns=TurnConfig(endpoint="fixed", hangover_ms=400)),
)


def update(*, creates: bool = True, transcribes: bool = False, **session: object) -> dict[str, Any]:
    detection = {"type": "server_vad", "silence_duration_ms": 400, "create_response": creates}
    transcription = {"model": "whisper-1"} if transcribes else None
    audio = {"input": {"turn_detection": detection, "transcription": transcription}}
    extensions = {"traces": True, "pause": True}
    whole = {"type": "realtime", "audio": audio, "voiceloop": extensions, **session}
    return {"type": "session.update", "session": whole}


def told(
    speech: list[tuple[float, str]],
    *sends: tuple[float, dict[str, Any]],
    seconds: float = 12.0,
    world: Scenario = WORLD,
) -> list[str]:
    return observed(Case(world, Client(sends), seconds, speech))


def events(lines: list[str], kind: str) -> list[dict[str, Any]]:
    found = (json.loads(line.split(" ", 1)[1]) for line in lines if f' {{"type":"{kind}"' in line)
    return [event for event in found if event["type"] == kind]


def asked(lines: list[str]) -> list[str]:
    return [line.split(" ", 2)[2].strip("'") for line in lines if line.startswith("asked reply '")]


def test_an_answer_is_asked_for_after_two_turns_that_nobody_asked_about() -> None:
    lines = told(
        [(0.5, SKY), (4.0, SEA)], (0.1, update(creates=False)), (8.0, {"type": "response.create"})
    )
    (done,) = events(lines, "response.done")
    assert done["response"]["status"] == "completed"
    assert asked(lines) == [f"{SKY} {SEA}"], "what was said before belongs to it"


def test_a_turn_can_be_answered_though_the_user_speaks_again() -> None:
    lines = told(
        [(0.5, SKY), (4.0, SEA)], (0.1, update(creates=False)), (4.8, {"type": "response.create"})
    )
    assert asked(lines) == [SKY]
    assert events(lines, "response.done")


def test_a_sound_that_is_cleared_lets_the_response_go_on() -> None:
    clear = {"type": "input_audio_buffer.clear"}
    lines = told([(0.5, SKY), (4.0, "stop")], (0.1, update()), (4.25, clear))
    assert events(lines, "voiceloop.output.paused") and events(lines, "voiceloop.output.resumed")
    (done,) = events(lines, "response.done")
    assert done["response"]["status"] == "completed"
    heard = [event["trace"]["heard"] for event in events(lines, "voiceloop.trace")]
    assert LONG in heard


@pytest.mark.parametrize("sound", ["stop", SEA])
def test_a_response_ends_although_the_audio_stops_in_the_middle_of_a_sound(sound: str) -> None:
    lines = told([(0.5, SKY), (4.0, sound)], (0.1, update()), seconds=4.25)
    assert events(lines, "voiceloop.output.paused")
    assert events(lines, "response.done")


@pytest.mark.parametrize("written", [True, False])
def test_what_one_response_was_asked_to_be_is_not_what_the_next_one_is(written: bool) -> None:
    text = {"type": "response.create", "response": {"output_modalities": ["text"]}}
    message = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": SEA}]}
    create = {"type": "conversation.item.create", "item": message}
    sends = [(0.1, update()), (0.2, create), (0.3, text)]
    if not written:  # it answers a conversation in which nothing has been said
        sends.pop(1)
    lines = told([(3.0, SKY)], *sends)
    *first, last = events(lines, "response.done")
    assert [done["response"]["output_modalities"] for done in first] == [["text"]]
    assert last["response"]["output_modalities"] == ["audio"]
    assert events(lines, "response.output_audio.delta"), "and it can be heard"


def test_a_client_that_asks_for_text_in_mid_reply_loses_nothing() -> None:
    lines = told([(0.5, SKY)], (0.1, update()), (2.6, update(output_modalities=["text"])))
    (done,) = events(lines, "response.done")
    assert done["response"]["status"] == "completed"


def test_audio_that_is_cleared_takes_no_written_message_with_it() -> None:
    message = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": SEA}]}
    lines = told(
        [(0.5, "Why")],
        (0.1, update()),
        (0.6, {"type": "conversation.item.create", "item": message}),
        (0.65, {"type": "response.create"}),
        (0.75, {"type": "input_audio_buffer.clear"}),
        seconds=6.0,
    )
    done, *_ = events(lines, "response.done")
    assert done["response"]["status"] == "completed"


@pytest.mark.parametrize("every_ms", [200, 2000])
def test_what_cannot_be_recognised_is_told_of_its_item_and_its_response(every_ms: int) -> None:
    """Whether a partial decode fails, while the turn goes on, or the final one."""
    config = replace(WORLD.config, asr=AsrConfig(partial_every_ms=every_ms))
    world = replace(WORLD, config=config, fail=(Failure("asr", "Why"),))
    manual = update(transcribes=True)
    manual["session"]["audio"]["input"]["turn_detection"] = None
    commit, create = {"type": "input_audio_buffer.commit"}, {"type": "response.create"}
    lines = told(
        [(0.5, "Why"), (4.0, SEA)],
        *((0.1, manual), (1.0, commit), (1.0, create), (6.0, commit), (6.0, create)),
        world=world,
    )
    (added, *_) = events(lines, "conversation.item.added")
    (failed,) = events(lines, "conversation.item.input_audio_transcription.failed")
    assert failed["item_id"] == added["item"]["id"]
    assert failed["error"]["message"]
    assert len(events(lines, "input_audio_buffer.committed")) == 2
    first, *_, last = events(lines, "response.done")
    assert [first["response"]["status"], last["response"]["status"]] == ["failed", "completed"]


def at(lines: list[str], kind: str) -> list[float]:
    """The times at which events of a kind were told, in seconds."""
    return [float(line.split(" ", 1)[0]) for line in lines if f' {{"type":"{kind}"' in line]


def test_a_response_is_told_of_when_the_turn_ends_and_not_at_its_first_word() -> None:
    slow = replace(WORLD, stages=replace(WORLD.stages, llm_burst_s=2.0))
    lines = told([(0.5, SEA)], (0.1, update(transcribes=True)), world=slow)
    (created,), (words,) = at(lines, "response.created"), at(lines, COMPLETED)
    assert created == words
    assert at(lines, "response.output_item.added")[0] >= created + 1.5
    (done,) = events(lines, "response.done")
    assert done["response"]["status"] == "completed"


def test_a_response_to_words_that_go_on_is_cancelled_as_the_user_speaks() -> None:
    slow = replace(WORLD, stages=replace(WORLD.stages, llm_burst_s=2.0))
    lines = told([(0.5, SKY), (2.6, SEA)], (0.1, update(transcribes=True)), world=slow)
    first, last = (done["response"] for done in events(lines, "response.done"))
    assert first["status_details"] == {
        "type": "cancelled",
        "reason": "turn_detected",
        "error": None,
    }
    assert not first["output"] and last["status"] == "completed"
