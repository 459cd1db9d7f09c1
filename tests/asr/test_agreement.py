"""LocalAgreement: commits only grow, and only by what two hypotheses share."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceloop.asr.agreement import LocalAgreement, common_prefix, normalise
from voiceloop.types import Word

pytestmark = pytest.mark.pure

VOCABULARY = ["the", "The", "the,", "cat", "Cat.", "sat", "on", "a", "mat", "mat!"]
hypotheses = st.lists(st.lists(st.sampled_from(VOCABULARY), max_size=8), max_size=8)


def words(texts: str | list[str]) -> list[Word]:
    texts = texts.split() if isinstance(texts, str) else texts
    return [Word(text, float(i), i + 1.0) for i, text in enumerate(texts)]


def texts(items: tuple[Word, ...]) -> list[str]:
    return [word.text for word in items]


def keys(items: tuple[Word, ...] | list[Word]) -> list[str]:
    return [normalise(word.text) for word in items]


@given(hypotheses)
def test_a_committed_word_is_never_taken_back_or_respelled(series: list[list[str]]) -> None:
    agreement, before = LocalAgreement(), ()
    for hypothesis in series:
        split = agreement.update(words(hypothesis))
        assert split.committed[: len(before)] == before
        before = split.committed


@given(hypotheses)
def test_a_commit_is_what_two_successive_hypotheses_begin_with(series: list[list[str]]) -> None:
    agreement = LocalAgreement()
    previous: list[Word] = []
    before = 0
    for hypothesis in map(words, series):
        split = agreement.update(hypothesis)
        if len(split.committed) > before:
            shared = common_prefix(keys(previous), keys(hypothesis))
            fresh = split.committed[before:]
            assert fresh == tuple(hypothesis[shared - len(fresh) : shared])
        assert split.tentative == tuple(hypothesis)[len(hypothesis) - len(split.tentative) :]
        previous, before = hypothesis, len(split.committed)


@given(st.lists(st.sampled_from(VOCABULARY), max_size=8))
def test_the_same_hypothesis_twice_is_committed_whole(hypothesis: list[str]) -> None:
    agreement = LocalAgreement()
    assert agreement.update(words(hypothesis)).committed == ()
    split = agreement.update(words(hypothesis))
    assert (texts(split.committed), split.tentative) == (hypothesis, ())


def test_case_and_punctuation_do_not_hold_a_commit_back_and_the_newer_form_wins() -> None:
    agreement = LocalAgreement()
    agreement.update(words("hello world"))
    assert texts(agreement.update(words("Hello, World is")).committed) == ["Hello,", "World"]


@pytest.mark.parametrize(
    ("hypothesis", "tentative"),
    [
        ("what is the capital of", ["capital", "of"]),  # as it was
        ("what was the capital of", ["capital", "of"]),  # one replaced
        ("what the capital of", ["capital", "of"]),  # one lost
        ("well what is the capital of", ["capital", "of"]),  # one put in
        ("what is", []),  # shorter than what is committed
        ("", []),
    ],
)
def test_a_hypothesis_that_spells_the_committed_words_otherwise_goes_on_after_them(
    hypothesis: str, tentative: list[str]
) -> None:
    agreement = LocalAgreement()
    agreement.update(words("what is the"))
    agreement.update(words("what is the"))
    assert texts(agreement.update(words(hypothesis)).tentative) == tentative


@given(hypotheses, st.data())
def test_frozen_words_and_what_remains_are_all_that_was_committed(
    series: list[list[str]], data: st.DataObject
) -> None:
    agreement = LocalAgreement()
    for hypothesis in map(words, series):
        split = agreement.update(hypothesis)
        cuts = [cut for cut in split.cuts if cut]
        if cuts:
            cut = data.draw(st.sampled_from(cuts))
            frozen = agreement.freeze(cut)
            assert frozen + agreement.committed == split.committed
            # What follows the cut, heard again, is agreed on at once.
            assert keys(agreement.update(hypothesis[cut:]).committed) == keys(hypothesis[cut:])
            return


@given(st.lists(st.sampled_from(VOCABULARY), max_size=8), st.integers(0, 8))
def test_words_can_be_committed_by_order(hypothesis: list[str], count: int) -> None:
    agreement = LocalAgreement()
    agreement.update(words(hypothesis))
    split = agreement.commit(min(count, len(hypothesis)))
    assert texts(split.committed + split.tentative) == hypothesis
    assert len(split.committed) == min(count, len(hypothesis))
