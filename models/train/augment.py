"""Makes clean synthetic speech sound as if a cheap microphone had recorded it in a room.

Everything is drawn from one `numpy.random.Generator` and works on float32 mono at 16 kHz. It takes
a few milliseconds, since equalisation, band limits and reverberation are one product in the
frequency domain. This module knows neither text nor synthesizers.
"""

from __future__ import annotations

from collections import deque
from typing import Any, cast

import numpy as np
import scipy.fft
import soxr

RATE = 16_000
fft: Any = scipy.fft
"""`scipy.fft` without its stubs, which describe the arguments of its dispatcher, not results."""


def warp(pcm: np.ndarray, rate: int, factor: float) -> np.ndarray:
    """Resample to 16 kHz and play `factor` times faster.

    Pitch, vocal tract and tempo change together, which makes another speaker. The moment t of `pcm`
    moves to t / factor.
    """
    return soxr.resample(pcm, rate * factor, RATE, quality="MQ").astype(np.float32)


def spectrum(rng: np.random.Generator, bins: int) -> np.ndarray:
    """Draw the gains of a random microphone, float32 [bins]: smooth curve, tilt, band limits."""
    hz = np.linspace(0, RATE / 2, bins, dtype=np.float32)
    octave = np.log2(np.maximum(hz, 40) / 1000)
    knots = np.linspace(-5, 3, 7)
    db = np.interp(octave, knots, rng.normal(0, rng.uniform(0, 5), 7))
    db += octave * rng.normal(0, 1.2)
    if rng.random() < 0.4:  # the low end of small microphones
        db -= 12 * np.maximum(0, np.log2(rng.uniform(80, 350) / np.maximum(hz, 20)))
    if rng.random() < 0.35:  # telephones, old headsets, 8 kHz sources
        db -= np.clip((hz / rng.uniform(2800, 7500) - 1) * 200, 0, 60)
    return (10 ** (db / 20)).astype(np.float32)


def room(rng: np.random.Generator) -> np.ndarray:
    """Draw an impulse response: direct sound, a few echoes, and an exponentially decaying tail."""
    t60 = rng.uniform(0.08, 0.6)
    n = int(t60 * RATE)
    t = np.arange(n, dtype=np.float32) / RATE
    tail = rng.standard_normal(n, dtype=np.float32) * np.exp(-6.9 / t60 * t)
    tail[: int(rng.uniform(0.001, 0.012) * RATE)] = 0
    for _ in range(rng.integers(0, 6)):
        tail[rng.integers(10, min(n, 700))] += rng.normal(0, 5)
    tail *= 10 ** (-rng.uniform(2, 16) / 20) / (np.linalg.norm(tail) + 1e-6)
    tail[0] = 1
    return tail


def coloured(rng: np.random.Generator, n: int) -> np.ndarray:
    """Draw `n` samples of noise of unit power, with a random spectrum between white and brown."""
    size = fft.next_fast_len(n, real=True)
    bins = size // 2 + 1
    shape = np.linspace(1 / bins, 1, bins, dtype=np.float32) ** -rng.uniform(0, 1.0)
    noise = fft.irfft(fft.rfft(rng.standard_normal(size, dtype=np.float32)) * shape, size)[:n]
    return unit(noise)


def hum(rng: np.random.Generator, n: int) -> np.ndarray:
    """Draw the hum of mains or a fan: a few harmonics of a low tone."""
    t = np.arange(n, dtype=np.float32) / RATE
    base = rng.choice([50, 60, rng.uniform(80, 300)]) * 2 * np.pi
    harmonics = range(1, rng.integers(2, 8))
    parts = (rng.random() / k * np.sin(base * k * t + rng.random() * 6) for k in harmonics)
    return unit(cast(np.ndarray, sum(parts)))


def bursts(rng: np.random.Generator, n: int) -> np.ndarray:
    """Draw short noises at random moments: coughs, claps, clicks, breaths and knocks."""
    out = np.zeros(n, np.float32)
    for _ in range(rng.integers(1, 6)):
        length = int(RATE * np.exp(rng.uniform(np.log(0.003), np.log(0.5))))
        length = min(length, n)
        attack = max(1, int(length * rng.uniform(0.005, 0.5)))
        envelope = np.minimum(
            np.arange(length, dtype=np.float32) / attack,
            np.exp(-np.arange(length, dtype=np.float32) / length * rng.uniform(1, 7)),
        )
        burst = coloured(rng, length) * envelope
        if rng.random() < 0.5:  # resonant, like a throat or a table
            size = fft.next_fast_len(length, real=True)
            burst = fft.irfft(fft.rfft(burst, size) * formants(rng, size // 2 + 1), size)[:length]
        at = rng.integers(0, n - length + 1)
        out[at : at + length] += burst * rng.uniform(0.2, 1)
    return unit(out)


def formants(rng: np.random.Generator, bins: int) -> np.ndarray:
    """Draw the gains of two or three resonances, float32 [bins]."""
    hz = np.linspace(0, RATE / 2, bins, dtype=np.float32)
    gains = (
        1 / (1 + ((hz - rng.uniform(200, 3500)) / rng.uniform(40, 300)) ** 2)
        for _ in range(rng.integers(2, 4))
    )
    return cast(np.ndarray, sum(gains)).astype(np.float32)


def tones(rng: np.random.Generator, n: int) -> np.ndarray:
    """Draw a sound like music: decaying notes with random harmonics."""
    out = np.zeros(n, np.float32)
    step = int(RATE * rng.uniform(0.1, 0.6))
    for at in range(0, n, step):
        t = np.arange(min(step * 2, n - at), dtype=np.float32) / RATE
        base = 110 * 2 ** (rng.integers(0, 40) / 12) * 2 * np.pi
        note = sum(np.sin(base * k * t) * rng.random() / k for k in range(1, rng.integers(2, 6)))
        out[at : at + len(t)] += note * np.exp(-t * rng.uniform(1, 8))
    return unit(out)


def unit(x: np.ndarray) -> np.ndarray:
    """Scale to unit power."""
    return (x / (np.sqrt(np.mean(x * x)) + 1e-6)).astype(np.float32)


class Augmenter:
    """A simulator of rooms and microphones. It keeps the latest utterances to make babble."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.heard: deque[np.ndarray] = deque(maxlen=40)

    def babble(self, n: int) -> np.ndarray:
        """Mix several earlier utterances."""
        out = np.zeros(n, np.float32)
        for _ in range(self.rng.integers(2, 7)):
            if not self.heard:
                return coloured(self.rng, n)
            voice = self.heard[self.rng.integers(len(self.heard))]
            out += np.resize(np.roll(voice, self.rng.integers(len(voice))), n)
        return unit(out)

    def noise(self, n: int) -> np.ndarray:
        """Draw one kind of background noise of unit power."""
        rng = self.rng
        kind = rng.random()
        if kind < 0.6:
            return coloured(rng, n)
        if kind < 0.72:
            return hum(rng, n)
        if kind < 0.86:
            return self.babble(n)
        return bursts(rng, n) if kind < 0.95 else tones(rng, n)

    def __call__(self, speech: np.ndarray, lead: float, trail: float) -> np.ndarray:
        """Put `speech` into a random room, with a random microphone and background.

        `speech` is float32 at 16 kHz. `lead` seconds of silence come before it and `trail` after
        it. The result is float32 in [-1, 1].
        """
        rng = self.rng
        self.heard.append(speech)
        level = np.sqrt(np.mean(speech * speech)) + 1e-4
        clean = np.concatenate(
            [
                np.zeros(int(lead * RATE), np.float32),
                speech,
                np.zeros(int(trail * RATE), np.float32),
            ]
        )
        n = len(clean)
        if rng.random() < 0.85:
            reverberant = rng.random() < 0.45
            ir = room(rng) if reverberant else np.ones(1, np.float32)
            size = fft.next_fast_len(n + len(ir), real=True)
            filtered = fft.rfft(clean, size) * spectrum(rng, size // 2 + 1)
            if reverberant:
                filtered *= fft.rfft(ir, size)
            clean = fft.irfft(filtered, size)[:n]
            clean *= level / (np.sqrt(np.mean(clean[int(lead * RATE) :] ** 2)) + 1e-4)
        if rng.random() < 0.7:
            clean = clean + self.noise(n) * level * 10 ** (-rng.uniform(5, 40) / 20)
        return finish(rng, clean)

    def nothing(self, seconds: float) -> np.ndarray:
        """Draw audio without speech: silence, backgrounds, coughs, knocks or tones."""
        rng = self.rng
        n = int(seconds * RATE)
        out = coloured(rng, n) * 10 ** rng.uniform(-4.5, -1)
        if rng.random() < 0.15:
            out *= 0
        kind = rng.random()
        if kind < 0.25:
            out += hum(rng, n) * 10 ** rng.uniform(-3.5, -0.8)
        elif kind < 0.65:
            out += bursts(rng, n) * 10 ** rng.uniform(-2.5, -0.7)
        elif kind < 0.75:
            out += tones(rng, n) * 10 ** rng.uniform(-2.5, -0.7)
        return finish(rng, out)


def finish(rng: np.random.Generator, pcm: np.ndarray) -> np.ndarray:
    """Simulate a sound card: gain, clipping, companding, 16 bits."""
    peak = float(np.abs(pcm).max()) + 1e-6
    if peak > 1e-3:
        pcm = pcm * (10 ** (-abs(rng.normal(0, 12)) / 20) / peak)
    if rng.random() < 0.06:
        pcm = np.clip(pcm * rng.uniform(1.2, 4), -1, 1)
    if rng.random() < 0.06:  # mu-law, 8 bits
        bent = np.sign(pcm) * np.log1p(255 * np.abs(pcm)) / np.log(256)
        bent = np.round(bent * 127) / 127
        pcm = np.sign(bent) * (256 ** np.abs(bent) - 1) / 255
    return (np.round(np.clip(pcm, -1, 1) * 32767) / 32768).astype(np.float32)
