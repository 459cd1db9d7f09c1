"""How long a silence ends the user's turn, from what they have said before it.

Rules without a state: `turnend` applies them to a turn. This module knows neither audio nor
models; the probability that a turn ends here comes from whoever has one, and the words that ask for
more from the `languages`.
"""

from __future__ import annotations

import math
from typing import Literal

from msgspec.structs import replace

from voiceloop.calibration.probability import odds
from voiceloop.config import TurnConfig
from voiceloop.languages import Language
from voiceloop.types import Calibration

EVIDENT = 4.0
"""Odds of an end, by its words and its sound together, at which the shortest silence ends a turn.
From even odds on it falls from `TurnConfig.hangover_ms` to that in proportion to their logarithm.
Pauses put into recordings of people, and the ends of these, hardly tell 3 from 10."""


def asks_model(config: TurnConfig, calibration: Calibration | None) -> bool:
    """Whether the language model has a say in `hangover_ms`, if it reads along."""
    known = calibration is not None
    return config.endpoint == "p-eot" or (config.endpoint == "auto" and known)


def needs_words(config: TurnConfig) -> bool:
    """Whether `hangover_ms` depends on what was said."""
    return config.endpoint != "fixed"


def hangover_ms(
    text: str,
    probability: float | None,
    config: TurnConfig,
    language: Language,
    calibration: Calibration | None = None,
    sound: float | None = None,
) -> int:
    """Milliseconds of silence that end a turn in which `text` was said so far, in `language`.

    `probability` is that of a turn ending after `text` without its final punctuation, made
    `comparable`, and None where nobody knows it; `calibration` says what it means, and without one
    it means nothing. `sound` is the probability by the sound of the voice, where there is one; it
    has a say beside the other.
    """
    match config.endpoint:
        case "fixed":
            return config.hangover_ms
        case "trailing-words":
            return _by_words(text, config, language)
        case "p-eot":
            if probability is None or calibration is None:
                return config.hangover_ms
            return _by_probability(probability, config, calibration, sound)
        case "auto":
            if probability is None or calibration is None:
                return _by_words(text, config, language)
            return _by_probability(probability, config, calibration, sound)


def goes_on(probability: float, calibration: Calibration, sound: float | None = None) -> bool:
    """Whether the user has evidently not finished, by the same as `hangover_ms`."""
    if sound is None:
        return probability < calibration.incomplete_below
    return _favour(probability, calibration.incomplete_below, sound) < 1


def _by_words(text: str, config: TurnConfig, language: Language) -> int:
    # Words that ask for more tell that a turn goes on; that others ask for none tells little. So
    # the shortest silence is for probabilities alone.
    return config.incomplete_ms if language.asks_for_more(text) else config.hangover_ms


def _by_probability(
    probability: float, config: TurnConfig, calibration: Calibration, sound: float | None
) -> int:
    if goes_on(probability, calibration, sound):
        return config.incomplete_ms
    # Whoever wants to be answered sooner waits no longer for what is evident.
    shortest_ms = min(max(config.complete_ms, calibration.complete_ms), config.hangover_ms)
    if sound is None:
        complete = probability >= calibration.complete_above
        return shortest_ms if complete else config.hangover_ms
    favour = _favour(probability, calibration.complete_above, sound)
    evident = min(1.0, max(0.0, math.log(favour) / math.log(EVIDENT)))
    return round(config.hangover_ms + evident * (shortest_ms - config.hangover_ms))


def _favour(probability: float, threshold: float, sound: float) -> float:
    """Odds of an end: even where the words are at their threshold and the sound tells nothing.

    They know different things, so the odds of both are multiplied.
    """
    return odds(probability) / odds(threshold) * odds(sound)


def with_eagerness(
    config: TurnConfig, eagerness: Literal["low", "medium", "high", "auto"]
) -> TurnConfig:
    """`config` with the silences of someone who wants to be answered with `eagerness`.

    `medium` and `auto` are as configured. `low` waits at least 400 ms after words that are
    evidently complete, 1000 ms where nobody knows and 1200 ms after words that ask for more, which
    is as long as any silence within a turn may be; `high` at most 300 ms and 600 ms of the latter
    two.
    """
    match eagerness:
        case "low":
            return replace(
                config,
                complete_ms=max(config.complete_ms, 400),
                hangover_ms=max(config.hangover_ms, 1000),
                incomplete_ms=max(config.incomplete_ms, 1200),
            )
        case "high":
            return replace(
                config,
                hangover_ms=min(config.hangover_ms, 300),
                incomplete_ms=min(config.incomplete_ms, 600),
            )
        case "medium" | "auto":
            return config
