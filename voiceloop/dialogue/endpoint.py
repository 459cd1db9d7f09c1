"""Rules for the length of silence that ends the user's turn, given what they have said before it.

The rules have no state: `turnend` applies them to a turn. This module knows neither audio nor
models. The probability that a turn ends here comes from the caller, and the words that ask for more
come from `languages`. A package may bring a rule of its own (`voiceloop.endpoint` entry points).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from msgspec.structs import replace

from voiceloop.calibration.probability import odds
from voiceloop.config import TurnConfig
from voiceloop.languages import Language
from voiceloop.types import Calibration

EVIDENT = 4.0
"""Odds of an end, by words and sound together, from which the shortest silence ends a turn.

At even odds, `TurnConfig.hangover_ms` of silence end it. In between, the silence falls linearly
with the logarithm of the odds. Values from 3 to 10 gave nearly equal results on recordings of
people, both at their ends and at pauses that had been put into them.
"""


@dataclass(frozen=True, slots=True)
class TurnSoFar:
    """What is known of a turn in whose silence a rule is asked."""

    text: str
    """What was said so far."""
    probability: float | None
    """The language model's probability that a turn ends after `text` without its final punctuation,
    converted by `comparable`; None while it is not known."""
    config: TurnConfig
    language: Language
    calibration: Calibration | None = None
    """What the probability means; if it is None, the probability is not used."""
    sound: float | None = None
    """The turn model's probability that the turn is over; None if it has not judged that."""


class EndpointRule:
    """A rule for the silence that ends a turn. This one is `fixed`: it asks nobody."""

    needs_words = False
    """Whether the silence depends on what was said."""

    def asks_model(self, *, calibrated: bool) -> bool:
        """Return whether the rule uses the language model's probability, provided that the model
        reads the words. `calibrated` says whether it is known what the probability means."""
        return False

    def silence_ms(self, said: TurnSoFar) -> int:
        """Return the milliseconds of silence that end the turn."""
        return said.config.hangover_ms


class _TrailingWords(EndpointRule):
    # Words that ask for more show that a turn goes on, but other words show little. So only a
    # probability may lead to the shortest silence.
    needs_words = True

    def silence_ms(self, said: TurnSoFar) -> int:
        more = said.language.asks_for_more(said.text)
        return said.config.incomplete_ms if more else said.config.hangover_ms


class _Probable(EndpointRule):
    needs_words = True

    def asks_model(self, *, calibrated: bool) -> bool:
        return True

    def silence_ms(self, said: TurnSoFar) -> int:
        if said.probability is None or said.calibration is None:
            return super().silence_ms(said)
        return _by_probability(said.probability, said.config, said.calibration, said.sound)


class _Auto(_Probable, _TrailingWords):
    def asks_model(self, *, calibrated: bool) -> bool:
        return calibrated


ENDPOINT_RULES: dict[str, EndpointRule] = {
    "auto": _Auto(),
    "p-eot": _Probable(),
    "trailing-words": _TrailingWords(),
    "fixed": EndpointRule(),
}
"""The rules by their names in `turns.endpoint`. `loading` adds the configured one of a package."""


def hangover_ms(said: TurnSoFar) -> int:
    """Return the milliseconds of silence that end the turn by the configured rule."""
    return ENDPOINT_RULES[said.config.endpoint].silence_ms(said)


def goes_on(probability: float, calibration: Calibration, sound: float | None = None) -> bool:
    """Return whether the user has evidently not finished, by the criteria of `p-eot`."""
    if sound is None:
        return probability < calibration.incomplete_below
    return _favour(probability, calibration.incomplete_below, sound) < 1


def _by_probability(
    probability: float, config: TurnConfig, calibration: Calibration, sound: float | None
) -> int:
    if goes_on(probability, calibration, sound):
        return config.incomplete_ms
    # With a short hangover, even an evident end must not take longer than that.
    shortest_ms = min(max(config.complete_ms, calibration.complete_ms), config.hangover_ms)
    if sound is None:
        complete = probability >= calibration.complete_above
        return shortest_ms if complete else config.hangover_ms
    favour = _favour(probability, calibration.complete_above, sound)
    evident = min(1.0, max(0.0, math.log(favour) / math.log(EVIDENT)))
    return round(config.hangover_ms + evident * (shortest_ms - config.hangover_ms))


def _favour(probability: float, threshold: float, sound: float) -> float:
    """Return the odds of an end by words and sound. They are 1 if `probability` equals `threshold`
    and `sound` is one half.

    Words and sound are different evidence, so their odds are multiplied.
    """
    return odds(probability) / odds(threshold) * odds(sound)


def with_eagerness(
    config: TurnConfig, eagerness: Literal["low", "medium", "high", "auto"]
) -> TurnConfig:
    """Return `config` with the silences for a user who wants to be answered with `eagerness`.

    `medium` and `auto` change nothing. `low` waits at least 400 ms after words that are evidently
    complete, 1000 ms after words that leave this open, and 1200 ms after words that are evidently
    incomplete. No silence within a turn may be longer than 1200 ms. `high` waits at most 300 ms
    after words that leave it open whether they are complete, and 600 ms after words that are
    evidently incomplete.
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
