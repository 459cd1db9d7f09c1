"""What the assistant says that it is and can do, and wishes that it cannot fulfil."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.skills.asked import CODES, NOW, said, told
from voiceloop.skills.answer import answer
from voiceloop.skills.known import SkillContext
from voiceloop.skills.phrases import phrases_of, templates

pytestmark = pytest.mark.pure

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
    found = told(text, code, SkillContext(NOW, tools=("dice: Roll the cubes.",)))
    assert found.text == phrases_of(code).says[kind]
    assert not found.sets and not found.cancels and not found.remembers and not found.ends


@given(st.sampled_from(WISHES))
def test_a_wish_that_a_tool_may_fulfil_is_left_to_the_model(case: tuple[str, str, str]) -> None:
    code, kind, text = case
    tools = ("dice: Roll the cubes.", SERVED[kind])
    assert answer(text, code, SkillContext(NOW, tools=tools)) is None


def test_a_part_of_a_word_names_no_tool() -> None:
    tools = ("notes: Automatically recall what was said.",)
    assert told("Call my mom.", "en", SkillContext(NOW, tools=tools)).text.startswith("I cannot")


CAN = {"en": "What can you do?", "de": "Was kannst du?", "es": "¿Qué puedes hacer?"}
NAMED = {
    "en": ("timers", "alarms", "reminders", "sums", "units", "time", "remember"),
    "de": ("Timer", "Wecker", "Erinnerungen", "rechnen", "Einheiten", "Uhrzeit", "merken"),
    "es": ("temporizadores", "alarmas", "recordatorios", "cuentas", "unidades", "hora", "recordar"),
}


@pytest.mark.parametrize("code", CODES)
def test_it_names_what_it_can_do_and_the_tools(code: str) -> None:
    alone = told(CAN[code], code).text
    assert all(word in alone for word in NAMED[code])
    both = SkillContext(NOW, tools=("open_door: Open the door.", "lights: Switch lights."))
    assert told(CAN[code], code, both).text.startswith(alone)
    assert "open door" in told(CAN[code], code, both).text
    many = SkillContext(NOW, tools=tuple(f"tool_{n}: Number {n}." for n in range(99)))
    assert "tool 0" in told(CAN[code], code, many).text
    assert "tool 9" not in told(CAN[code], code, many).text


def test_who_it_is_is_said_by_the_model_if_the_user_wrote_its_prompt() -> None:
    for text in ("Who are you?", "What's your name?", "Are you a human?"):
        assert "voiceloop" in told(text).text
        assert answer(text, "en", SkillContext(NOW, persona=True)) is None


def test_how_long_it_remembers_is_what_the_conversation_does() -> None:
    text = "Can you remember this for next week?"
    assert "until this conversation ends" in told(text).text
    kept = told(text, "en", SkillContext(NOW, keeps=True))
    assert "later conversations" in kept.text and not kept.remembers
