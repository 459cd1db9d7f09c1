"""Calibrations: never worse than the words on what they were found from, and they say so."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from voiceloop.calibration.fitting import (
    LONGEST_MS,
    MOST_CUT_OFFS,
    SHORTEST_MS,
    JudgedSilence,
    calibrate,
    cost,
    cut_off,
    probability_ms,
    shift_of,
    words_at,
    words_ms,
)
from voiceloop.calibration.probability import comparable
from voiceloop.calibration.requests import Kind
from voiceloop.dialogue.endpoint import TurnSoFar, hangover_ms
from voiceloop.languages.en import ENGLISH
from voiceloop.settings.config import TurnConfig
from voiceloop.types import Calibration

pytestmark = pytest.mark.pure

CONFIG = TurnConfig()
SAID: dict[Kind, str] = {
    "end": "tell me a story",
    "whole": "tell me a story",
    "function word": "tell me about the",
    "content word": "tell me about the big",
}


def judged(kind: Kind, probability: float, exchanges: int = 0) -> JudgedSilence:
    words = SAID[kind]
    return JudgedSilence(words, kind, probability, ENGLISH.asks_for_more(words), exchanges)


@st.composite
def silences(draw: st.DrawFn) -> list[JudgedSilence]:
    kinds = draw(st.lists(st.sampled_from(get_args(Kind)), max_size=60))
    chances = st.floats(0, 1)
    some: tuple[Kind, ...] = ("end", "function word", "content word")
    return [judged(kind, draw(chances), draw(st.integers(0, 2))) for kind in (*kinds, *some)]


@given(silences())
def test_a_calibration_is_never_worse_than_the_words_and_seldom_cuts_off(
    found: list[JudgedSilence],
) -> None:
    calibration = calibrate(found, CONFIG)
    if calibration is None:
        return
    own = cost(found, probability_ms(found, calibration, CONFIG))
    words = words_at(found, own.delay_ms, CONFIG)
    assert own.delay_ms <= words.delay_ms + 1e-6
    assert own.incomplete < words.incomplete
    assert own.incomplete <= MOST_CUT_OFFS + 1e-9
    assert own.whole <= min(words.whole, cut_off(CONFIG.hangover_ms)) + 1e-9
    assert 0 <= calibration.incomplete_below <= calibration.complete_above <= 1
    assert CONFIG.complete_ms <= calibration.complete_ms <= CONFIG.hangover_ms


@given(silences(), st.floats(0, 1), st.floats(0, 1), st.integers(0, 500), st.floats(-5, 5))
def test_what_a_calibration_costs_is_what_the_endpoint_waits(
    found: list[JudgedSilence], one: float, other: float, complete_ms: int, shift: float
) -> None:
    low, high = sorted((one, other))
    calibration = Calibration(high, low, complete_ms, shift)
    asked = structs.replace(CONFIG, endpoint="p-eot")

    def wait(one: JudgedSilence) -> int:
        probability = comparable(one.probability, calibration, one.exchanges)
        return hangover_ms(TurnSoFar(one.words, probability, asked, ENGLISH, calibration))

    assert probability_ms(found, calibration, CONFIG) == [*map(wait, found)]
    told = structs.replace(CONFIG, endpoint="trailing-words")
    assert words_ms(found, CONFIG.hangover_ms, CONFIG.incomplete_ms) == [
        hangover_ms(TurnSoFar(silence.words, None, told, ENGLISH)) for silence in found
    ]


def spread(kind: Kind, chances: Sequence[float]) -> list[JudgedSilence]:
    return [judged(kind, chance) for chance in chances]


def test_a_model_that_knows_answers_at_once_and_cuts_nobody_off() -> None:
    found = [
        *spread("end", [0.5 + n / 100 for n in range(40)]),
        *spread("content word", [n / 1000 for n in range(40)]),
        *spread("function word", [n / 1000 for n in range(40)]),
        *spread("whole", [0.1] * 20),
    ]
    calibration = calibrate(found, CONFIG)
    assert calibration is not None
    own = cost(found, probability_ms(found, calibration, CONFIG))
    assert (own.delay_ms, own.incomplete) == (CONFIG.complete_ms, 0.0)


@pytest.mark.parametrize("end", [0.5, 0.2])
def test_a_model_that_knows_nothing_leaves_it_to_the_words(end: float) -> None:
    """Whether it thinks all silences alike or gets them the wrong way round."""
    found = [
        *spread("end", [end] * 30),
        *spread("content word", [0.5] * 30),
        *spread("function word", [0.5] * 30),
    ]
    assert calibrate(found, CONFIG) is None


def test_a_cut_off_is_as_likely_as_a_pause_is_long() -> None:
    for wait, expected in ((0, 1), (SHORTEST_MS, 1), (450, 0.5), (LONGEST_MS, 0), (1100, 0)):
        assert cut_off(wait) == expected
    found = [judged("end", 1), judged("content word", 1), judged("function word", 0)]
    made = cost(found, [100, 450, 800])
    assert (made.delay_ms, made.incomplete, made.whole) == (100, 0.25, 0)


def odds(probability: float) -> float:
    return probability / (1 - probability)


@given(st.floats(0.01, 0.99), st.floats(-5, 5), st.integers(1, 5))
def test_what_later_turns_add_to_the_log_odds_is_taken_off(
    probability: float, shift: float, exchanges: int
) -> None:
    calibration = Calibration(0.5, 0.1, 88, shift)
    assert comparable(probability, calibration, 0) == probability
    made = comparable(probability, calibration, exchanges)
    assert odds(made) == pytest.approx(odds(probability) * math.exp(-shift))
    for sure in (0.0, 1.0):
        assert comparable(sure, calibration, exchanges) == sure


def test_the_shift_is_found_from_true_ends() -> None:
    """A model that thinks everything likelier in later turns is calibrated as if it did not."""
    first = [
        *spread("end", [0.3 + n / 100 for n in range(40)]),
        *spread("content word", [n / 400 for n in range(40)]),
        *spread("function word", [n / 1000 for n in range(40)]),
    ]
    back = Calibration(0, 0, 0, -1.5)
    later = [
        replace(one, probability=comparable(one.probability, back, 1), exchanges=1) for one in first
    ]
    alone, both = calibrate(first, CONFIG), calibrate([*first, *later], CONFIG)
    assert alone is not None and both is not None
    assert shift_of([*first, *later]) == pytest.approx(1.5, abs=0.01)
    assert both.complete_above == pytest.approx(alone.complete_above, abs=0.01)
    assert shift_of(first) == shift_of(later) == 0
