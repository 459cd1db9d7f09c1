"""From what a model thinks of many silences to a calibration, or to the finding that the last word
tells as much.

A policy of endpointing costs delay where the user has ended, and cut-offs where they have not. A
pause within a request is taken to last from 200 to 700 ms, any length as likely as another. Knows
no models and no files.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from voiceloop.calibration.probability import comparable
from voiceloop.calibration.requests import Kind
from voiceloop.config import TurnConfig
from voiceloop.types import Calibration

SHORTEST_MS, LONGEST_MS = 200.0, 700.0
"""Of the pauses within a request."""
MOST_CUT_OFFS = 0.05
"""Share of the pauses after incomplete words that may end a turn."""
CUT_OFF_MS = 20_000.0
"""A turn that is ended after incomplete words is as bad as so much more silence after another: four
seconds, times five, since of words as a recogniser hears them so many more are cut off than of
those that were said."""
THRESHOLDS = 80
"""Thresholds that are tried, at equal steps of rank."""
STEP_MS = 20
"""From one silence that is tried to the next."""

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class JudgedSilence:
    """A silence, and how likely the model found that the turn ends there."""

    words: str
    kind: Kind
    probability: float
    unfinished: bool
    """The last word asks for another."""
    exchanges: int = 0
    """What had been asked and answered before."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What a policy of endpointing costs."""

    delay_ms: float
    """Mean silence after which a turn ends that is over."""
    incomplete: float
    """Share of the pauses after incomplete words that end the turn."""
    whole: float
    """The same of the pauses after words that are a request already; 0 where there are none."""


def cut_off(wait_ms: npt.ArrayLike) -> Array:
    """Probability that a pause within a request is longer than this."""
    return np.clip(
        (LONGEST_MS - np.asarray(wait_ms, np.float64)) / (LONGEST_MS - SHORTEST_MS), 0.0, 1.0
    )


def cost(judged: Sequence[JudgedSilence], waits_ms: Iterable[float]) -> Cost:
    """What a policy costs that ends a turn after these silences, one for each that was judged.

    Raises ValueError where there are no ends, or nothing else than ends and whole requests.
    """
    waits = np.fromiter(waits_ms, np.float64, len(judged))
    ends = np.array([one.kind == "end" for one in judged])
    whole = np.array([one.kind == "whole" for one in judged])
    incomplete = ~ends & ~whole
    if not ends.any() or not incomplete.any():
        raise ValueError("both true ends and incomplete words are needed")
    return Cost(
        float(waits[ends].mean()),
        float(cut_off(waits[incomplete]).mean()),
        float(cut_off(waits[whole]).mean()) if whole.any() else 0.0,
    )


def words_ms(
    judged: Sequence[JudgedSilence], complete_ms: float, incomplete_ms: float
) -> list[float]:
    """How long the last word alone makes each silence last."""
    return [incomplete_ms if one.unfinished else complete_ms for one in judged]


def probability_ms(
    judged: Sequence[JudgedSilence], calibration: Calibration, config: TurnConfig
) -> list[float]:
    """How long the probability alone makes each silence last."""
    return [
        _wait_ms(comparable(one.probability, calibration, one.exchanges), calibration, config)
        for one in judged
    ]


def words_at(judged: Sequence[JudgedSilence], delay_ms: float, config: TurnConfig) -> Cost:
    """What the last word alone costs at a mean delay, or at the next one that it can have."""
    unsure = float(np.mean([one.unfinished for one in judged if one.kind == "end"]))
    incomplete_ms = float(config.incomplete_ms)
    rest = (delay_ms - unsure * incomplete_ms) / max(1 - unsure, 1e-9)
    return cost(judged, words_ms(judged, max(0.0, rest), incomplete_ms))


def calibrate(judged: Sequence[JudgedSilence], config: TurnConfig) -> Calibration | None:
    """The calibration that costs least, `CUT_OFF_MS` a cut-off, of those that seldom cut off.

    That is after incomplete words in at most `MOST_CUT_OFFS` of the pauses, and after whole
    requests no oftener than the silence does that ends a turn of which nothing is known. None
    where there is none, or where the last word at the same delay is as good in either part.
    """
    found = _best(judged, config)
    if found is None:
        return None
    own = cost(judged, probability_ms(judged, found, config))
    words = words_at(judged, own.delay_ms, config)
    better = own.incomplete < words.incomplete and own.whole <= words.whole
    return found if better else None


def _wait_ms(probability: float, calibration: Calibration, config: TurnConfig) -> float:
    if probability >= calibration.complete_above:
        return max(config.complete_ms, calibration.complete_ms)
    if probability >= calibration.incomplete_below:
        return config.hangover_ms
    return config.incomplete_ms


def shift_of(judged: Sequence[JudgedSilence]) -> float:
    """By how much the log-odds of true ends are higher after an exchange; 0 where either kind is
    missing."""

    def middle(later: bool) -> float:
        own = [
            one.probability for one in judged if one.kind == "end" and (one.exchanges > 0) is later
        ]
        chance = float(np.clip(np.median(own), 1e-6, 1 - 1e-6)) if own else math.nan
        return math.log(chance / (1 - chance))

    shift = middle(True) - middle(False)
    return 0.0 if math.isnan(shift) else shift


def _best(raw: Sequence[JudgedSilence], config: TurnConfig) -> Calibration | None:
    shift = shift_of(raw)
    scale = Calibration(0.0, 0.0, 0, shift)
    judged = [
        replace(one, probability=comparable(one.probability, scale, one.exchanges)) for one in raw
    ]
    chances = np.array([one.probability for one in judged])
    thresholds = np.unique(np.quantile(chances, np.linspace(0, 1, THRESHOLDS), method="nearest"))
    silences = np.arange(config.complete_ms, config.hangover_ms, STEP_MS)
    silences = np.append(silences, config.hangover_ms)

    def mean(of: Sequence[Kind], value: Array, unsure: float, no: float) -> Array:
        """Mean of what a silence costs, by the silence [s], upper and lower threshold [t, t]."""
        own = np.sort([one.probability for one in judged if one.kind in of])
        if not len(own):
            return np.zeros((len(silences), len(thresholds), len(thresholds)))
        above = 1 - np.searchsorted(own, thresholds) / len(own)
        yes, likely = above[None, :, None], above[None, None, :]
        return yes * value[:, None, None] + (likely - yes) * unsure + (1 - likely) * no

    rest = np.array([config.hangover_ms, config.incomplete_ms], float)
    delay = mean(("end",), silences, *rest)
    risk = cut_off(silences), *cut_off(rest)
    incomplete = mean(("function word", "content word"), *risk)
    whole = mean(("whole",), *risk)
    allowed = (incomplete <= MOST_CUT_OFFS) & (whole <= risk[1])
    allowed &= thresholds[None, :, None] >= thresholds[None, None, :]
    if not allowed.any():
        return None
    best = np.argmin(np.where(allowed, delay + CUT_OFF_MS * incomplete, np.inf))
    silence, upper, lower = np.unravel_index(best, delay.shape)
    above, below = float(thresholds[upper]), float(thresholds[lower])
    return Calibration(above, below, int(silences[silence]), shift)
