"""What the users of the bench say: held out, and rightly marked."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from functools import cache

import pytest

from lab.conversations.sentences import (
    ADDITIONS,
    BACKCHANNELS,
    INTERRUPTIONS,
    LONG_ANSWERS,
    QUESTIONS,
    Sentence,
    sentence,
)
from models.train import domain
from models.train.domain import dialogues, facts, followups, sources, talk, tools
from models.train.domain.grammar import CHOICE, tidy
from voiceloop.bench.record import plain_words
from voiceloop.languages.en import ENGLISH

pytestmark = pytest.mark.pure


def phrasings(carrier: str) -> Iterator[str]:
    """Every sentence of a carrier."""
    match = CHOICE.search(carrier)
    if match is None:
        yield carrier
        return
    for choice in match[1].split("|"):
        yield from phrasings(carrier[: match.start()] + choice + carrier[match.end() :])


def bare(text: str) -> str:
    return " ".join(re.sub(r"[^a-z0-9' ]", " ", text.lower()).split())


@cache
def whole_domain() -> frozenset[str]:
    """Everything that the starter models were taught, or were examined on."""
    carriers = [
        *(carrier for one in talk.TALKS for carrier in one.carriers),
        *(carrier for one in talk.TOPICS for carrier in one.question),
        *(*tools.TIME, *tools.DAY, *tools.DATE),
        *(*sources.JOKE, *sources.RIDDLE, *sources.POEM, *sources.FACT, *sources.ANY_STORY),
        *(*followups.AGAIN, *followups.SHORTER, *followups.LONGER, *followups.ANOTHER),
        *(*followups.WHAT_DID_I_SAY, *followups.GIVE_UP),
        *(story.replace("{x}", x) for story in sources.STORY for x in talk.STORIES),
        *(timer.replace("{x}", x) for timer in tools.TIMER for x in tools.DURATIONS),
    ]
    said = [text for carrier in carriers for text in phrasings(carrier)]
    for fact in facts.ALL_FACTS:
        for carrier in fact.carriers:
            for text in phrasings(carrier):
                for row in fact.rows:
                    a, _, b = row.partition("|")
                    said.append(text.replace("{x}", row).replace("{a}", a).replace("{b}", b))
    topics = [text for one in talk.TOPICS for c in one.question for text in phrasings(c)]
    said += [brief.replace("{q}", text) for brief in sources.BRIEF for text in topics]
    return frozenset(bare(text) for text in said)


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


def test_long_answers_are_long() -> None:
    rng = random.Random(0)
    drawn = {
        tidy(exchange.user): exchange.reply
        for draw in (sources.draw_topic, sources.draw_tale)
        for exchange in [draw(rng, "heldout") for _ in range(1500)]
    }
    assert all(len(drawn[one.text].split()) >= 25 for one in LONG_ANSWERS)


def test_a_beginning_that_is_a_sentence_of_the_domain_is_marked_as_whole() -> None:
    for one in (*QUESTIONS, *LONG_ANSWERS):
        assert bare(one.text) in whole_domain()
        for words, standing in enumerate(one.standings, 1):
            if bare(one.prefix(words)) in whole_domain():
                assert standing == "whole", one.prefix(words)


def test_nothing_is_marked_as_a_sentence_after_a_word_that_nobody_ends_with() -> None:
    nobody = dialogues.DANGLING - {"what", "me"}  # "What?" and "Tell me" are sentences
    for one in (*QUESTIONS, *LONG_ANSWERS):
        for words, standing in enumerate(one.standings, 1):
            if one.prefix(words).lower().split()[-1] in nobody:
                assert standing == "incomplete", one.prefix(words)


def test_an_addition_begins_with_what_was_said_first() -> None:
    for addition in ADDITIONS:
        longer = addition.sentence
        assert longer.text == addition.longer
        (words,) = [i for i, standing in enumerate(longer.standings, 1) if standing == "whole"]
        assert longer.prefix(words) == addition.first.rstrip(".?")
        assert bare(addition.first) in whole_domain() or addition.kind in ("corrected", "more")
    assert len({addition.longer for addition in ADDITIONS}) == len(ADDITIONS)


def test_backchannels_are_known_as_such_and_interruptions_are_not() -> None:
    for text in BACKCHANNELS:
        assert set(plain_words(text)) <= ENGLISH.backchannels
    for text in INTERRUPTIONS:
        assert not set(plain_words(text)) <= ENGLISH.backchannels
