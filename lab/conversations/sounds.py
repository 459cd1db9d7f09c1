"""Sounds that a microphone hears besides words: hiss, hum, babble, coughs, cleared throats.

Every sound is drawn from the caller's random generator, so the same seed gives the same sound. A
cough has the phases that recordings of coughs show: a burst as the glottis opens, a longer and
steadier noise, and often a voiced end. This source is filtered by the resonances of a throat and by
the radiation of the lips (Fant's source-filter model). All sounds are float32 at 16 kHz. This
module knows nothing of texts, turns and files.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from voiceloop.audio.frames import SPEECH_RATE, samples
from voiceloop.bench.clips import Rng, Wave, at_level, noise, rms
from voiceloop.types import Pcm

_RINGING_MS = 60
"""Time in which every resonance dies away."""
_JOIN_MS = 8
"""Time in which one part of a sound fades into the next."""


# --- backgrounds, which repeat without a seam ----------------------------------------------------


def hiss(rng: Rng, count: int, dbfs: float) -> Pcm:
    """Draw the hiss of an amplifier or a fan: flat, but falling by 12 dB an octave above 4 kHz."""
    return at_level(noise(rng, count, lambda hz: 1 / (1 + (hz / 4000) ** 2)), dbfs)


def hum(rng: Rng, count: int, dbfs: float) -> Pcm:
    """Draw the hum of mains at 50 or 60 Hz, with overtones that fall by 6 dB an octave.

    It repeats without a seam if `count` is a whole number of tenths of a second.
    """
    turns = 2 * np.pi * rng.choice((50.0, 60.0)) * np.arange(count) / SPEECH_RATE
    tones = [np.sin(k * turns + rng.uniform(0, 2 * np.pi)) / k for k in range(1, 11)]
    return at_level(np.sum(tones, axis=0), dbfs)


def babble(rng: Rng, count: int, dbfs: float, talkers: Sequence[Pcm]) -> Pcm:
    """Mix people who talk at once and equally loud, each beginning at a random sample.

    None of `talkers` may be longer than `count`. Each is repeated as often as fits in full.
    """
    mixed = np.zeros(count)
    for talker in talkers:
        said = np.tile(talker / rms(talker), count // len(talker))
        mixed[(rng.integers(count) + np.arange(len(said))) % count] += said
    return at_level(mixed, dbfs)


# --- sounds of a throat; the loudest sample is at full scale -------------------------------------


def cough(rng: Rng) -> tuple[Pcm, int | None]:
    """Draw a cough of 200 to 450 ms. Also return the sample at which its voice begins; two coughs
    in five have no voice, and None."""
    parts = [
        _breath(rng, rng.uniform(30, 60), attack_ms=rng.uniform(1, 4), decay=1.5),
        _breath(rng, rng.uniform(150, 250), attack_ms=_JOIN_MS, decay=1.5) * rng.uniform(0.3, 0.5),
    ]
    voiced = None
    if rng.random() < 0.6:
        voiced = len(_joined(parts)) - samples(_JOIN_MS)
        ms, hz = rng.uniform(60, 130), rng.uniform(220, 380)
        noise = _breath(rng, ms, attack_ms=_JOIN_MS, decay=1.0)
        parts.append(0.6 * _folds(rng, ms, hz, 0.6 * hz, jitter=0.04) + 0.15 * noise)
    resonances = (
        (rng.uniform(600, 1000), 200),
        (rng.uniform(1300, 1900), 250),
        (rng.uniform(2400, 3000), 300),
        (rng.uniform(3500, 4200), 400),
    )
    return _throat(_joined(parts), resonances), voiced


def throat_clearing(rng: Rng) -> tuple[Pcm, int]:
    """Draw a cleared throat: two rough low sounds, 300 to 550 ms in all. The voice begins at 0."""
    hz = rng.uniform(90, 140)
    parts = list[Wave]()
    for ms in (rng.uniform(130, 220), rng.uniform(180, 320)):
        noise = _breath(rng, ms, attack_ms=15, decay=1.0)
        parts.append(_folds(rng, ms, hz, 0.85 * hz, jitter=0.12) + 0.35 * noise)
    resonances = (
        (rng.uniform(450, 700), 120),
        (rng.uniform(1000, 1300), 150),
        (rng.uniform(2200, 2700), 250),
        (rng.uniform(3300, 3800), 350),
    )
    return _throat(_joined(parts), resonances), 0


def _breath(rng: Rng, ms: float, attack_ms: float, decay: float) -> Wave:
    """Draw noise that rises in `attack_ms`, falls by the factor exp(`decay`), and fades out."""
    at = np.arange(samples(ms))
    rise = np.minimum(1, (at + 1) / samples(attack_ms))
    fall = np.minimum(1, at[::-1] / samples(_JOIN_MS))
    return rng.standard_normal(len(at)) * rise * fall * np.exp(-decay * at / len(at))


def _folds(rng: Rng, ms: float, first_hz: float, last_hz: float, jitter: float) -> Wave:
    """Draw the flow of air through vocal folds whose pitch glides and wavers, at unit power."""
    flow = np.zeros(samples(ms))
    start = 0
    while start < len(flow):
        hz = first_hz + (last_hz - first_hz) * start / len(flow)
        period = samples(1000 / hz * np.exp(jitter * rng.standard_normal()))
        # Rosenberg's pulse, simplified: the folds open smoothly and close at once.
        opening = 0.5 - 0.5 * np.cos(np.pi * np.arange(round(0.6 * period)) / (0.6 * period))
        piece = flow[start : start + len(opening)]
        piece += opening[: len(piece)] * np.exp(2 * jitter * rng.standard_normal())
        start += period
    at = np.arange(len(flow))
    edges = np.minimum(1, np.minimum(at, at[::-1]) / samples(15))
    voiced = (flow - flow.mean()) * edges
    return voiced / rms(voiced)


def _joined(parts: Sequence[Wave]) -> Wave:
    """Join `parts`. Each begins while the part before it fades."""
    overlap = samples(_JOIN_MS)
    whole = np.zeros(sum(len(part) - overlap for part in parts) + overlap)
    at = 0
    for part in parts:
        whole[at : at + len(part)] += part
        at += len(part) - overlap
    return whole


def _throat(source: Wave, resonances: Sequence[tuple[float, float]]) -> Pcm:
    """Filter `source` by the radiation of the lips and by resonances: (centre, width) in hertz."""
    padded = np.concatenate((source, np.zeros(samples(_RINGING_MS))))
    hz = np.fft.rfftfreq(len(padded), 1 / SPEECH_RATE)
    delay = np.exp(-2j * np.pi * hz / SPEECH_RATE)  # by one sample
    response = 1 - 0.9 * delay  # radiation of the lips
    for centre, width in resonances:
        radius = np.exp(-np.pi * width / SPEECH_RATE)
        turn = 2 * radius * np.cos(2 * np.pi * centre / SPEECH_RATE)
        response = response * (1 - turn + radius**2) / (1 - turn * delay + (radius * delay) ** 2)
    sound = np.fft.irfft(np.fft.rfft(padded) * response, len(padded))
    return (sound / np.abs(sound).max()).astype(np.float32)
