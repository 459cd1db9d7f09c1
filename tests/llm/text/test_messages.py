"""What the language model is told of the moment at which a conversation begins."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceloop.llm.text.messages import told

pytestmark = pytest.mark.pure


def test_the_date_the_hour_and_the_place_stand_behind_the_prompt() -> None:
    assert told("Be nice.", datetime(2026, 11, 26, 15, 42), "Lisbon, Portugal") == (
        "Be nice. The conversation began on Thursday, 26 November 2026, in the afternoon, "
        "at about 4 o'clock. The user is in Lisbon, Portugal."
    )
    assert told("", datetime(2026, 11, 26), "Lisbon") == "", "no prompt stays none"


class Abroad(datetime):
    """A moment in a program whose locale is German."""

    def strftime(self, format: str) -> str:
        return format.replace("%A", "Donnerstag").replace("%B", "Dezember")


@given(st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1)))
def test_the_date_is_english_in_any_locale(now: datetime) -> None:
    text = told("x", Abroad.combine(now.date(), now.time()), "")
    weekday, month = now.ctime().split()[:2]  # English, and cut, in any locale
    assert f" {weekday}" in text and f"{now.day} {month}" in text and str(now.year) in text


@given(st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1)))
def test_it_is_the_same_for_most_of_an_hour_and_true_to_half_of_one(now: datetime) -> None:
    early = now.replace(minute=31, second=0)
    assert told("x", early, "") == told("x", early + timedelta(minutes=28), "")
    said = (now + timedelta(minutes=30)).hour
    assert f"at about {said % 12 or 12} o'clock" in told("x", now, "")
