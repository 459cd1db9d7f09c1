"""Fits a calibration to a model's end probabilities at many silences.

A calibration must be better than a policy that only looks at the last word before a silence. A
policy has two costs: delay at true ends, and cut-offs at pauses within a request. The length of a
pause is assumed to be uniformly distributed from 200 to 700 ms. This module knows no models and no
files.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from voiceloop.calibration.probability import comparable, odds
from voiceloop.calibration.requests import Kind
from voiceloop.settings.config import TurnConfig
from voiceloop.types import Calibration

SHORTEST_MS, LONGEST_MS = 200.0, 700.0
"""Shortest and longest pause within a request, in ms."""
MOST_CUT_OFFS = 0.05
"""Maximum share of the pauses after incomplete words that may end a turn."""
CUT_OFF_MS = 20_000.0
"""Cost of a cut-off after incomplete words, in ms of silence at true ends. It is 4 s times 5. The
factor 5 is for errors of the recogniser: turns with recognised words are cut off 5 times more often
than turns with the exact words."""
THRESHOLDS = 80
"""Number of thresholds that are tried: evenly spaced quantiles of the probabilities."""
STEP_MS = 20
"""Step between the silences that are tried, in ms."""

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class JudgedSilence:
    """A silence, and the model's probability that the turn ends there."""

    words: str
    kind: Kind
    probability: float
    unfinished: bool
    """Whether the last word needs another one after it, like `to`."""
    exchanges: int = 0
    """Number of exchanges before the request."""


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of an endpoint policy."""

    delay_ms: float
    """Mean silence in ms from the end of what the user says to the end of the turn."""
    incomplete: float
    """Share of the pauses after incomplete words that end the turn."""
    whole: float
    """Share of the pauses after complete requests that end the turn; 0 without such pauses."""


def cut_off(wait_ms: npt.ArrayLike) -> Array:
    """Return the probability that a pause within a request is longer than `wait_ms`."""
    return np.clip(
        (LONGEST_MS - np.asarray(wait_ms, np.float64)) / (LONGEST_MS - SHORTEST_MS), 0.0, 1.0
    )


def cost(judged: Sequence[JudgedSilence], waits_ms: Iterable[float]) -> Cost:
    """Return the cost of a policy that ends a turn after `waits_ms`, one wait for each of `judged`.

    Raises ValueError if `judged` has no true ends or no incomplete words.
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
    """Return the wait at each silence in ms, if the last word alone decides: `incomplete_ms` after
    a word that needs another one, `complete_ms` after others."""
    return [incomplete_ms if one.unfinished else complete_ms for one in judged]


def probability_ms(
    judged: Sequence[JudgedSilence], calibration: Calibration, config: TurnConfig
) -> list[float]:
    """Return the wait at each silence in ms, if the probability alone decides."""
    return [
        _wait_ms(comparable(one.probability, calibration, one.exchanges), calibration, config)
        for one in judged
    ]


def words_at(judged: Sequence[JudgedSilence], delay_ms: float, config: TurnConfig) -> Cost:
    """Return the cost of a policy in which the last word alone decides. Its mean delay is
    `delay_ms`, or the shortest that this policy can have, if that is longer."""
    unsure = float(np.mean([one.unfinished for one in judged if one.kind == "end"]))
    incomplete_ms = float(config.incomplete_ms)
    rest = (delay_ms - unsure * incomplete_ms) / max(1 - unsure, 1e-9)
    return cost(judged, words_ms(judged, max(0.0, rest), incomplete_ms))


def calibrate(judged: Sequence[JudgedSilence], config: TurnConfig) -> Calibration | None:
    """Return the calibration with the least cost, at `CUT_OFF_MS` for each cut-off.

    The calibration may cut off at most `MOST_CUT_OFFS` of the pauses after incomplete words. After
    complete requests it may cut off no more pauses than the plain hangover does. Return None if no
    calibration keeps to these limits, or if the best one is not better than the last word alone.
    Better means: at the same mean delay, it has fewer cut-offs after incomplete words and no more
    after complete requests.
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
    """Return the median log-odds of true ends in later turns, minus the median in first turns. The
    result is 0 if later turns or first turns have no true ends."""

    def middle(later: bool) -> float:
        ends = [one for one in judged if one.kind == "end" and (one.exchanges > 0) is later]
        own = [one.probability for one in ends]
        return math.log(odds(float(np.median(own)))) if own else math.nan

    shift = middle(True) - middle(False)
    return 0.0 if math.isnan(shift) else shift


def _best(raw: Sequence[JudgedSilence], config: TurnConfig) -> Calibration | None:
    shift = shift_of(raw)
    scale = Calibration(0.0, 0.0, 0, shift)
    judged = [
        replace(one, probability=comparable(one.probability, scale, one.exchanges)) for one in raw
    ]
    probabilities = np.array([one.probability for one in judged])
    thresholds = np.unique(
        np.quantile(probabilities, np.linspace(0, 1, THRESHOLDS), method="nearest")
    )
    silences = np.arange(config.complete_ms, config.hangover_ms, STEP_MS)
    silences = np.append(silences, config.hangover_ms)

    def mean(of: Sequence[Kind], value: Array, unsure: float, no: float) -> Array:
        """Return the mean cost at silences of the kinds `of`, as an array [silences, upper
        thresholds, lower thresholds]. A probability costs `value` (one for each of `silences`) if
        it reaches the upper threshold, `unsure` if it lies between the thresholds, and `no` if it
        is below both."""
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
