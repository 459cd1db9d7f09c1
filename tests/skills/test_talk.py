"""The talk itself: what was asked and said, how it sounds, its end; the tools of models; what the
assistant is and can do; and what is left to chance, by a seed that is passed in."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.skills.asked import CODES, NOW, said, told
from voiceloop.skills.answer import answer
from voiceloop.skills.known import GAINS, SPEEDS, SkillContext, Timer, VoiceAdjustment
from voiceloop.skills.phrases import phrases_of, templates
from voiceloop.skills.tools import TOOLS, run_tool

pytestmark = pytest.mark.pure


def test_what_was_said_is_repeated() -> None:
    known = SkillContext(NOW, asked=("Who are you?", "my name is Anna"), heard="Nobody.")
    assert told("Say that again.", "en", known).text == "Nobody."
    assert told("What did I just say?", "en", known).text == "You said: my name is Anna."
    assert told("What was my first question?", "en", known).text == "You asked: Who are you?"
    assert told("Say that again.").text == "I have not said anything yet."
    assert told("What did I just say?").text == "You have not asked me anything yet."


def test_what_cannot_be_changed_is_not_claimed() -> None:
    for text in ("Mute.", "Whisper.", "Change your voice.", "Speak German."):
        assert "cannot" in told(text).text and told(text).voice is None
    loud = told("Louder!", "en", SkillContext(NOW, voice=VoiceAdjustment(gain_db=GAINS[1])))
    assert loud.voice is None and "as loud as" in loud.text


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


@pytest.mark.parametrize(
    ("text", "voice"),
    [
        ("Volume to fifty percent.", VoiceAdjustment().at(50)),
        ("Volume 7.", VoiceAdjustment().at(70)),
        ("Half volume.", VoiceAdjustment().at(50)),
        ("Maximum volume.", VoiceAdjustment(gain_db=GAINS[1])),
        ("Minimum volume.", VoiceAdjustment(gain_db=GAINS[0])),
        ("Volume up two steps.", VoiceAdjustment(gain_db=12)),
        ("Turn it down two notches.", VoiceAdjustment(gain_db=-12)),
        ("Volume down by 999 steps.", VoiceAdjustment(gain_db=GAINS[0])),
    ],
)
def test_a_volume_is_set_as_it_was_said(text: str, voice: VoiceAdjustment) -> None:
    assert told(text).voice == voice
    assert answer("Volume to 150 percent.", "en", SkillContext(NOW)) is None


def test_what_is_repeated_slower_is_slower_and_the_same() -> None:
    known = SkillContext(NOW, heard="It is noon.")
    found = told("Say that again, slower.", "en", known)
    assert found.text == "It is noon." and found.voice == VoiceAdjustment().changed("slower")
    louder = told("Repeat that louder.", "en", known)
    assert louder.text == "It is noon." and louder.voice == VoiceAdjustment(gain_db=6)
    one = told("Say that again, slower.", "en", SkillContext(NOW, heard="It is noon.", paced=False))
    assert one.voice is None and one.text.endswith("one speed. It is noon.")


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
        ("set_timer", {"hours": 24, "seconds": 1}, {"error": "a timer takes 24 hours at most"}),
        ("look", {}, {"error": "there is no tool called look"}),
    ],
)
def test_tools_tell_what_they_did(
    name: str, arguments: dict[str, object], text: dict[str, object]
) -> None:
    timers = (Timer(1, "timer", NOW, 60, "eggs"),)
    found = run_tool(name, arguments, SkillContext(NOW, timers=timers), "en")
    assert json.loads(found.text) == text
    assert bool(found.sets) == ("timer" in text)
    assert bool(found.cancels) == (name == "cancel_timer")


def test_a_timer_of_the_models_rings_in_the_users_language() -> None:
    (sets,) = run_tool("set_timer", {"minutes": 5, "name": "Tee"}, SkillContext(NOW), "de").sets
    assert sets.rings == "Der Timer Tee ist abgelaufen."


WISHES = [
    (code, kind, text)
    for code in CODES
    for kind in templates(code).tools
    for text in said(code)[kind]
]
SERVED = {
    "weather": "get_forecast: The weather at a place.",
    "sun": "almanac: When the sun rises.",
    "news": "headlines: The newest headlines.",
    "emergency": "dialer: Phone a number.",
    "orders": "shop: Order groceries.",
    "calls": "makeCall: Ring up somebody.",
    "mail": "send_email: Write to somebody.",
    "messages": "messenger: Send a text to somebody.",
    "calendar": "events: List or create calendar entries.",
    "music": "HassMediaPlay: Plays music on a speaker.",
    "home": "HassTurnOn: Turns on a device.",
    "camera": "snap: Take a picture.",
    "sight": "snap: Take a picture.",
    "web": "browse: Search the web.",
    "routes": "maps: The route to a place.",
    "lists": "add_item: Put something on the shopping list.",
    "stocks": "quotes: The price of a share.",
    "sports": "results: The score of a match.",
    "currency": "rates: Exchange rates of currencies.",
}


def test_every_wish_has_words_by_which_a_tool_is_known() -> None:
    assert templates("en").tools.keys() == SERVED.keys()
    assert all(templates(code).tools.keys() == SERVED.keys() for code in CODES)


@given(st.sampled_from(WISHES))
def test_a_wish_is_refused_with_the_sentence_of_its_kind_and_has_no_effect(
    case: tuple[str, str, str],
) -> None:
    code, kind, text = case
    found = told(
        text, code, SkillContext(NOW, tools=("memory: Automatically recall what was said.",))
    )
    assert found.text == phrases_of(code).says[kind]
    assert not found.sets and not found.cancels and not found.remembers and not found.ends


@given(st.sampled_from(WISHES))
def test_a_wish_that_a_tool_may_fulfil_is_left_to_the_model(case: tuple[str, str, str]) -> None:
    code, kind, text = case
    tools = ("dice: Roll the cubes.", SERVED[kind])
    assert answer(text, code, SkillContext(NOW, tools=tools)) is None


def test_it_names_the_tools_and_how_long_it_remembers() -> None:
    tools = ("open_door: Open the door.", *(f"tool_{n}: Number {n}." for n in range(99)))
    found = told("What can you do?", "en", SkillContext(NOW, tools=tools)).text
    assert "timers" in found and "open door" in found and "tool 9" not in found
    text = "Can you remember this for next week?"
    assert "until this conversation ends" in told(text).text
    assert "later conversations" in told(text, "en", SkillContext(NOW, keeps=True)).text


def test_who_it_is_is_said_by_the_model_if_the_user_wrote_its_prompt() -> None:
    for text in ("Who are you?", "What's your name?", "Are you a human?"):
        assert "voiceloop" in told(text).text
        assert answer(text, "en", SkillContext(NOW, persona=True)) is None


PICK = {
    "en": "Pick a number between {} and {}.",
    "de": "Nenn mir eine Zahl zwischen {} und {}.",
    "es": "Elige un número entre {} y {}.",
}
seeds = st.integers(0, 2**32 - 1)


def by_chance(text: str, seed: int, code: str = "en") -> str:
    return told(text, code, SkillContext(NOW, seed=seed)).text


def numbers(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", text)]


def test_every_side_falls() -> None:
    assert {by_chance("Flip a coin.", seed) for seed in range(30)} == {"Heads.", "Tails."}
    assert {numbers(by_chance("Roll a die.", n))[0] for n in range(99)} == {1, 2, 3, 4, 5, 6}


@given(st.sampled_from(CODES), st.integers(0, 1000), st.integers(0, 1000), seeds)
def test_a_number_is_between_those_that_were_said(code: str, a: int, b: int, seed: int) -> None:
    (found,) = numbers(by_chance(PICK[code].format(a, b), seed, code))
    assert min(a, b) <= found <= max(a, b)


@given(st.integers(2, 10), seeds)
def test_dice_are_told_with_their_total(count: int, seed: int) -> None:
    *each, total = numbers(by_chance(f"Roll {count} dice.", seed))
    assert len(each) == count and sum(each) == total and {*each} <= {*range(1, 7)}


@pytest.mark.parametrize("text", ["Roll 0 dice.", "Roll 99 dice.", "Roll a 1 sided die."])
def test_dice_that_nobody_has_are_left_to_the_model(text: str) -> None:
    assert answer(text, "en", SkillContext(NOW)) is None
