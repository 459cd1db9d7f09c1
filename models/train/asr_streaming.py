"""Measures the cost of streaming: word error rates with partial decodes, and with one decode.

Both use voiceloop's own turn-taking and recogniser, on the exported model.
"""

from __future__ import annotations

import random
from pathlib import Path

import jiwer
import numpy as np

from models.train.asr_data import mild
from models.train.asr_export import normalise
from models.train.augment import RATE
from models.train.domain import utterance
from models.train.voices import render, training_voice, unseen_voice
from voiceloop.asr.recording import transcribe_live
from voiceloop.asr.silero import silero
from voiceloop.asr.whisper import whisper
from voiceloop.settings.config import AsrConfig, TurnConfig, VadConfig

TRAIL_S = 1.0
BLOCK = RATE // 50


def streaming(model: Path, count: int, seed: int) -> dict[str, float]:
    """Return word error rates of `count` held-out sentences, half of them in unseen voices.

    `one_shot` decodes a turn once, at its end; `streaming` runs partial decodes before. `differ` is
    the share of sentences with two different transcripts.
    """
    rng, noise = random.Random(f"{seed}-streaming"), np.random.default_rng(seed)
    asr = whisper(AsrConfig(model=str(model)))
    said: list[str] = []
    heard: dict[bool, list[str]] = {False: [], True: []}
    while len(said) < count:
        text = utterance(rng, "heldout")
        known = len(said) % 2 == 0
        voice = training_voice(rng, "espeak") if known else unseen_voice(rng, "espeak")
        pcm = mild(noise, render(text, voice), TRAIL_S)
        blocks = [pcm[at : at + BLOCK] for at in range(0, len(pcm), BLOCK)]
        said.append(normalise(text))
        for partials in heard:
            transcripts = transcribe_live(
                blocks, silero(VadConfig()), asr, AsrConfig(), TurnConfig(), partials=partials
            )
            words = " ".join(t.text for t in transcripts if t.final)
            heard[partials].append(normalise(words))
    return {
        "sentences": count,
        "one_shot": jiwer.wer(said, heard[False]),
        "streaming": jiwer.wer(said, heard[True]),
        "differ": float(np.mean([a != b for a, b in zip(*heard.values(), strict=True)])),
    }
