"""How long a silence ends a turn, by every policy."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from voiceloop.calibration.probability import odds
from voiceloop.dialogue import endpoint
from voiceloop.dialogue.endpoint import EVIDENT, TurnSoFar, goes_on, with_eagerness
from voiceloop.languages import Language, installed, language
from voiceloop.languages.en import ENGLISH
from voiceloop.languages.language import FINAL, bare
from voiceloop.settings.config import TurnConfig
from voiceloop.types import Calibration

pytestmark = pytest.mark.pure

CONFIG = TurnConfig()
COMPLETE = ("What time is it?", "Tell me a joke.", "How far away is the moon", "stop")
INCOMPLETE = ("", "...", "What is the", "Tell me about", "I want to know, and", "Set a timer for,")
chances = st.none() | st.floats(0, 1)


def hangover_ms(
    text: str,
    probability: float | None,
    config: TurnConfig,
    spoken: Language,
    calibration: Calibration | None = None,
    sound: float | None = None,
) -> int:
    return endpoint.hangover_ms(TurnSoFar(text, probability, config, spoken, calibration, sound))


@pytest.mark.parametrize("text", COMPLETE)
def test_a_last_word_that_asks_for_none_may_be_the_end(text: str) -> None:
    assert CONFIG.complete_ms < 500 <= CONFIG.hangover_ms < CONFIG.incomplete_ms
    for policy, chance in (("trailing-words", 0.0), ("trailing-words", 1.0), ("auto", None)):
        words = replace(CONFIG, endpoint=policy)
        assert hangover_ms(text, chance, words, ENGLISH) == CONFIG.hangover_ms


@pytest.mark.parametrize("text", INCOMPLETE)
def test_a_last_word_that_asks_for_another_is_not(text: str) -> None:
    words = replace(CONFIG, endpoint="trailing-words")
    assert hangover_ms(text, 1.0, words, ENGLISH) == CONFIG.incomplete_ms


@given(st.text(max_size=20), chances)
def test_a_fixed_silence_asks_nobody(text: str, probability: float | None) -> None:
    fixed = replace(CONFIG, endpoint="fixed", hangover_ms=321)
    assert hangover_ms(text, probability, fixed, ENGLISH) == 321


@st.composite
def calibrations(draw: st.DrawFn) -> Calibration:
    low, high = sorted((draw(st.floats(0, 1)), draw(st.floats(0, 1))))
    return Calibration(high, low, draw(st.integers(0, CONFIG.hangover_ms)))


@given(st.text(max_size=20), st.floats(0, 1), st.floats(0, 1), calibrations())
def test_the_likelier_the_end_the_sooner_it_is(
    text: str, one: float, other: float, calibration: Calibration
) -> None:
    low, high = sorted((one, other))
    for policy in ("p-eot", "auto"):
        config = replace(CONFIG, endpoint=policy)

        def wait(probability: float, config: TurnConfig = config) -> int:
            return hangover_ms(text, probability, config, ENGLISH, calibration)

        assert wait(low) >= wait(high) >= CONFIG.complete_ms
        above = calibration.complete_above
        assert wait(above) == max(CONFIG.complete_ms, calibration.complete_ms)
        if calibration.incomplete_below > 0:
            assert wait(0.0) == CONFIG.incomplete_ms


@given(st.text(max_size=20), chances)
def test_a_probability_means_nothing_without_a_calibration(
    text: str, probability: float | None
) -> None:
    assert hangover_ms(text, probability, CONFIG, ENGLISH) >= CONFIG.hangover_ms
    asked = replace(CONFIG, endpoint="p-eot")
    assert hangover_ms(text, probability, asked, ENGLISH) == CONFIG.hangover_ms


@pytest.mark.parametrize("text", [*COMPLETE, *INCOMPLETE])
def test_where_no_model_knows_the_last_word_decides_or_nothing(text: str) -> None:
    asked = replace(CONFIG, endpoint="p-eot")
    assert hangover_ms(text, None, asked, ENGLISH) == CONFIG.hangover_ms
    words = replace(CONFIG, endpoint="trailing-words")
    assert hangover_ms(text, None, CONFIG, ENGLISH) == hangover_ms(text, None, words, ENGLISH)


@given(st.text(max_size=20), st.text(FINAL + " ", max_size=4))
def test_punctuation_at_the_end_says_nothing(text: str, end: str) -> None:
    assert bare(text + end) == bare(text) == bare(bare(text))


@given(st.text(max_size=20), st.integers(0, 1200))
def test_the_shortest_silence_is_for_probabilities_alone(text: str, complete_ms: int) -> None:
    config = replace(CONFIG, complete_ms=complete_ms)
    for known in (*map(language, installed()), language("xx")):
        assert hangover_ms(text, None, config, known) in (config.hangover_ms, config.incomplete_ms)


@given(st.text(max_size=20) | st.sampled_from([*COMPLETE, *INCOMPLETE]))
def test_of_a_language_without_words_silence_alone_tells_the_end(text: str) -> None:
    for policy in ("auto", "trailing-words", "p-eot"):
        config = replace(CONFIG, endpoint=policy)
        assert hangover_ms(text, None, config, language("fr")) == CONFIG.hangover_ms


@pytest.mark.parametrize(
    ("known", "text"), [("en", "Tell me about"), ("de", "Ich möchte"), ("es", "Quiero una")]
)
def test_each_language_has_its_own_words(known: str, text: str) -> None:
    def waited(spoken: Language) -> int:
        return hangover_ms(text, None, CONFIG, spoken)

    others = [language(code) for code in installed() if code != known]
    assert waited(language(known)) == CONFIG.incomplete_ms
    assert {waited(other) for other in others} == {CONFIG.hangover_ms}


@given(
    st.sampled_from([*COMPLETE, *INCOMPLETE]),
    chances,
    st.integers(0, 3000),
    st.integers(0, 3000),
    st.integers(0, 1200),
)
def test_the_less_eager_the_longer_the_silence(
    text: str, chance: float | None, complete: int, hangover: int, incomplete: int
) -> None:
    config = replace(CONFIG, complete_ms=complete, hangover_ms=hangover, incomplete_ms=incomplete)
    waits = [
        hangover_ms(text, chance, with_eagerness(config, eagerness), ENGLISH)
        for eagerness in ("high", "medium", "low")
    ]
    assert waits == sorted(waits)
    assert with_eagerness(config, "auto") == with_eagerness(config, "medium") == config


@pytest.mark.parametrize("text", ["What time is it?", "What is the"])
def test_every_eagerness_is_heard(text: str) -> None:
    high, medium, low = (
        hangover_ms(text, None, with_eagerness(CONFIG, eagerness), ENGLISH)
        for eagerness in ("high", "medium", "low")
    )
    assert high <= 0.6 * medium and medium < low <= 1200


sure = st.floats(1e-6, 1 - 1e-6)


@given(sure, sure)
def test_odds_grow_with_the_probability_and_have_an_end(one: float, other: float) -> None:
    assert odds(0.5) == 1 and odds(0) > 0
    assert odds(one) * odds(1 - one) == pytest.approx(1)
    assert (odds(one) < odds(other)) == (one < other) or odds(one) == pytest.approx(odds(other))


@given(calibrations(), chances.filter(lambda chance: chance is not None), sure)
def test_the_sound_has_a_say_beside_the_words(
    calibration: Calibration, words: float, sound: float
) -> None:
    def waits(sound: float | None) -> int:
        return hangover_ms("so", words, CONFIG, ENGLISH, calibration, sound)

    # Whatever sounds more like an end is not waited for any longer, and a neutral sound is no sign.
    assert waits(sound) >= waits(min(1.0, sound + 0.2))
    assert waits(0.5) >= waits(None) or waits(0.5) == CONFIG.hangover_ms
    goes = waits(sound) == CONFIG.incomplete_ms
    assert goes_on(words, calibration, sound) == goes


@given(st.floats(0.2, 0.8), st.integers(88, 400), st.floats(0.01, 20))
def test_the_more_evident_an_end_the_shorter_the_silence(
    threshold: float, shortest_ms: int, favour: float
) -> None:
    calibration = Calibration(threshold, threshold, shortest_ms)
    sound = favour / (1 + favour)  # odds of an end, of words that tell nothing
    waited = hangover_ms("so", threshold, CONFIG, ENGLISH, calibration, sound)
    if sound < 0.499:
        assert waited == CONFIG.incomplete_ms
    elif favour >= 1.001 * EVIDENT:
        assert waited == shortest_ms
    elif sound > 0.501:
        assert shortest_ms <= waited <= CONFIG.hangover_ms
        squared = hangover_ms(
            "so", threshold, CONFIG, ENGLISH, calibration, favour**2 / (1 + favour**2)
        )
        saved, twice = CONFIG.hangover_ms - waited, CONFIG.hangover_ms - squared
        most = CONFIG.hangover_ms - shortest_ms
        assert twice == pytest.approx(min(2 * saved, most), abs=2), "odds squared save twice"


@given(calibrations(), sure, sure, st.integers(0, 600))
def test_nobody_waits_longer_for_an_evident_end_than_for_a_doubtful_one(
    calibration: Calibration, words: float, sound: float, hangover: int
) -> None:
    config = replace(CONFIG, hangover_ms=hangover)
    waited = hangover_ms("so", words, config, ENGLISH, calibration, sound)
    assert waited <= hangover or goes_on(words, calibration, sound)
    waited = hangover_ms("so", words, config, ENGLISH, calibration)
    assert waited <= hangover or goes_on(words, calibration)
