"""G.711 against another implementation, and against values of the standard."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from voiceloop.audio.g711 import Law, decode, encode

pytestmark = pytest.mark.pure

CODES = bytes(range(256))
SAMPLES = np.arange(-(2**15), 2**15).astype(np.int16)
LAWS: tuple[Law, ...] = ("mu", "a")


@pytest.fixture
def audioop() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return pytest.importorskip("audioop", reason="Python 3.13 has it no more")


@pytest.mark.parametrize(("law", "name"), [("mu", "ulaw"), ("a", "alaw")])
def test_every_code_and_every_sample_is_as_python_had_them(
    law: Law, name: str, audioop: Any
) -> None:
    samples = np.frombuffer(getattr(audioop, f"{name}2lin")(CODES, 2), np.int16)
    assert decode(CODES, law).tolist() == samples.tolist()
    assert encode(SAMPLES, law) == getattr(audioop, f"lin2{name}")(SAMPLES.tobytes(), 2)


STANDARD = {
    # µ-law, of 14 bits: where each segment begins (table 2a, with the bits of table 2 inverted).
    "mu": {
        0xFF: 0,
        0xFE: 2,
        0xF0: 30,
        0xEF: 33,
        0xDF: 99,
        0xCF: 231,
        0xBF: 495,
        0xAF: 1023,
        0x9F: 2079,
        0x8F: 4191,
        0x80: 8031,
    },
    # A-law, of 13 bits, a unit being half a step of the first segment (table 1a, likewise).
    "a": {
        0xD5: 1,
        0xD4: 3,
        0xC5: 33,
        0xF5: 66,
        0xE5: 132,
        0x95: 264,
        0x85: 528,
        0xB5: 1056,
        0xA5: 2112,
        0xAA: 4032,
    },
}
"""Positive values; the same code with its first bit inverted is as much below zero."""


@pytest.mark.parametrize("law", LAWS)
def test_codes_have_the_values_of_the_standard(law: Law) -> None:
    shift = 2 if law == "mu" else 3
    for code, value in STANDARD[law].items():
        above, below = decode(bytes([code, code ^ 0x80]), law).tolist()
        assert (above, below) == (value << shift, -value << shift)


@pytest.mark.parametrize("law", LAWS)
def test_a_sample_comes_back_within_half_a_step_and_in_order(law: Law) -> None:
    back = decode(encode(SAMPLES, law), law).astype(int)
    assert np.all(np.diff(back) >= 0)
    magnitude = np.abs(SAMPLES.astype(int))
    # 16 steps to each doubling, and no finer than 4 or 8 of 65,536.
    inside = magnitude < 32_636
    assert np.all(np.abs(back - SAMPLES)[inside] <= np.maximum(8, magnitude[inside] / 32 + 8))
