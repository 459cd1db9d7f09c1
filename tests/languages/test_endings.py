"""The words that each language knows of: what asks for more, and what listeners say."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceloop.asr.transcript import normalise
from voiceloop.languages import Language, installed, language
from voiceloop.languages.language import LONGEST, NUMBER, START, ending, endings

pytestmark = pytest.mark.pure

REQUESTS = Path(__file__).parents[1] / "data" / "requests"
"""Requests as people make them; `|` stands where nobody has finished."""

every_language = pytest.mark.parametrize("known", [*map(language, installed())], ids=[*installed()])


def requests(known: Language) -> list[str]:
    return (REQUESTS / f"{known.code}.txt").read_text(encoding="utf-8").splitlines()


@every_language
def test_no_common_request_asks_for_more(known: Language) -> None:
    whole = [" ".join(marked.replace("|", "").split()) for marked in requests(known)]
    assert len(set(whole)) >= 40
    assert [text for text in whole if known.asks_for_more(text)] == []


@every_language
def test_a_request_that_is_cut_behind_a_word_that_asks_for_more_does(known: Language) -> None:
    cuts = [
        marked[: mark.start()].replace("|", "")
        for marked in requests(known)
        for mark in re.finditer(r"\|", marked)
    ]
    assert len(cuts) >= 40
    assert [cut for cut in cuts if not known.asks_for_more(cut)] == []


@every_language
def test_every_ending_is_in_the_form_in_which_it_is_compared(known: Language) -> None:
    for one in known.unfinished | known.finished:
        assert one == unicodedata.normalize("NFC", one)
        words = one.split()
        assert len(words) <= LONGEST
        said = " ".join(word.replace(NUMBER, "17") for word in words if word != START)
        wanted = words if words[0] == START else [START, *words]
        assert list(ending(said)) == wanted[-LONGEST:], one


@every_language
def test_an_ending_is_finished_or_not_and_finished_ones_are_exceptions(known: Language) -> None:
    assert not known.unfinished & known.finished
    # Patterns make some that are none, but no last word for nothing.
    exceptions = {
        words[-1]
        for words in map(str.split, known.finished)
        if {" ".join(words[at:]) for at in range(1, len(words))} & known.unfinished
    }
    assert {one.split()[-1] for one in known.finished} - exceptions == set()


@every_language
def test_what_listeners_say_is_spelled_as_it_is_compared(known: Language) -> None:
    for word in known.backchannels | known.articles:
        assert word == normalise(word) != ""
    assert not known.backchannels & known.articles
    assert language("xx").backchannels <= known.backchannels


@every_language
@given(st.text(max_size=30), st.text(" .?!,;:…\"'", max_size=4))
def test_marks_at_the_end_say_nothing(known: Language, text: str, marks: str) -> None:
    assert known.asks_for_more(text + marks) == known.asks_for_more(text)


@every_language
def test_capitals_and_curly_apostrophes_say_nothing(known: Language) -> None:
    for one in known.unfinished:
        text = one.replace(START, "").replace(NUMBER, "3")
        for spelled in (text.title(), text.upper(), text.replace("'", "\u2019")):
            # A capital Ä or ß may have another length, never another word.
            if spelled.lower().replace("\u2019", "'") == text:
                assert known.asks_for_more(spelled) == known.asks_for_more(text)


@given(st.text(max_size=30))
def test_of_an_unknown_language_words_tell_nothing(text: str) -> None:
    assert not language("xx").asks_for_more(text)


def test_the_longest_ending_decides() -> None:
    known = Language("xx", frozenset({"for", "what is it for"}), frozenset({"it for", "^ for"}))
    assert known.asks_for_more("a timer for")
    assert not known.asks_for_more("use it for")
    assert known.asks_for_more("what is it for?")
    assert not known.asks_for_more("For!")
    assert known.asks_for_more("")
    assert known.asks_for_more("...")


def test_a_pattern_stands_for_all_that_its_words_make() -> None:
    assert endings("who|where is", "so") == {"who is", "where is", "so"}


@pytest.mark.parametrize("code", ["de", "de-AT", "DE_at", "de-de-x-saxon"])
def test_a_language_goes_by_its_code_whatever_the_region(code: str) -> None:
    assert language(code) is language("de")


@pytest.mark.parametrize("code", ["fr", "", "auto", "deu", "d"])
def test_another_code_is_an_unknown_language(code: str) -> None:
    unknown = language(code)
    assert (unknown.code, unknown.unfinished, unknown.spoken) == (code, frozenset(), None)
