"""Talks about timers, alarms and reminders that run: what is said of a change is what is set."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.skills.asked import CODES, NOW
from voiceloop.skills.answer import answer
from voiceloop.skills.known import Answer, SkillContext, Timer
from voiceloop.skills.phrases import phrases_of
from voiceloop.skills.running import FRESH, status

pytestmark = pytest.mark.pure


class Talk:
    """A conversation that keeps what its answers set and cancel, on a clock that stands."""

    def __init__(self, code: str = "en") -> None:
        self.code, self.known, self.set_so_far = code, SkillContext(NOW), 0

    def say(self, *texts: str) -> str:
        """Return what is answered to the last of `texts`; nothing if the language model answers."""
        found = None
        for text in texts:
            found = answer(text, self.code, self.known)
            since = self.known.since_timers
            if found is None or found.about is None:
                since = None if since is None else since + 1
                self.known = replace(self.known, just_set=None, pending=None, since_timers=since)
            else:
                self._take(found)
        return found.text if found else ""

    def ring(self) -> None:
        """Let the timer ring that is due first."""
        rung, *rest = self.known.timers
        self.known = replace(
            self.known, timers=rest, just_rung=rung, subject=rung.number, since_timers=0
        )

    def _take(self, found: Answer) -> None:
        runs = {one.number: one for one in self.known.timers if one.number not in found.cancels}
        subject, just_set = found.about[-1] if found.about else self.known.subject, None
        for one in found.sets:
            if not one.number:
                self.set_so_far += 1
                one = replace(one, number=self.set_so_far)
            runs[one.number] = one
            subject = just_set = one.number
        self.known = replace(
            self.known,
            timers=sorted(runs.values(), key=lambda one: one.due),
            subject=subject,
            just_set=just_set,
            since_timers=0,
            pending=found.pending,
        )

    @property
    def minutes(self) -> list[int]:
        """Minutes that are left, by the order in which the timers ring."""
        return [round((one.due - NOW).total_seconds() / 60) for one in self.known.timers]


SET = {
    "en": ("Set a timer for 10 minutes.", "Set an alarm for six thirty."),
    "de": ("Stell einen Timer auf 10 Minuten.", "Stell einen Alarm auf halb sieben."),
    "es": ("Pon un temporizador de 10 minutos.", "Pon una alarma a las seis y media."),
}
OTHER = "What time is it?"


@pytest.mark.parametrize(
    ("code", "text", "due"),
    [
        ("en", "Actually make it seven.", "26 19:00"),
        ("en", "Change my alarm to eight.", "26 20:00"),
        ("en", "No, tomorrow morning at seven.", "27 07:00"),
        ("en", "Half an hour earlier.", "26 18:00"),
        ("en", "Move it to Saturday.", "28 18:30"),
        ("de", "Kannst du den Alarm auf acht verschieben?", "26 20:00"),
        ("de", "Eine halbe Stunde früher.", "26 18:00"),
        ("es", "Mejor a las siete.", "26 19:00"),
        ("es", "Pásala al sábado.", "28 18:30"),
    ],
)
def test_an_alarm_is_changed_as_it_is_said(code: str, text: str, due: str) -> None:
    talk = Talk(code)
    said = talk.say(SET[code][1], text)
    (alarm,) = talk.known.timers
    assert f"{alarm.due:%d %H:%M}" == due
    assert all(phrases_of(code).time(alarm.due) in one for one in (said, alarm.rings))


@pytest.mark.parametrize(
    ("code", "text", "minutes"),
    [
        ("en", "Add five minutes to the timer.", 15),
        ("en", "Make it seven.", 7),
        ("en", "Two minutes less.", 8),
        ("en", "Twelve.", 12),
        ("en", "I meant fifteen, not fifty.", 15),
        ("de", "Verlängere ihn um fünf Minuten.", 15),
        ("de", "Nicht zehn, zwölf.", 12),
        ("es", "Que sean siete.", 7),
        ("es", "Quítale dos minutos.", 8),
    ],
)
def test_a_timer_is_changed_as_it_is_said(code: str, text: str, minutes: int) -> None:
    talk = Talk(code)
    said = talk.say(SET[code][0], text)
    assert talk.minutes == [minutes]
    span = phrases_of(code).span(60 * minutes)
    assert all(span in one for one in (said, talk.known.timers[0].rings))


def test_a_paused_timer_keeps_what_is_left() -> None:
    talk = Talk()
    talk.say(SET["en"][0])
    for text, left in [("Pause the timer.", 10), ("Add five minutes.", 15), ("Resume it.", 15)]:
        assert f"{left} minutes" in talk.say(text)
        (one,) = talk.known.timers
        assert one.paused_s == (None if "Resume" in text else 60 * left)
    assert talk.minutes == [15]


def test_several_timers_are_set_at_once_and_after_another() -> None:
    talk = Talk()
    talk.say("Set a timer for 10 minutes and another for 15.", "And another for twenty.")
    assert talk.minutes == [10, 15, 20]


@pytest.mark.parametrize(
    ("choice", "left"),
    [
        ("The second one.", [5, 15]),
        ("The ten minute one.", [5, 15]),
        ("The soup.", [10, 15]),
        ("Seven minutes.", [5, 10, 15]),
        ("The ninth one.", [5, 10, 15]),
        ("The alarm.", [5, 10, 15]),
    ],
)
def test_after_which_one_the_choice_is_canceled_and_nothing_else(
    choice: str, left: list[int]
) -> None:
    talk = Talk()
    names = {5: "soup", 10: "", 15: ""}
    timers = [
        Timer(m, "timer", NOW + timedelta(minutes=m), 60 * m, name) for m, name in names.items()
    ]
    talk.known = replace(talk.known, timers=timers)
    assert "?" in talk.say("Cancel the timer.") and talk.minutes == [5, 10, 15]
    talk.say(choice)
    assert talk.minutes == left


def test_the_second_is_of_the_kind_that_was_asked_about_and_gets_what_was_said_before() -> None:
    talk = Talk()
    talk.say("Set an alarm for 6 pm.", "Set an alarm for 7 pm.", "Set a timer for 5 minutes.")
    assert "?" in talk.say("Change the alarm to 8 pm.")
    talk.say("The second one.")
    assert [one.due.hour for one in talk.known.timers if one.what == "alarm"] == [18, 20]


def test_cancel_that_three_turns_later_says_what_is_set() -> None:
    talk = Talk()
    said = talk.say(SET["en"][0], *3 * (OTHER,), "Cancel that.")
    assert status(talk.known.timers, NOW, phrases_of("en")) in said and talk.minutes == [10]
    talk = Talk()
    assert talk.say(SET["en"][0], "Cancel that.") and not talk.known.timers
    assert talk.say("Cancel that.")


def test_a_repeated_alarm_keeps_its_days() -> None:
    talk = Talk()
    for text, hour in [
        ("Set an alarm for every weekday at seven.", 7),
        ("Make it eight.", 8),
        ("And on Sunday?", 8),
    ]:
        talk.say(text)
        (one,) = talk.known.timers
        assert one.days == (0, 1, 2, 3, 4) and (one.due.day, one.due.hour) == (27, hour)


def test_after_a_ring_five_more_minutes_are_for_what_rang() -> None:
    talk = Talk()
    talk.say(*SET["en"])
    talk.ring()
    assert "5 minutes" in talk.say("Five more minutes.")
    assert talk.minutes[0] == 5 and len(talk.minutes) == 2
    talk.say(SET["en"][0], "Five more minutes.")
    assert talk.minutes[:2] == [5, 15]


@pytest.mark.parametrize("turns", range(FRESH + 3))
def test_a_change_without_a_name_is_soon_no_longer_about_timers(turns: int) -> None:
    talk = Talk()
    talk.say(SET["en"][0], *turns * (OTHER,), "Make it seven.")
    assert talk.minutes == [7 if turns <= FRESH else 10]


CHANGES = {
    "en": ("make it {}", "add {} minutes", "{} minutes less", "no, {}", "pause it", "at {}",
           "tomorrow at {}", "move it to Monday", "resume", "restart it", "call it soup",
           "every day at {}", "another one for {} minutes", "remind me every {} minutes to rest",
           "an hour later", "cancel it", "continue", "repeat that"),
    "de": ("mach {} draus", "noch {} Minuten", "{} Minuten weniger", "nein, {}", "halt ihn an",
           "um {}", "morgen um {}", "verschieb ihn auf Montag", "setz ihn fort", "starte ihn neu",
           "nenn ihn Suppe", "jeden Tag um {}", "noch einen auf {}",
           "erinnere mich alle {} Minuten an Ruhe", "eine Stunde später", "lösch ihn"),
    "es": ("que sean {}", "{} minutos más", "{} minutos menos", "no, {}", "ponlo en pausa",
           "a las {}", "mañana a las {}", "pásala al lunes", "que siga", "reinícialo",
           "llámalo sopa", "todos los días a las {}", "otro de {}",
           "recuérdame cada {} minutos descansar", "una hora más tarde", "cancélalo"),
}  # fmt: skip


@given(st.sampled_from(CODES), st.data())
def test_whatever_is_confirmed_is_set(code: str, data: st.DataObject) -> None:
    """Each timer that an answer sets is named in its words; all others stay as they were."""
    talk, phrases = Talk(code), phrases_of(code)
    numbers = st.sampled_from((1, 7, 12, 45))
    for text in [*SET[code], *data.draw(st.lists(st.sampled_from(CHANGES[code]), max_size=6))]:
        text, before = text.format(data.draw(numbers)), talk.known.timers
        found = answer(text, code, talk.known)
        said = talk.say(text)
        changed = [one for one in talk.known.timers if one not in before]
        if found is None:
            assert talk.known.timers == before
            continue
        assert len(changed) == len([one for one in found.sets if one not in before])
        for one in changed:
            left = phrases.span(one.seconds if one.paused_s is None else one.paused_s)
            every = phrases.interval(one.every_s)
            names = {left, phrases.time(one.due), every, one.name or left}
            assert any(name in said for name in names), (text, said)
            assert one.paused_s is not None or one.due > NOW
            if one.days:
                assert phrases.weekly(one.days) in said


VERBS = {
    "en": "set change cancel pause resume restart extend snooze move rename delete stop".split(),
    "de": "stell ändere lösche pausiere starte verlängere verschieb benenne stopp mach".split(),
    "es": "pon cambia cancela pausa reanuda reinicia alarga mueve renombra borra quita".split(),
}
NOUNS = {
    "en": ("the timer", "my alarm", "the reminder", "my pasta timer", "that alarm", "all timers"),
    "de": ("den Timer", "meinen Wecker", "die Erinnerung", "den Nudeltimer", "alle Timer"),
    "es": ("el temporizador", "mi alarma", "el recordatorio", "todos los temporizadores"),
}
REST = ("", "banana", "for the whole wide world", "auf den Mond", "hasta la luna", "42", "12:99")


@given(st.sampled_from(CODES), st.data())
def test_an_effect_on_a_timer_never_reaches_the_model(code: str, data: st.DataObject) -> None:
    verb, noun = data.draw(st.sampled_from(VERBS[code])), data.draw(st.sampled_from(NOUNS[code]))
    rest = " ".join(data.draw(st.lists(st.sampled_from(REST), max_size=3)))
    talk = Talk(code)
    talk.say(*data.draw(st.sampled_from([(), SET[code]])))
    assert talk.say(f"{verb} {noun} {rest}")


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("what", ["timer", "alarm", "reminder"])
def test_whoever_says_what_a_hint_says_is_understood(code: str, what: str) -> None:
    says, talk = phrases_of(code).says, Talk(code)
    for text in says[f"{what} hint"].rstrip(".").partition(": ")[2].split(", "):
        before = talk.known.timers
        said = talk.say(text.removeprefix("or "))
        assert said and talk.known.timers != before, text
    assert len(talk.known.timers) < len(before)
