"""What the users of the bench say: held out, and rightly marked."""

from __future__ import annotations

import pytest

from lab.conversations.sentences import (
    ADDITIONS,
    BACKCHANNELS,
    INTERRUPTIONS,
    QUESTIONS,
    Sentence,
    sentence,
)
from models.train import domain
from voiceloop.bench.record import plain_words
from voiceloop.languages.en import ENGLISH

pytestmark = pytest.mark.pure


def test_the_notation_marks_what_comes_before_a_word() -> None:
    found = sentence("What |color is red ~and green, |please?")
    assert found.text == "What color is red and green, please?"
    assert found.standings == ("whole", "incomplete", "incomplete", "open", "incomplete", "whole")
    assert [found.prefix(words) for words in (1, 4, 6)] == [
        "What",
        "What color is red",
        "What color is red and green",
    ]
    assert sentence("Stop.") == Sentence("Stop.", ())


def test_questions_were_held_out() -> None:
    texts = [one.text for one in QUESTIONS]
    assert len(set(texts)) == len(texts) >= 100
    assert set(texts) <= set(domain.questions("heldout", 3000))


def test_an_addition_begins_with_what_was_said_first() -> None:
    for addition in ADDITIONS:
        longer = addition.sentence
        assert longer.text == addition.longer
        (words,) = [i for i, standing in enumerate(longer.standings, 1) if standing == "whole"]
        assert longer.prefix(words) == addition.first.rstrip(".?")
    assert len({addition.longer for addition in ADDITIONS}) == len(ADDITIONS)


def test_backchannels_are_known_as_such_and_interruptions_are_not() -> None:
    for text in BACKCHANNELS:
        assert set(plain_words(text)) <= ENGLISH.backchannels
    for text in INTERRUPTIONS:
        assert not set(plain_words(text)) <= ENGLISH.backchannels
