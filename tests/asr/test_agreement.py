"""LocalAgreement: commits only grow, and only by what two hypotheses share."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceloop.asr.transcript import LocalAgreement, answering, common_prefix, normalise, repeats
from voiceloop.types import Word

pytestmark = pytest.mark.pure

# Few words, so that hypotheses often agree, repeat themselves and resemble each other.
VOCABULARY = ["the", "The", "the,", "cat", "Cat.", "sat"]
hypothesis = st.lists(st.sampled_from(VOCABULARY), max_size=6)
hypotheses = st.lists(hypothesis, max_size=8)


def words(texts: str | list[str]) -> list[Word]:
    texts = texts.split() if isinstance(texts, str) else texts
    return [Word(text, float(i), i + 1.0) for i, text in enumerate(texts)]


def texts(items: tuple[Word, ...]) -> list[str]:
    return [word.text for word in items]


def keys(items: tuple[Word, ...] | list[Word]) -> list[str]:
    return [normalise(word.text) for word in items]


def stands_for(said: Sequence[str], heard: Sequence[str]) -> int:
    """The plain definition: how many words of `heard` stand for all of `said`."""

    @cache
    def distance(i: int, j: int) -> int:
        if not i or not j:
            return i + j
        changed = distance(i - 1, j - 1) + (said[i - 1] != heard[j - 1])
        return min(changed, distance(i - 1, j) + 1, distance(i, j - 1) + 1)

    if list(said) == list(heard[: len(said)]):
        return len(said)
    alike = [heard[j - 1 : j] == said[-1:] for j in range(len(heard) + 1)]
    costs = [
        (distance(len(said), j), not alike[j], abs(j - len(said))) for j in range(len(heard) + 1)
    ]
    return costs.index(min(costs))


@pytest.mark.parametrize(
    ("one", "other"),
    [("Hello,", "hello"), ("don't", "DONT"), ("straße", "STRASSE"), ("ﬁne", "fine"), ("２", "2")],  # noqa: RUF001
)
def test_words_are_compared_without_case_marks_or_forms_of_letters(one: str, other: str) -> None:
    assert normalise(one) == normalise(other)


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


@given(hypothesis, hypothesis)
def test_a_hypothesis_goes_on_after_the_words_that_stand_for_the_committed_ones(
    said: list[str], heard: list[str]
) -> None:
    agreement = LocalAgreement()
    agreement.update(words(said))
    agreement.commit(len(said))
    split = agreement.update(words(heard))
    spoken, again = keys(words(said)), keys(words(heard))
    position = max(stands_for(spoken, again), common_prefix(spoken, again))
    assert texts(split.tentative) == heard[position:]
    alike = spoken == again[:position]
    assert split.cuts == (tuple(range(1, position + 1)) if alike else (position,))


def test_committed_words_that_are_said_again_later_are_not_looked_for_there() -> None:
    agreement = LocalAgreement()
    agreement.update(words("set a timer for ten minutes"))
    agreement.commit(6)
    again = "and then set a timer for twenty minutes"
    split = agreement.update(words(f"set the timer for ten minutes {again}"))
    assert texts(split.tentative) == again.split()


@given(hypothesis, hypothesis, st.data())
def test_words_that_are_taken_out_are_neither_lost_nor_said_twice(
    said: list[str], heard: list[str], data: st.DataObject
) -> None:
    agreement = LocalAgreement()
    agreement.update(words(said))
    agreement.commit(len(said))
    hypothesis = words(heard)
    split = agreement.update(hypothesis)
    cut = data.draw(st.sampled_from(split.cuts or (0,)))
    frozen = agreement.freeze(cut)
    assert frozen + agreement.committed == split.committed
    # What follows the cut, heard again, is agreed on at once.
    after = agreement.update(hypothesis[cut:])
    assert after.tentative == ()
    assert keys(frozen + after.committed) == keys(split.committed + split.tentative)


@given(hypothesis, st.integers(0, 6))
def test_words_can_be_committed_by_order(hypothesis: list[str], count: int) -> None:
    agreement = LocalAgreement()
    agreement.update(words(hypothesis))
    split = agreement.commit(min(count, len(hypothesis)))
    assert texts(split.committed + split.tentative) == hypothesis
    assert len(split.committed) == min(count, len(hypothesis))


@given(st.lists(st.sampled_from("abc"), max_size=5), st.lists(st.sampled_from("def"), min_size=2))
def test_what_is_said_twice_in_a_row_is_noticed(said: list[str], last: list[str]) -> None:
    assert repeats([*said, *last, *(f"{word.upper()}," for word in last)])
    begun = repeats([*said, *last, *last, "end"])
    assert begun or len(last) == 2, "the last may be only begun"


@pytest.mark.parametrize(
    "text", ["", "no no", "a b c", "stop it stop", "bye bye", "- - - -", "it is it is so"]
)
def test_one_word_again_is_no_repetition(text: str) -> None:
    assert not repeats(text.split())


hums = st.lists(st.sampled_from(["Mmm.", "Uh-huh.", "HN,", "Ah!", "Oh,", "ha", "Ähm", "..."]))
said = st.lists(st.sampled_from(["Yes.", "No!", "Ja.", "Sí,", "A.", "Bye.", "Okay", "Ohm", "he"]))


@given(hums, said, st.randoms())
def test_a_turn_of_hums_says_nothing_and_words_keep_their_hums(
    around: list[str], inside: list[str], order: Random
) -> None:
    mixed = around + inside
    order.shuffle(mixed)
    turn = tuple(words(mixed))
    assert answering(turn) == (turn if inside else ())
