"""Speech coding of telephones (ITU-T G.711): 8 bits for each sample, on a scale that is finer for
quiet samples.

For both laws, µ-law and A-law, tables of every code and of every 16-bit sample are made from the
definition. A code holds the sign of a sample and its magnitude as an exponent and a mantissa, as in
floating point. This module knows no streams and no rates.
"""

from __future__ import annotations

from functools import cache
from typing import Literal

import numpy as np
import numpy.typing as npt

Law = Literal["mu", "a"]
Integers = npt.NDArray[np.int64]

BIAS = 33
"""Value that the µ-law adds to each magnitude. The highest bit of the sum then gives the
exponent."""
CLIP = 8191 - BIAS
"""Largest magnitude, of 13 bits, that has a code in the µ-law."""
MU_INVERTED, A_INVERTED = 0xFF, 0xD5
"""Masks of the bits that each law inverts in its codes."""


def encode(integers: npt.NDArray[np.int16], law: Law) -> bytes:
    """Return the codes of 16-bit samples, one byte each."""
    return _codes(law)[integers.view(np.uint16)].tobytes()


def decode(codes: bytes, law: Law) -> npt.NDArray[np.int16]:
    """Return the 16-bit samples of codes."""
    return _samples(law)[np.frombuffer(codes, np.uint8)]


@cache
def _codes(law: Law) -> npt.NDArray[np.uint8]:
    """Return the code of every 16-bit sample, indexed by the sample's bits as an unsigned
    number."""
    whole = np.arange(2**16, dtype=np.uint16).view(np.int16).astype(np.int64)
    return (_mu_codes(whole >> 2) if law == "mu" else _a_codes(whole >> 3)).astype(np.uint8)


def _mu_codes(samples: Integers) -> Integers:
    """Return the µ-law codes of samples of 14 bits."""
    magnitude = np.minimum(np.abs(samples), CLIP) + BIAS
    exponent = _bits(magnitude) - 6
    mantissa = magnitude >> (exponent + 1) & 15
    return ((samples < 0) << 7 | exponent << 4 | mantissa) ^ MU_INVERTED


def _a_codes(samples: Integers) -> Integers:
    """Return the A-law codes of samples of 13 bits."""
    magnitude = np.where(samples < 0, ~samples, samples)
    exponent = np.maximum(_bits(magnitude) - 5, 0)
    mantissa = magnitude >> np.maximum(exponent, 1) & 15
    return ((samples < 0) << 7 | exponent << 4 | mantissa) ^ A_INVERTED


def _bits(magnitude: Integers) -> Integers:
    """Return how many binary digits each number has."""
    return np.frexp(magnitude)[1].astype(np.int64)


@cache
def _samples(law: Law) -> npt.NDArray[np.int16]:
    """Return the 16-bit sample of every code."""
    codes = np.arange(2**8) ^ (MU_INVERTED if law == "mu" else A_INVERTED)
    exponent, mantissa = codes >> 4 & 7, codes & 15
    if law == "mu":
        magnitude = (((2 * mantissa + BIAS) << exponent) - BIAS) * 4
    else:
        leading = np.where(exponent > 0, 32, 0)
        magnitude = (2 * mantissa + 1 + leading << np.maximum(exponent - 1, 0)) * 8
    return np.where(codes & 0x80, -magnitude, magnitude).astype(np.int16)
