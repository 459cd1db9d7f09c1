"""The time and the date, by the clock that is passed in."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.skills.asked import CODES, told
from voiceloop.errors import ConfigError
from voiceloop.skills.clock import zone
from voiceloop.skills.known import MORNING, Clock, Day, SkillContext, easter, thanksgiving
from voiceloop.skills.phrases import phrases_of

pytestmark = pytest.mark.pure

days = st.dates(date(1990, 1, 1), date(2090, 1, 1))
moments = st.datetimes(datetime(1990, 1, 1), datetime(2090, 1, 1)).map(
    lambda moment: moment.replace(tzinfo=ZoneInfo("UTC"))
)


@pytest.mark.parametrize(
    ("code", "text", "answer"),
    [
        ("en", "What time is it?", "It's 3:42 PM."),
        ("de", "Wie spät ist es?", "Es ist 15:42 Uhr."),
        ("es", "¿Qué hora es?", "Son las 3:42 de la tarde."),
        ("en", "What day is it today?", "Today is Thursday, November 26, 2026."),
        ("de", "Welches Datum haben wir?", "Heute ist Donnerstag, der 26. November 2026."),
        ("es", "¿Qué día es hoy?", "Hoy es jueves, 26 de noviembre de 2026."),
        ("en", "What time will it be in two hours?", "In 2 hours it will be 5:42 PM."),
        ("en", "What time was it 16 hours ago?", "16 hours ago it was 11:42 PM on Wednesday."),
        ("de", "Wie spät ist es in zehn Stunden?", "Dann ist es Freitag, 1:42 Uhr."),
        ("es", "¿Qué hora será en diez horas?", "la 1:42 de la madrugada del viernes."),
        ("en", "What time is it in Tokyo?", "It's 12:42 AM on Friday in Tokyo."),
        ("de", "Wie spät ist es in Wien?", "In Wien ist es 16:42 Uhr."),
        ("es", "¿Qué hora es en Nueva York?", "Son las 10:42 de la mañana en Nueva York."),
        ("en", "What day comes after Sunday?", "The day after Sunday is Monday."),
        ("en", "How many days until Christmas?", "It is 29 days until Friday, December 25."),
        (
            "en",
            "How many weeks until Christmas?",
            "It is 4 weeks and 1 day until Friday, December 25.",
        ),
        (
            "de",
            "Wie viele Tage sind es bis morgen?",
            "Das ist noch 1 Tag: Freitag, der 27. November.",
        ),
        ("es", "¿Cuántos días faltan para Navidad?", "Faltan 29 días: viernes, 25 de diciembre."),
        ("en", "When is Thanksgiving?", "That is today, Thursday, November 26."),
        ("en", "What day was it three days ago?", "That was Monday, November 23."),
        ("en", "How long ago was Easter?", "That was 235 days ago."),
        ("en", "How long until midnight?", "That is in 8 hours and 18 minutes."),
        ("en", "What year is it?", "It is 2026."),
        ("en", "Which calendar week are we in?", "It is week 48."),
        ("en", "When is Easter next year?", "That is Sunday, March 28, 2027."),
        ("en", "When was Easter last year?", "That was Sunday, April 20, 2025."),
        ("de", "Wann ist Ostern nächstes Jahr?", "Das ist Sonntag, der 28. März 2027."),
        ("es", "¿Cuándo es Pascua el año que viene?", "Es el domingo, 28 de marzo de 2027."),
        ("en", "When is Christmas this year?", "That is Friday, December 25."),
        ("en", "What's 45 minutes after 8:15?", "That is 9:00."),
        ("en", "What's 45 minutes before noon?", "That is 11:15 AM."),
        (
            "en",
            "If I leave at 8:15 pm and drive 4 hours, when do I arrive?",
            "That is 12:15 AM.",
        ),
        ("de", "Was ist 45 Minuten nach 8 Uhr 15?", "Das ist 9 Uhr."),
        ("es", "¿Qué hora es 45 minutos después de las 8:15?", "Eso es a las 9."),
        ("en", "How long is it from 9 am to 5 pm?", "That is 8 hours."),
        ("en", "How many hours from 10 to 4?", "That is 6 hours."),
        ("en", "What's the time difference to Tokyo?", "Tokyo is 9 hours ahead."),
        ("de", "Zeitunterschied zwischen London und New York?", "ist es 5 Stunden früher."),
        ("en", "What's the time difference to London?", "It is the same time in London."),
        ("en", "Is 2028 a leap year?", "Yes, 2028 is a leap year."),
        ("en", "Is 1900 a leap year?", "No, 1900 is not a leap year, but 1904 is."),
        (
            "de",
            "Ist nächstes Jahr ein Schaltjahr?",
            "Nein, 2027 ist kein Schaltjahr, aber 2028 ist eines.",
        ),
        ("es", "¿Cuándo es el próximo año bisiesto?", "El próximo año bisiesto es 2028."),
        ("en", "How old is somebody born in 1984?", "That makes 42 this year."),
        ("en", "I was born on November 27th 1984, how old am I?", "That makes 41."),
        ("en", "I was born on November 26th 1984, how old am I?", "That makes 42."),
    ],
)
def test_answers(code: str, text: str, answer: str) -> None:
    assert told(text, code).text.endswith(answer)


@given(moments)
def test_the_time_is_said_as_it_is(now: datetime) -> None:
    known = SkillContext(now)
    assert told("What time is it?", "en", known).text == f"It's {now:%-I:%M %p}."
    german = told("Wie spät ist es?", "de", known).text
    assert german == f"Es ist {now.hour}{f':{now:%M}' if now.minute else ''} Uhr."
    spanish = told("¿Qué hora es?", "es", known).text
    assert spanish.startswith("Es la 1" if now.hour % 12 == 1 else "Son las ")


@given(st.sampled_from(CODES), moments, st.integers(-400, 400))
def test_a_day_is_its_weekday_and_date(code: str, now: datetime, offset: int) -> None:
    then = now.date() + timedelta(days=offset)
    phrases = phrases_of(code)
    assert Day(offset=offset).date(now.date()) == then
    said = phrases.date(then)
    assert phrases.weekday(then.weekday()) in said and str(then.day) in said


@given(days, st.integers(0, 6), st.sampled_from([-1, 0, 1]))
def test_weekdays_are_the_nearest_in_their_direction(today: date, weekday: int, step: int) -> None:
    found = Day(weekday=weekday, step=step).date(today)
    assert found is not None and found.weekday() == weekday
    ahead = (found - today).days
    assert ahead in {-1: range(-7, 0), 0: range(7), 1: range(1, 8)}[step]


@given(days, st.integers(1, 12), st.integers(1, 31), st.booleans())
def test_dates_without_a_year_are_the_next_or_the_last(
    today: date, month: int, day: int, past: bool
) -> None:
    found = Day(day=day, month=month).date(today, past=past)
    if (day > 30 and month in (2, 4, 6, 9, 11)) or (month == 2 and day == 30):
        assert found is None
    elif found is not None:
        assert (found.month, found.day) == (month, day)
        between = [today + timedelta(days=n) for n in range(abs((found - today).days))]
        assert found <= today if past else found >= today
        assert past or not [one for one in between if (one.month, one.day) == (month, day)]


@given(st.integers(1990, 2090))
def test_easter_and_thanksgiving_are_on_their_weekdays(year: int) -> None:
    assert easter(year).weekday() == 6
    assert date(year, 3, 22) <= easter(year) <= date(year, 4, 25)
    assert thanksgiving(year).weekday() == 3 and 22 <= thanksgiving(year).day <= 28


@given(moments, st.integers(0, 24 * 60 - 1), st.booleans(), st.booleans())
def test_an_alarm_is_the_next_such_moment(
    now: datetime, minutes: int, sure: bool, wakes: bool
) -> None:
    then = Clock(minutes, sure).next(now, MORNING if wakes else range(24))
    assert timedelta(0) < then - now <= timedelta(days=1)
    assert (then.hour * 60 + then.minute - minutes) % (24 * 60 if sure else 12 * 60) == 0
    if wakes and not sure and 4 <= minutes // 60 < 12:
        assert then.hour * 60 + then.minute == minutes


def test_a_zone_that_there_is_not_is_refused_with_the_nearest() -> None:
    assert zone("") is None and zone("Europe/Lisbon") == ZoneInfo("Europe/Lisbon")
    with pytest.raises(ConfigError) as refused:
        zone("Europe/Lisbonn")
    assert refused.value.hint == "did you mean 'Europe/Lisbon'?"
    for odd in ("../../etc/passwd", "\0", "Europe"):
        with pytest.raises(ConfigError):
            zone(odd)


@given(st.integers(0, 24 * 60 - 1), st.integers(1, 24 * 60))
def test_a_time_and_the_duration_to_another_give_the_other(start: int, minutes: int) -> None:
    written = f"{start // 60}:{start % 60:02}"
    then = told(f"Was ist {minutes} Minuten nach {written} Uhr?", "de").text
    end = (start + minutes) % (24 * 60)
    assert then == f"Das ist {end // 60}{f':{end % 60:02}' if end % 60 else ''} Uhr."
    before = told(f"Was ist {minutes} Minuten vor {end // 60}:{end % 60:02} Uhr?", "de").text
    assert before == f"Das ist {start // 60}{f':{start % 60:02}' if start % 60 else ''} Uhr."
