"""The talk itself: what was asked and said, how it sounds, its end; and the tools of models."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.skills.asked import CODES, NOW, told
from voiceloop.skills.answer import answer
from voiceloop.skills.known import GAINS, SPEEDS, SkillContext, Timer, VoiceAdjustment
from voiceloop.skills.tools import TOOLS, run_tool

pytestmark = pytest.mark.pure

STOP = {"en": "Stop, that's enough.", "de": "Stopp, das reicht.", "es": "Para, ya basta."}
AGAIN = {"en": "Say that again.", "de": "Sag das noch einmal.", "es": "Dilo otra vez."}
ASKED = {"en": "What did I just ask?", "de": "Was habe ich gefragt?", "es": "¿Qué te pregunté?"}
BYE = {"en": "Goodbye.", "de": "Tschüss!", "es": "Adiós."}


@pytest.mark.parametrize("code", CODES)
def test_stop_is_answered_by_silence_and_goodbye_ends(code: str) -> None:
    known = SkillContext(NOW, asked=("Who are you?",), heard="Nobody.")
    assert told(STOP[code], code, known).text == ""
    assert told(BYE[code], code, known).ends
    assert told(AGAIN[code], code, known).text == "Nobody."
    assert told(ASKED[code], code, known).text.endswith("Who are you?")


@pytest.mark.parametrize("code", CODES)
def test_before_anything_was_said_there_is_nothing_to_repeat(code: str) -> None:
    for text in (AGAIN[code], ASKED[code]):
        assert told(text, code).text.endswith(".")


def test_what_was_said_is_a_whole_sentence() -> None:
    known = SkillContext(NOW, asked=("First", "my name is Anna"))
    assert told("What did I say?", "en", known).text == "You said: my name is Anna."
    assert told("What was my first question?", "en", known).text == "You said: First."


@given(st.lists(st.sampled_from(["louder", "softer", "slower", "faster", "normal"]), max_size=30))
def test_a_voice_stays_within_its_bounds(changes: list[str]) -> None:
    voice = VoiceAdjustment()
    for change in changes:
        before, voice = voice, voice.changed(change)
        assert GAINS[0] <= voice.gain_db <= GAINS[1]
        assert SPEEDS[0] <= voice.speed <= SPEEDS[1]
        if change == "louder" and before.gain_db < GAINS[1]:
            assert voice.gain > before.gain
    assert voice.changed("normal") == VoiceAdjustment()


def test_what_goes_no_further_is_said() -> None:
    loud = SkillContext(NOW, voice=VoiceAdjustment(gain_db=GAINS[1]))
    found = told("Louder!", "en", loud)
    assert found.voice is None and "as loud as" in found.text
    one = told("Speak slower.", "en", SkillContext(NOW, paced=False))
    assert one.voice is None and "one speed" in one.text
    assert told("Speak louder.", "en", SkillContext(NOW, paced=False)).voice == VoiceAdjustment(
        gain_db=6
    )


@given(st.integers(0, 100), st.integers(0, 100))
def test_a_volume_in_percent_is_within_the_bounds_and_in_order(one: int, other: int) -> None:
    gains = [VoiceAdjustment(speed=1.2).at(percent).gain_db for percent in (one, other)]
    assert all(GAINS[0] <= gain <= GAINS[1] for gain in gains)
    assert (gains[0] < gains[1]) == (one < other)
    assert VoiceAdjustment(speed=1.2).at(one).speed == 1.2


@pytest.mark.parametrize(
    ("text", "voice"),
    [
        ("Volume to fifty percent.", VoiceAdjustment().at(50)),
        ("Volume 7.", VoiceAdjustment().at(70)),
        ("Maximum volume.", VoiceAdjustment(gain_db=GAINS[1])),
        ("Minimum volume.", VoiceAdjustment(gain_db=GAINS[0])),
        ("Volume up two steps.", VoiceAdjustment(gain_db=12)),
        ("Turn it down two notches.", VoiceAdjustment(gain_db=-12)),
        ("Volume down by 999 steps.", VoiceAdjustment(gain_db=GAINS[0])),
    ],
)
def test_a_volume_is_set_as_it_was_said(text: str, voice: VoiceAdjustment) -> None:
    assert told(text).voice == voice


def test_no_volume_is_louder_than_the_loudest() -> None:
    assert answer("Volume to 150 percent.", "en", SkillContext(NOW)) is None


def test_what_is_repeated_slower_is_slower_and_the_same() -> None:
    known = SkillContext(NOW, heard="It is noon.")
    found = told("Say that again, slower.", "en", known)
    assert found.text == "It is noon." and found.voice == VoiceAdjustment().changed("slower")
    louder = told("Repeat that louder.", "en", known)
    assert louder.text == "It is noon." and louder.voice == VoiceAdjustment(gain_db=6)
    one = told("Say that again, slower.", "en", SkillContext(NOW, heard="It is noon.", paced=False))
    assert one.voice is None and one.text.endswith("one speed. It is noon.")


UNCHANGED = ("Mute.", "Whisper.", "Change your voice.", "Use a female voice.", "Speak German.")


@pytest.mark.parametrize("text", UNCHANGED)
def test_what_cannot_be_changed_is_not_claimed(text: str) -> None:
    found = told(text)
    assert "cannot" in found.text and found.voice is None and not found.ends


def test_going_to_sleep_ends_a_talk_and_says_that_it_listens_as_long_as_it_runs() -> None:
    for text in ("Go to sleep.", "Stop listening.", "Turn yourself off."):
        found = told(text)
        assert found.ends and "as long as I am running" in found.text


def test_words_are_spelled_by_their_letters() -> None:
    assert told("How do you spell necessary?").text == "N, E, C, E, S, S, A, R, Y."
    assert told("Wie schreibt man Straße?", "de").text.startswith("S, T, R, A, ")
    assert answer("Spell my name.", "en", SkillContext(NOW)) is None
    assert told("Buchstabiere Straße", "de").text == "S, T, R, A, ß, E."
    assert answer("How do you spell New York?", "en", SkillContext(NOW)) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=5,
)
NAMES = [tool.name for tool in TOOLS]


@given(
    st.sampled_from([*NAMES, "no_such"]),
    st.dictionaries(
        st.sampled_from("hours minutes seconds name expression amount from to".split())
        | st.text(max_size=5),
        JSON,
    ),
)
def test_whatever_a_model_writes_it_reads_json(name: str, arguments: dict[str, object]) -> None:
    timers = (Timer(1, "timer", NOW, 60, "eggs"),)
    found = run_tool(name, arguments, SkillContext(NOW, timers=timers), "en")
    assert isinstance(json.loads(found.text), dict)


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        ("get_time", {}, {"time": "3:42 PM", "day": "Thursday", "date": "November 26"}),
        ("set_timer", {"minutes": 5}, {"timer": "5 minutes"}),
        ("calculate", {"expression": "15% of 80"}, {"result": "15 percent of 80 is 12."}),
        ("calculate", {"expression": "17*23"}, {"result": "17 times 23 is 391."}),
        ("calculate", {"expression": "import os"}, {"error": "that cannot be computed"}),
        (
            "convert",
            {"amount": 5, "from": "miles", "to": "kilometers"},
            {"result": "5 miles are about 8.047 kilometers."},
        ),
        ("cancel_timer", {"name": "Eggs"}, {"canceled": 1}),
        ("look", {}, {"error": "there is no tool called look"}),
    ],
)
def test_tools_tell_what_they_did(
    name: str, arguments: dict[str, object], text: dict[str, object]
) -> None:
    timers = (Timer(1, "timer", NOW, 60, "eggs"),)
    found = run_tool(name, arguments, SkillContext(NOW, timers=timers), "en")
    assert json.loads(found.text) == text
    assert bool(found.sets) == (name == "set_timer")
    assert bool(found.cancels) == (name == "cancel_timer")


def test_a_timer_of_more_than_a_day_is_refused() -> None:
    found = run_tool("set_timer", {"hours": 24, "seconds": 1}, SkillContext(NOW), "en")
    assert json.loads(found.text) == {"error": "a timer takes 24 hours at most"}
    assert not found.sets


def test_a_timer_of_the_models_rings_in_the_users_language() -> None:
    (sets,) = run_tool("set_timer", {"minutes": 5, "name": "Tee"}, SkillContext(NOW), "de").sets
    assert sets.rings == "Der Timer Tee ist abgelaufen."


@pytest.mark.parametrize(
    ("code", "text"),
    [("en", "Half volume."), ("de", "Lautstärke auf die Hälfte."), ("es", "Volumen a la mitad.")],
)
def test_half_the_volume_is_the_middle_of_its_range(code: str, text: str) -> None:
    found = told(text, code)
    assert found.voice == VoiceAdjustment().at(50) and "50" in found.text
