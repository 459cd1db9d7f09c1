"""Numbers in words are read as the language says them, and templates as they are written."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.skills.asked import CODES
from voiceloop.skills.phrases import phrases_of
from voiceloop.skills.template import WordSpan, compiled, whole
from voiceloop.skills.words import counted, plain, spelled, value

pytestmark = pytest.mark.pure


@given(st.sampled_from(CODES), st.integers(0, 999_999))
def test_a_number_in_words_is_the_number(code: str, number: int) -> None:
    how = phrases_of(code).words
    words = [word.text for word in counted(spelled(how.numbers.words(number)), how)]
    articles = phrases_of(code).articles
    assert words == [str(number)] or (number == 1 and set(words) <= articles)


@given(st.sampled_from(CODES), st.integers(0, 999), st.integers(0, 999))
def test_decimals_are_read_digit_by_digit(code: str, whole: int, digits: int) -> None:
    how = phrases_of(code).words
    said = how.numbers.cardinal(f"{whole}{how.numbers.decimal}{digits}")
    (word,) = counted(spelled(said), how)
    assert value(word.text, how.numbers) == Fraction(f"{whole}.{digits}")


@given(st.sampled_from(CODES), st.fractions(-(10**9), 10**9, max_denominator=1000))
def test_a_number_that_is_written_is_read_again(code: str, number: Fraction) -> None:
    phrases = phrases_of(code)
    written = phrases.number(number)
    words = written.removeprefix(phrases.says["about"]).removeprefix(f"{phrases.says['minus']} ")
    read = value(words.strip().removeprefix(f"{phrases.says['minus']} "), phrases.numbers)
    assert read is not None
    assert abs(read - abs(number)) <= max(Fraction(1, 2000), abs(number) / 50)
    if not written.startswith(phrases.says["about"]):
        assert read == abs(number)


@given(st.text(max_size=80))
def test_words_say_where_they_stand(text: str) -> None:
    for word in spelled(text):
        assert 0 <= word.start < word.end
        assert not word.text[:1].isalpha() or plain(text[word.start : word.end]) == word.text


def test_templates_choose_leave_out_repeat_and_call_others() -> None:
    kinds = {"number": lambda words: {("1",): 1, ("7",): 7}.get(words)}
    named = {"x": compiled("a [b]", {}, kinds)}
    template = compiled("<x> (c|d e)+ {n:number}", named, kinds)
    assert whole(template, ("a", "c", "d", "e", "c", "7")) == {"n": 7}
    assert whole(template, ("a", "b", "d", "e", "1")) == {"n": 1}
    for words in ("a 7", "a c", "b c 7", "a c 7 7", "a d 7", ""):
        assert whole(template, tuple(words.split())) is None
    template = compiled("say {w:words} again", {}, {"words": lambda words: True})
    assert whole(template, ("say", "x", "again", "again")) == {"w": WordSpan(1, 3)}
