"""Timers, alarms and reminders: what is set, what is left, what is canceled."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.skills.asked import ALONE, CODES, NOW, told
from voiceloop.skills.answer import answer
from voiceloop.skills.known import SkillContext, Timer
from voiceloop.skills.phrases import phrases_of
from voiceloop.skills.timers import after_ring

pytestmark = pytest.mark.pure

EGGS = Timer(1, "timer", NOW + timedelta(seconds=90), 360, "eggs", "The eggs timer is over.")
PLAIN = Timer(2, "timer", NOW + timedelta(seconds=300), 600)
ALARM = Timer(3, "alarm", NOW.replace(hour=18, minute=30), 10_080)
RUNNING = SkillContext(NOW, timers=(EGGS, PLAIN, ALARM))


@given(st.sampled_from(CODES), st.integers(1, 86_400))
def test_what_is_said_of_a_span_is_understood_as_that_span(code: str, seconds: int) -> None:
    phrases = phrases_of(code)
    text = {"en": "timer for {}", "de": "Timer auf {}", "es": "temporizador de {}"}[code]
    (sets,) = told(text.format(phrases.span(seconds).replace(",", "")), code).sets
    assert sets.seconds == seconds


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
    (sets,) = told(text, code).sets
    assert (sets.seconds, sets.name) == (seconds, name)


@pytest.mark.parametrize(
    ("code", "text", "due"),
    [
        ("en", "Wake me at seven", "27 07:00"),
        ("en", "Set an alarm for seven", "26 19:00"),
        ("en", "Set an alarm for 6:30 pm", "26 18:30"),
        ("en", "Wake me tomorrow at ten to eight", "27 07:50"),
        ("en", "Set an alarm for 7 tomorrow evening", "27 19:00"),
        ("en", "Wake me up on Monday at half past six", "30 06:30"),
        ("de", "Weck mich um halb sieben", "27 06:30"),
        ("de", "Stell den Wecker auf fünf vor halb acht", "27 07:25"),
        ("es", "Despiértame a las siete menos cuarto", "27 06:45"),
        ("es", "Pon una alarma a las ocho y media de la tarde", "26 20:30"),
    ],
)
def test_alarms_ring_at_their_time(code: str, text: str, due: str) -> None:
    (sets,) = told(text, code).sets
    assert sets.what == "alarm"
    assert f"{sets.due:%d %H:%M}" == due
    assert sets.due == NOW + timedelta(seconds=sets.seconds)


def test_no_alarm_is_set_that_could_not_ring() -> None:
    for text in ("Set an alarm for the 3rd of March at 7", "Wake me yesterday at 7"):
        found = told(text)
        assert not found.sets and found.text.startswith("I have changed nothing.")


def test_a_reminder_is_said_to_whom_it_is_for() -> None:
    (sets,) = told("Remind me to call my mother in ten minutes.").sets
    assert (sets.what, sets.seconds, sets.name) == ("reminder", 600, "call your mother")
    assert sets.rings == "I was to remind you: call your mother."


def test_no_timer_runs_for_too_long_and_there_are_not_too_many() -> None:
    assert not told("Set a timer for two days.").sets
    full = SkillContext(NOW, timers=[replace(PLAIN, number=number) for number in range(20)])
    assert not told("Set a timer for ten minutes.", "en", full).sets


@pytest.mark.parametrize(
    ("asks", "text", "due"),
    [
        ("Set a timer.", "Ten minutes.", "26 15:52"),
        ("Set a timer.", "Ten.", "26 15:52"),
        ("Set an alarm.", "Seven.", "26 19:00"),
        ("Wake me up.", "Seven.", "27 07:00"),
        ("Remind me to call Anna.", "Tomorrow morning.", "27 08:00"),
    ],
)
def test_a_time_is_asked_for_where_there_is_none_and_understood_right_after(
    asks: str, text: str, due: str
) -> None:
    asked = told(asks)
    assert asked.pending is not None and not asked.sets
    (sets,) = told(text, "en", SkillContext(NOW, pending=asked.pending)).sets
    assert f"{sets.due:%d %H:%M}" == due
    assert sets.name == ("call Anna" if "Anna" in asks else "")
    assert answer(text, "en", SkillContext(NOW)) is None


@pytest.mark.parametrize(
    ("code", "text", "days", "due"),
    [
        ("en", "Set an alarm for every weekday at seven.", (0, 1, 2, 3, 4), "27 07:00"),
        ("en", "Set an alarm at seven on Mondays and Wednesdays.", (0, 2), "30 07:00"),
        ("en", "Set an alarm at seven on Monday.", (), "30 07:00"),
        ("de", "Weck mich am Wochenende immer um neun.", (5, 6), "28 09:00"),
        ("de", "Weck mich Montagmorgen um sieben.", (), "30 07:00"),
        ("es", "Despiértame los sábados a las nueve.", (5,), "28 09:00"),
        ("es", "Pon una alarma de lunes a viernes a las siete.", (0, 1, 2, 3, 4), "27 07:00"),
    ],
)
def test_alarms_are_repeated_on_their_weekdays(
    code: str, text: str, days: tuple[int, ...], due: str
) -> None:
    (sets,) = told(text, code).sets
    assert (sets.days, f"{sets.due:%d %H:%M}") == (days, due)


@given(st.sets(st.integers(0, 6), min_size=1), st.integers(0, 20))
def test_a_repeated_alarm_rings_next_on_one_of_its_days(days: set[int], rings: int) -> None:
    alarm = replace(ALARM, days=tuple(sorted(days)))
    for _ in range(rings):
        after = after_ring(alarm)
        assert after is not None and after.due.weekday() in days
        between = range(1, (after.due.date() - alarm.due.date()).days)
        assert not {(alarm.due + timedelta(days=n)).weekday() for n in between} & days
        alarm = after
    assert after_ring(PLAIN) is None
    assert after_ring(replace(EGGS, every_s=60)) == replace(
        EGGS, every_s=60, due=EGGS.due + timedelta(seconds=60)
    )


@pytest.mark.parametrize(
    ("code", "text", "name", "due"),
    [
        ("en", "Remind me tomorrow to call Bob.", "call Bob", "27 09:00"),
        ("en", "Remind me to call Bob at five.", "call Bob", "26 17:00"),
        ("en", "Remind me to call Bob at one.", "call Bob", "27 13:00"),
        ("en", "Remind me every Monday to put out the bins.", "put out the bins", "30 09:00"),
        ("en", "Remind me every hour to drink.", "drink", "26 16:42"),
        ("de", "Erinnere mich daran, um 18 Uhr Anna anzurufen.", "Anna anzurufen", "26 18:00"),
        ("de", "Kannst du mich morgen früh an den Müll erinnern?", "den Müll", "27 08:00"),
        ("es", "Recuérdame llamar a Ana mañana.", "llamar a Ana", "27 09:00"),
        ("es", "Recuérdame esta noche que riegue.", "riegue", "26 21:00"),
    ],
)
def test_reminders_are_due_when_it_was_said(code: str, text: str, name: str, due: str) -> None:
    (sets,) = told(text, code).sets
    assert (sets.what, sets.name, f"{sets.due:%d %H:%M}") == ("reminder", name, due)


def test_whoever_must_keep_the_conversation_open_is_told() -> None:
    kept = SkillContext(NOW, keeps=True)
    assert "open" in told("Set an alarm for 8 pm.").text  # it is 3:42 PM
    assert "open" not in told("Set an alarm for 7 pm.").text
    assert "open" not in told("Set an alarm for 8 pm.", "en", kept).text


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
        ("When is the reminder?", "There is no such timer. There are 3: "),
    ],
)
def test_what_is_left_is_told(text: str, left: str) -> None:
    assert told(text, "en", replace(RUNNING, since_timers=0)).text.startswith(left)
    assert told("When is my alarm?").text == "No alarm is set."


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
    kept = told("Cancel that.", "en", RUNNING)
    assert not kept.cancels and kept.text.startswith("I have canceled nothing. There are 3")
    assert not told("Cancel that.").cancels and told("Cancel that.").text


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("en", "My pizza is in the oven. Set a timer for twelve minutes."),
        ("de", "Ich backe gerade, stell einen Timer auf zwölf Minuten."),
        ("es", "La pizza está en el horno. Pon un temporizador de doce minutos."),
    ],
)
def test_a_request_beside_another_sentence_is_granted(code: str, text: str) -> None:
    assert [one.seconds for one in told(text, code).sets] == [720]


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("en", "Set a timer for ten minutes. No wait, don't."),
        ("en", "How do you say, set a timer for ten minutes?"),
        ("en", "If it rains, wake me at six."),
        ("de", "Wenn es regnet, weck mich um sechs."),
        ("es", "Pon un temporizador de diez minutos. No, mejor no."),
        ("es", "Si llueve, despiértame a las seis."),
    ],
)
def test_what_another_sentence_takes_back_quotes_or_qualifies_is_not_granted(
    code: str, text: str
) -> None:
    found = answer(text, code, ALONE)
    assert found is None or not found.sets
