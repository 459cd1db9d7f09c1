"""Timers, alarms and reminders: what is set, what is left, what is canceled."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.skills.asked import CODES, NOW, told
from voiceloop.skills.answer import answer
from voiceloop.skills.known import SkillContext, Timer
from voiceloop.skills.phrases import PHRASES

pytestmark = pytest.mark.pure

EGGS = Timer(1, "timer", NOW + timedelta(seconds=90), 360, "eggs", "The eggs timer is over.")
PLAIN = Timer(2, "timer", NOW + timedelta(seconds=300), 600)
ALARM = Timer(3, "alarm", NOW.replace(hour=18, minute=30), 10_080)
RUNNING = SkillContext(NOW, timers=(EGGS, PLAIN, ALARM))


@given(st.integers(1, 23), st.integers(1, 59), st.integers(1, 59))
def test_a_timer_runs_as_long_as_was_said(hours: int, minutes: int, seconds: int) -> None:
    text = f"Set a timer for {hours} hours, {minutes} minutes and {seconds} seconds."
    sets = told(text).sets
    assert sets is not None and sets.seconds == hours * 3600 + minutes * 60 + seconds
    assert sets.due == NOW + timedelta(seconds=sets.seconds)


@given(st.sampled_from(CODES), st.integers(1, 86_400))
def test_what_is_said_of_a_span_is_understood_as_that_span(code: str, seconds: int) -> None:
    phrases = PHRASES[code]
    text = {"en": "timer for {}", "de": "Timer auf {}", "es": "temporizador de {}"}[code]
    sets = told(text.format(phrases.span(seconds).replace(",", "")), code).sets
    assert sets is not None and sets.seconds == seconds


@pytest.mark.parametrize(
    ("code", "text", "seconds", "name"),
    [
        ("en", "Set a pasta timer for an hour and a half", 5400, "pasta"),
        ("en", "Set a timer called Big Ben for 2.5 minutes", 150, "Big Ben"),
        ("en", "Set an eight minute timer for the eggs", 480, "eggs"),
        ("de", "Stell einen Nudel-Timer auf anderthalb Stunden", 5400, "Nudel"),
        ("de", "Timer auf eine Dreiviertelstunde", 2700, ""),
        ("es", "temporizador de hora y media", 5400, ""),
        ("es", "Pon un temporizador para la pasta de un cuarto de hora", 900, "pasta"),
    ],
)
def test_spans_and_names(code: str, text: str, seconds: int, name: str) -> None:
    sets = told(text, code).sets
    assert sets is not None and (sets.seconds, sets.name) == (seconds, name)


@pytest.mark.parametrize(
    ("code", "text", "due"),
    [
        ("en", "Wake me at seven", "27 07:00"),
        ("en", "Set an alarm for seven", "26 19:00"),
        ("en", "Set an alarm for 6:30 pm", "26 18:30"),
        ("en", "Set an alarm for quarter to five", "26 16:45"),
        ("en", "Wake me tomorrow at ten to eight", "27 07:50"),
        ("en", "Set an alarm for 7 tomorrow evening", "27 19:00"),
        ("en", "Set an alarm for noon", "27 12:00"),
        ("en", "Wake me up on Monday at half past six", "30 06:30"),
        ("de", "Weck mich um halb sieben", "27 06:30"),
        ("de", "Stell den Wecker auf fünf vor halb acht", "27 07:25"),
        ("de", "Weck mich morgen um Viertel nach sechs", "27 06:15"),
        ("es", "Despiértame a las siete menos cuarto", "27 06:45"),
        ("es", "Pon una alarma a las ocho y media de la tarde", "26 20:30"),
    ],
)
def test_alarms_ring_at_their_time(code: str, text: str, due: str) -> None:
    sets = told(text, code).sets
    assert sets is not None and sets.what == "alarm"
    assert f"{sets.due:%d %H:%M}" == due
    assert sets.due == NOW + timedelta(seconds=sets.seconds)


@pytest.mark.parametrize(
    "text", ["Set an alarm for the 3rd of March at 7", "Wake me yesterday at 7"]
)
def test_no_alarm_is_set_that_could_not_ring(text: str) -> None:
    assert answer(text, "en", SkillContext(NOW)) is None


def test_a_reminder_is_said_to_whom_it_is_for() -> None:
    sets = told("Remind me to call my mother in ten minutes.").sets
    assert sets is not None
    assert (sets.what, sets.seconds, sets.name) == ("reminder", 600, "call your mother")
    assert sets.rings == "I was to remind you: call your mother."


def test_no_timer_runs_for_too_long_and_there_are_not_too_many() -> None:
    assert told("Set a timer for two days.").sets is None
    full = SkillContext(NOW, timers=[replace(PLAIN, number=number) for number in range(20)])
    assert told("Set a timer for ten minutes.", "en", full).sets is None


def test_a_time_is_asked_for_where_there_is_none_and_understood_right_after() -> None:
    asked = told("Set a timer.")
    assert asked.asks_for_time and asked.sets is None
    sets = told("Ten minutes.", "en", SkillContext(NOW, asks_for_time=True)).sets
    assert sets is not None and sets.seconds == 600
    assert answer("Ten minutes.", "en", SkillContext(NOW)) is None


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (
            "How much time is left on the eggs timer?",
            "1 minute and 30 seconds left on the eggs timer.",
        ),
        ("When is my alarm?", "2 hours and 48 minutes left on the alarm at 6:30 PM."),
        ("What timers do I have?", "There are 2: "),
        ("How much time is left?", "There are 3: "),
    ],
)
def test_what_is_left_is_told(text: str, left: str) -> None:
    assert told(text, "en", RUNNING).text.startswith(left)


def test_of_a_single_timer_only_the_time_is_told() -> None:
    known = SkillContext(NOW, timers=(PLAIN,))
    assert told("How much time is left?", "en", known).text == "5 minutes left."
    assert told("How much time is left?").text == "No timer is running."


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("Cancel the eggs timer.", {1}),
        ("Cancel the ten minute timer.", {2}),
        ("Turn off the alarm.", {3}),
        ("Cancel the alarm at 6:30.", {3}),
        ("Cancel all timers.", {1, 2}),
        ("Cancel the timer.", set()),
        ("Cancel the soup timer.", set()),
    ],
)
def test_what_is_meant_is_canceled(text: str, numbers: set[int]) -> None:
    found = told(text, "en", RUNNING)
    assert found.cancels == numbers and found.text


def test_what_was_set_just_now_can_be_taken_back() -> None:
    undone = told("Cancel that.", "en", replace(RUNNING, just_set=2))
    assert undone.cancels == {2} and undone.text
    assert told("Cancel that.", "en", RUNNING).text == ""
