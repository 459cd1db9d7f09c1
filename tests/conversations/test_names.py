"""Names of conversations: what may be one, and that anything else is told in one line."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceloop.conversations.names import LONGEST, checked
from voiceloop.errors import ConfigError

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    "name", ["work", "Anna's week", "día 1", "日記", "a.b-c_d", "2026", "x" * LONGEST]
)
def test_a_name_people_give_is_one(name: str) -> None:
    assert checked(name) == unicodedata.normalize("NFC", name)


@pytest.mark.parametrize(
    "name",
    [
        *("", " ", ".", "..", "a/b", "../a", "a\\b", "C:x", "~/a", "/etc/passwd", "-x", " a", "a "),
        *("a\nb", "a\x00b", "\x1b[2J", "a\u202eb", "\ud800", "x" * (LONGEST + 1), "x" * 10**6),
    ],
)
def test_a_name_that_is_none_is_told_in_one_short_line(name: str) -> None:
    with pytest.raises(ConfigError) as raised:
        checked(name)
    line = raised.value.message
    assert line.isprintable() and len(line) < 250 and raised.value.hint


@given(st.text())
def test_a_name_is_kept_as_it_is_or_refused(name: str) -> None:
    try:
        found = checked(name)
    except ConfigError:
        return
    assert checked(found) == found and found.isprintable() and not set(found) & set("/\\")
