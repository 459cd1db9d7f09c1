"""Requests in three languages: those that are one are understood however they are put, and nothing
else is."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.skills.asked import ALONE, CODES, FOLLOWS, NONE, kind_of, said
from voiceloop.skills.answer import answer, grammar, understand
from voiceloop.skills.grammar import Grammar
from voiceloop.skills.phrases import phrases_of, templates
from voiceloop.skills.template import NOTHING, whole
from voiceloop.skills.words import spelled

pytestmark = pytest.mark.pure

RULES = {code: templates(code).rules for code in CODES}
GUARDS = {code: templates(code).guards for code in CODES}
LEADS = {
    "en": ("Hey, ", "Okay, ", "Could you please ", "um "),
    "de": ("Hey, ", "Okay, ", "Also ", "Bitte "),
    "es": ("Oye, ", "Vale, ", "Por favor, ", "Bueno, "),
}
TAILS = {"en": ", please.", "de": ", bitte.", "es": ", por favor."}
IN = [(code, kind, text) for code in CODES for kind, texts in said(code).items() for text in texts]
REQUESTS = [(code, kind, text) for code, kind, text in IN if kind != NONE]
OTHERS = [(code, text) for code, kind, text in IN if kind == NONE]


@pytest.mark.parametrize("code", CODES)
def test_requests_are_understood(code: str) -> None:
    assert {kind for one, kind, _ in REQUESTS if one == code} >= RULES[code].keys()
    wrong = {
        text: found
        for one, kind, text in REQUESTS
        if one == code and (found := kind_of(text, code, kind)) != kind
    }
    assert not wrong


@pytest.mark.parametrize("code", CODES)
def test_what_is_no_request_is_left_to_the_model(code: str) -> None:
    texts = [text for one, text in OTHERS if one == code]
    wrong = {text: found for text in texts if (found := kind_of(text, code)) != NONE}
    assert not wrong


@given(st.sampled_from(REQUESTS), st.booleans(), st.integers(0, 4), st.booleans())
def test_neither_marks_nor_capitals_nor_politeness_matter(
    case: tuple[str, str, str], bare: bool, lead: int, tail: bool
) -> None:
    code, kind, text = case
    if bare:
        text = re.sub(r"[¿?¡!,;]|[.](?!\d)", "", text).upper().replace("ẞ", "ß")
    if lead and kind not in ("repeat", "time_in"):
        text = LEADS[code][lead - 1] + text
    if tail and kind not in ("repeat", "normal"):
        text = text.rstrip(".?! ") + TAILS[code]
    assert kind_of(text, code, kind) == kind


@given(st.sampled_from(REQUESTS), st.sampled_from(["banana", "elefante", "quantum"]))
def test_a_strange_word_more_is_another_request(case: tuple[str, str, str], word: str) -> None:
    code, kind, text = case
    named = templates(code).named
    free = {
        kind
        for kind, rules in RULES[code].items()
        if any(takes_any_word(rule, named) for rule in rules)
    }
    free |= {"unsure", "unsure_follow", "unsure_named"}  # whatever is about a timer
    if kind not in free:
        assert kind_of(f"{text.rstrip('.?!')} {word}", code) in {NONE, *free}
        assert kind_of(f"{word} {text}", code) in (NONE, "unsure")


def takes_any_word(template: str, named: Mapping[str, str]) -> bool:
    """Whether a slot of the template, or of one that it calls, takes words that no list has."""
    called = re.findall(r"<([\w ]+)>", template)
    free = re.search(r"\{(\w+:)?(words|own|label|noun|deed)\}", template)
    return bool(free) or any(takes_any_word(named[name], named) for name in called)


WORDS = {code: " ".join(text for one, _, text in IN if one == code).split() for code in CODES}


@given(st.sampled_from(CODES), st.data())
def test_words_in_any_order_are_answered_or_not(code: str, data: st.DataObject) -> None:
    words = st.sampled_from([*WORDS[code], "99999999", "0", "1/0", "31", "9999"])
    text = " ".join(data.draw(st.lists(words, max_size=12)))
    contexts = [known for several in FOLLOWS.values() for known in several]
    answer(text, code, data.draw(st.sampled_from(contexts)))


@given(st.sampled_from(IN))
def test_no_template_that_matches_is_passed_over_for_its_first_word(
    case: tuple[str, str, str],
) -> None:
    rules = grammar(case[0])
    assert rules is not None
    words = tuple(word.text for word in spelled(case[2]))
    tried = {id(one) for _, one in rules.by_first[0](words[0])}
    for several in rules.rules.values():
        assert all(id(one) in tried for one in several if any(one.ends(words, 0, NOTHING)))


@pytest.mark.parametrize(
    "text",
    [
        "What time is it in 99999999999 hours?",
        "What day is it in 99999999 weeks?",
        "What day was it 999999 years ago?",
        "How many days until February 30th?",
        "Set a timer for 99999999 hours.",
        "What is 9 to the power of 9 to the power of 9?",
        f"What is {'9' * 500} times {'9' * 500}?"[:600],
        "Set a timer for 0 minutes.",
    ],
)
def test_nothing_is_too_large(text: str) -> None:
    answer(text, "en", ALONE)


@pytest.mark.parametrize("code", CODES)
def test_no_text_takes_long(code: str) -> None:
    """Each place is looked at a bounded number of times, however often words are repeated."""
    looks, repeated = 0, ("stop", "thanks", "done", "goodbye", "night", "repeat")
    texts = [text for one, kind, text in REQUESTS if one == code and kind in repeated]
    words = {word.text for text in texts for word in spelled(text)}

    class Counted(str):
        def __eq__(self, other: object) -> bool:
            nonlocal looks
            looks += 1
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    rules = Grammar(phrases_of(code))
    for word in sorted(words):
        said = (*(Counted(word) for _ in range(29)), Counted("banana"))
        for several in rules.rules.values():
            for template in several:
                assert whole(template, said) is None
    assert looks < 2000 * len(words) * len(rules.rules)


def test_other_languages_have_no_rules() -> None:
    assert not [*understand("Quelle heure est-il ?", "fr", ALONE)]
    assert not [*understand("What time is it?", "auto", ALONE)]


@pytest.mark.parametrize("code", CODES)
def test_every_kind_has_rules_and_every_sentence_can_be_said(code: str) -> None:
    assert RULES[code].keys() == RULES["en"].keys()
    assert GUARDS[code].keys() == GUARDS["en"].keys()
    optional = {"until one day", "since one day", "it is one"}
    says = {one: phrases_of(one).says.keys() - optional for one in CODES}
    assert says[code] == says["en"]
    assert Grammar(phrases_of(code)).rules.keys() == RULES[code].keys()
