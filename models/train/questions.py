"""Makes spoken questions for measurements: `python -m models.train.questions OUT.wav [--count N]`.

The recording has held-out questions of the domain, spoken by espeak-ng in accents that the
recogniser knows. The silence between them is long enough for any endpoint. Each question is also
printed on stdout, one per line.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path

import numpy as np
import soundfile as sf
import soxr

from models.train.domain import questions
from models.train.voices import Voice, render

RATE = 16_000
SILENCE_S = 1.5
ACCENTS = ("en-us", "en", "en-gb-x-rp", "en-gb-scotland")


def spoken(text: str, voice: Voice) -> np.ndarray:
    """Speak `text` as float32 samples at 16 kHz, at a moderate level."""
    speech = render(text, voice)
    pcm = soxr.resample(speech.pcm, speech.rate, RATE) if speech.rate != RATE else speech.pcm
    return (0.4 * pcm / max(1e-6, float(np.abs(pcm).max()))).astype(np.float32)


def main() -> None:
    """Write the recording and print the questions."""
    parser = argparse.ArgumentParser(prog="models.train.questions", description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    pause = np.zeros(round(SILENCE_S * RATE), np.float32)
    pieces = [pause]
    for question in questions("heldout", options.count):
        voice = Voice("espeak", rng.choice(ACCENTS), rate=rng.uniform(0.85, 1.1))
        pieces += [spoken(question, voice), pause]
        print(question)
    sf.write(options.out, np.concatenate(pieces), RATE)


if __name__ == "__main__":
    main()
