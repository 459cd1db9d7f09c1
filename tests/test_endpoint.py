"""How long a silence ends a turn, by every policy."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceloop.config import TurnConfig
from voiceloop.endpoint import FINAL, bare, hangover_ms, unfinished

pytestmark = pytest.mark.pure

CONFIG = TurnConfig()
COMPLETE = ("What time is it?", "Tell me a joke.", "How far away is the moon", "stop")
INCOMPLETE = ("", "...", "What is the", "Tell me about", "I want to know, and", "Set a timer for,")
chances = st.none() | st.floats(0, 1)


@pytest.mark.parametrize("text", COMPLETE)
def test_a_last_word_that_asks_for_none_is_the_end(text: str) -> None:
    assert not unfinished(text)
    words = replace(CONFIG, endpoint="trailing-words")
    assert hangover_ms(text, 0.0, words) == CONFIG.complete_ms


@pytest.mark.parametrize("text", INCOMPLETE)
def test_a_last_word_that_asks_for_another_is_not(text: str) -> None:
    assert unfinished(text)
    words = replace(CONFIG, endpoint="trailing-words")
    assert hangover_ms(text, 1.0, words) == CONFIG.incomplete_ms


@given(st.text(max_size=20), chances)
def test_a_fixed_silence_asks_nobody(text: str, probability: float | None) -> None:
    fixed = replace(CONFIG, endpoint="fixed", hangover_ms=321)
    assert hangover_ms(text, probability, fixed) == 321


@given(st.text(max_size=20), st.floats(0, 1), st.floats(0, 1))
def test_the_likelier_the_end_the_sooner_it_is(text: str, one: float, other: float) -> None:
    low, high = sorted((one, other))
    for policy in ("p-eot", "auto"):
        config = replace(CONFIG, endpoint=policy)
        assert hangover_ms(text, low, config) >= hangover_ms(text, high, config)
    assert hangover_ms(text, 1.0, CONFIG) == CONFIG.complete_ms
    assert hangover_ms(text, 0.0, CONFIG) == CONFIG.incomplete_ms


@pytest.mark.parametrize("text", [*COMPLETE, *INCOMPLETE])
def test_where_no_model_knows_the_last_word_decides_or_nothing(text: str) -> None:
    asked = replace(CONFIG, endpoint="p-eot")
    assert hangover_ms(text, None, asked) == CONFIG.hangover_ms
    words = replace(CONFIG, endpoint="trailing-words")
    assert hangover_ms(text, None, CONFIG) == hangover_ms(text, None, words)


@given(st.text(max_size=20), st.text(FINAL + " ", max_size=4))
def test_punctuation_at_the_end_says_nothing(text: str, end: str) -> None:
    assert bare(text + end) == bare(text) == bare(bare(text))
    assert unfinished(text + end) == unfinished(text)
