"""Talks about timers, alarms and reminders that run: what is said of a change is what is set."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import product

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

    def say(self, text: str) -> str:
        """Return what is answered; nothing if the language model answers."""
        found = answer(text, self.code, self.known)
        since = self.known.since_timers
        if found is None or found.about is None:
            since = None if since is None else since + 1
            self.known = replace(self.known, just_set=None, pending=None, since_timers=since)
        else:
            self._take(found)
        return found.text if found else ""

    def say_all(self, *texts: str) -> str:
        """Return what is answered to the last of `texts`."""
        return [self.say(text) for text in texts][-1]

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

    @property
    def due(self) -> list[str]:
        return [f"{one.due:%d %H:%M}" for one in self.known.timers]


SET = {
    "en": ("Set a timer for 10 minutes.", "Set an alarm for six thirty."),
    "de": ("Stell einen Timer auf 10 Minuten.", "Stell einen Alarm auf halb sieben."),
    "es": ("Pon un temporizador de 10 minutos.", "Pon una alarma a las seis y media."),
}


@pytest.mark.parametrize(
    ("code", "text", "due"),
    [
        ("en", "Actually make it seven.", "26 19:00"),
        ("en", "Change my alarm to eight.", "26 20:00"),
        ("en", "No, tomorrow morning at seven.", "27 07:00"),
        ("en", "Half an hour earlier.", "26 18:00"),
        ("en", "Push it back by an hour.", "26 19:30"),
        ("en", "Move it to Saturday.", "28 18:30"),
        ("de", "Doch lieber um sieben.", "26 19:00"),
        ("de", "Mach acht draus.", "26 20:00"),
        ("de", "Kannst du den Alarm auf acht verschieben?", "26 20:00"),
        ("de", "Eine halbe Stunde früher.", "26 18:00"),
        ("de", "Verschieb ihn auf Samstag.", "28 18:30"),
        ("es", "Mejor a las siete.", "26 19:00"),
        ("es", "Cambia mi alarma a las ocho.", "26 20:00"),
        ("es", "Media hora antes.", "26 18:00"),
        ("es", "Pásala al sábado.", "28 18:30"),
    ],
)
def test_an_alarm_is_changed_as_it_is_said(code: str, text: str, due: str) -> None:
    talk = Talk(code)
    said = talk.say_all(SET[code][1], text)
    assert talk.due == [due]
    assert phrases_of(code).time(talk.known.timers[0].due) in said
    assert phrases_of(code).time(talk.known.timers[0].due) in talk.known.timers[0].rings


@pytest.mark.parametrize(
    ("code", "text", "minutes"),
    [
        ("en", "Add five minutes to the timer.", 15),
        ("en", "No wait, make it twelve minutes.", 12),
        ("en", "Make it seven.", 7),
        ("en", "Two minutes less.", 8),
        ("en", "Twelve.", 12),
        ("en", "I meant fifteen, not fifty.", 15),
        ("de", "Noch zehn Minuten.", 20),
        ("de", "Mach sieben draus.", 7),
        ("de", "Verlängere ihn um fünf Minuten.", 15),
        ("de", "Kannst du den Timer um zwei Minuten verkürzen?", 8),
        ("de", "Nicht zehn, zwölf.", 12),
        ("es", "Diez minutos más.", 20),
        ("es", "Que sean siete.", 7),
        ("es", "Añade cinco minutos al temporizador.", 15),
        ("es", "Quítale dos minutos.", 8),
        ("es", "No diez, doce.", 12),
    ],
)
def test_a_timer_is_changed_as_it_is_said(code: str, text: str, minutes: int) -> None:
    talk = Talk(code)
    said = talk.say_all(SET[code][0], text)
    assert talk.minutes == [minutes]
    assert phrases_of(code).span(60 * minutes) in said
    assert phrases_of(code).span(60 * minutes) in talk.known.timers[0].rings


@pytest.mark.parametrize(
    ("code", "texts"),
    [
        ("en", ("Pause the timer.", "Add five minutes.", "How long still?", "Resume it.")),
        ("de", ("Halt ihn an.", "Noch fünf Minuten.", "Wie lange noch?", "Lass ihn weiterlaufen.")),
        ("es", ("Ponlo en pausa.", "Cinco minutos más.", "¿Cuánto queda?", "Que siga.")),
    ],
)
def test_a_paused_timer_keeps_what_is_left(code: str, texts: tuple[str, ...]) -> None:
    talk, span = Talk(code), phrases_of(code).span
    talk.say(SET[code][0])
    for text, left in zip(texts, (10, 15, 15, 15), strict=True):
        assert span(60 * left) in talk.say(text)
        (one,) = talk.known.timers
        assert one.paused_s == (None if text == texts[-1] else 60 * left)
    assert talk.minutes == [15]


@pytest.mark.parametrize(
    ("code", "texts"),
    [
        ("en", ("Set a timer for 10 minutes and another for 15.", "And another for twenty.")),
        ("de", ("Stell einen Timer auf 10 Minuten und noch einen auf 15.", "Noch einen auf 20.")),
        ("es", ("Pon un temporizador de 10 minutos y otro de 15.", "Ponme otro de veinte.")),
    ],
)
def test_several_timers_are_set_at_once_and_after_another(
    code: str, texts: tuple[str, str]
) -> None:
    talk = Talk(code)
    talk.say_all(*texts)
    assert talk.minutes == [10, 15, 20]


CHOICES = {
    "en": ("Cancel the timer.", "The second one.", "The ten minute one.", "The soup."),
    "de": ("Lösch den Timer.", "Den zweiten.", "Den auf zehn Minuten.", "Die Suppe."),
    "es": ("Cancela el temporizador.", "El segundo.", "El de diez minutos.", "El de la sopa."),
}
SOUP = {"en": "soup", "de": "Suppe", "es": "sopa"}


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize(("choice", "left"), [(1, [5, 15]), (2, [5, 15]), (3, [10, 15])])
def test_after_which_one_the_choice_is_canceled(code: str, choice: int, left: list[int]) -> None:
    talk = Talk(code)
    talk.known = replace(
        talk.known,
        timers=[
            Timer(n, "timer", NOW + timedelta(minutes=m), 60 * m, SOUP[code] * (m == 5))
            for n, m in enumerate((5, 10, 15), 1)
        ],
    )
    assert "?" in talk.say(CHOICES[code][0]) and talk.minutes == [5, 10, 15]
    talk.say(CHOICES[code][choice])
    assert talk.minutes == left


def test_a_choice_that_there_is_not_cancels_nothing() -> None:
    for text in ("Seven minutes.", "The ninth one.", "The banana one.", "The alarm."):
        talk = Talk()
        soon = [Timer(n, "timer", NOW + timedelta(minutes=5 * n), 300 * n) for n in (1, 2)]
        talk.known = replace(talk.known, timers=soon)
        talk.say_all("Cancel the timer.", text)
        assert talk.minutes == [5, 10]


def test_the_second_is_of_the_kind_that_was_asked_about() -> None:
    talk = Talk()
    talk.say_all("Set an alarm for 6 pm.", "Set an alarm for 7 pm.", "Set a timer for 5 minutes.")
    assert "?" in talk.say("Cancel the alarm.")
    talk.say("The second one.")
    assert [one.due.hour for one in talk.known.timers if one.what == "alarm"] == [18]
    assert len(talk.known.timers) == 2


CHANGE_ONE = {
    "en": ("Change the alarm to 8 pm.", "The first one."),
    "de": ("Ändere den Wecker auf 20 Uhr.", "Den ersten."),
    "es": ("Cambia la alarma a las 8 de la tarde.", "La primera."),
}


@pytest.mark.parametrize("code", CODES)
def test_the_choice_is_changed_to_what_was_said_before_the_question(code: str) -> None:
    talk = Talk(code)
    alarms = [Timer(n, "alarm", NOW.replace(hour=16 + n, minute=0), 3600 * n) for n in (1, 2)]
    talk.known = replace(talk.known, timers=alarms)
    first, choice = CHANGE_ONE[code]
    assert "?" in talk.say(first)
    talk.say(choice)
    assert sorted(one.due.hour for one in talk.known.timers) == [18, 20]


UNDO = {"en": "Cancel that.", "de": "Brich das ab.", "es": "Cancela eso."}
OTHER = {"en": "What time is it?", "de": "Wie spät ist es?", "es": "¿Qué hora es?"}


@pytest.mark.parametrize("code", CODES)
def test_cancel_that_three_turns_later_says_what_is_set(code: str) -> None:
    talk = Talk(code)
    said = talk.say_all(SET[code][0], *3 * (OTHER[code],), UNDO[code])
    assert status(talk.known.timers, NOW, phrases_of(code)) in said and talk.minutes == [10]
    talk = Talk(code)
    assert talk.say_all(SET[code][0], UNDO[code]) and not talk.known.timers
    assert talk.say(UNDO[code])


EVERY = {
    "en": ("Set an alarm for every weekday at seven.", "Make it eight.", "And on Sunday?"),
    "de": ("Weck mich jeden Werktag um sieben.", "Lieber um acht.", "Und am Sonntag?"),
    "es": ("Despiértame de lunes a viernes a las siete.", "Mejor a las ocho.", "¿Y el domingo?"),
}


@pytest.mark.parametrize("code", CODES)
def test_a_repeated_alarm_keeps_its_days(code: str) -> None:
    talk = Talk(code)
    for text in EVERY[code]:
        talk.say(text)
        (one,) = talk.known.timers
        assert one.days == (0, 1, 2, 3, 4)
        assert one.due.day == 27 and one.due.hour == (7 if text == EVERY[code][0] else 8)


MORE = {
    "en": ("Five more minutes.", "Continue.", "Repeat that."),
    "de": ("Noch fünf Minuten.", "Weiter.", "Wiederhol das."),
    "es": ("Cinco minutos más.", "Sigue.", "Repite eso."),
}


@pytest.mark.parametrize("code", CODES)
def test_after_a_ring_five_more_minutes_are_for_what_rang(code: str) -> None:
    talk = Talk(code)
    talk.say_all(*SET[code])
    talk.ring()
    assert phrases_of(code).span(300) in talk.say(MORE[code][0])
    assert talk.minutes[0] == 5 and len(talk.minutes) == 2
    talk.say_all(SET[code][0], MORE[code][0])
    assert talk.minutes[:2] == [5, 15]


@pytest.mark.parametrize("code", CODES)
def test_words_that_may_mean_the_talk_do_not_touch_a_timer(code: str) -> None:
    talk = Talk(code)
    talk.say(SET[code][0])
    before = talk.known.timers
    talk.say_all(*MORE[code][1:])
    assert talk.known.timers == before


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("turns", range(FRESH + 3))
def test_a_change_without_a_name_is_soon_no_longer_about_timers(code: str, turns: int) -> None:
    talk = Talk(code)
    talk.say(SET[code][0])
    text = {"en": "Make it seven.", "de": "Mach sieben draus.", "es": "Que sean siete."}[code]
    talk.say_all(*turns * (OTHER[code],), text)
    assert talk.minutes == [7 if turns <= FRESH else 10]


CHANGES = {
    code: [
        text.format(n)
        for n, text in product(
            (1, 7, 12, 45),
            {
                "en": ("make it {}", "add {} minutes", "{} minutes less", "no, {}", "pause it",
                       "at {}", "tomorrow at {}", "move it to Monday", "resume", "restart it",
                       "call it soup", "every day at {}", "another one for {} minutes",
                       "remind me every {} minutes to rest", "an hour later", "cancel it"),
                "de": ("mach {} draus", "noch {} Minuten", "{} Minuten weniger", "nein, {}",
                       "halt ihn an", "um {}", "morgen um {}", "verschieb ihn auf Montag",
                       "setz ihn fort", "starte ihn neu", "nenn ihn Suppe", "jeden Tag um {}",
                       "noch einen auf {}", "erinnere mich alle {} Minuten an Ruhe",
                       "eine Stunde später", "lösch ihn"),
                "es": ("que sean {}", "{} minutos más", "{} minutos menos", "no, {}",
                       "ponlo en pausa", "a las {}", "mañana a las {}", "pásala al lunes",
                       "que siga", "reinícialo", "llámalo sopa", "todos los días a las {}",
                       "otro de {}", "recuérdame cada {} minutos descansar",
                       "una hora más tarde", "cancélalo"),
            }[code],
        )
    ]
    for code in CODES
}  # fmt: skip


@given(st.sampled_from(CODES), st.data())
def test_whatever_is_confirmed_is_set(code: str, data: st.DataObject) -> None:
    """Each timer that an answer sets is named in its words; all others stay as they were."""
    talk, phrases = Talk(code), phrases_of(code)
    for text in [*SET[code], *data.draw(st.lists(st.sampled_from(CHANGES[code]), max_size=6))]:
        before = talk.known.timers
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
    talk.say_all(*data.draw(st.sampled_from([(OTHER[code],), SET[code]])))
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
