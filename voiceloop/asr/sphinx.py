"""Recognition by pocketsphinx, for the starter domain: an engine that was trained on human voices.

Its acoustic model comes with the package; the language model and the dictionary, whose words are
written forms ("6?" sounds like "six"), with voiceloop. It knows nothing beyond its domain: whatever
is said, it hears words of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from voiceloop.audio.frames import SPEECH_RATE, to_pcm16
from voiceloop.bundled import bundled
from voiceloop.config import AsrConfig
from voiceloop.engines import Asr
from voiceloop.errors import ConfigError, MissingExtra, ModelCorrupt, ModelNotFound
from voiceloop.languages import AUTO
from voiceloop.types import Pcm, Word

LANGUAGE, DICTIONARY = "domain.lm.bin", "domain.dict"
FRAME_S = 0.01
QUIETEST = 1e-4
"""Peak under which there is nothing to hear."""
DITHER = 1e-3
"""Noise that is added, as a part of the peak: in the digital silence between a synthesizer's words
the acoustic model, which never met such a thing, is lost."""
BEAMS = {"beam": 1e-80, "pbeam": 1e-80, "wbeam": 1e-60, "maxhmmpf": -1}
"""Wider than the package's own: fewer errors for half as much time again."""
FILLERS = ("<", "[", "+")
"""How the names of silences and noises begin."""


class Sphinx:
    """A recogniser; implements `engines.Asr`."""

    name = "sphinx"
    max_window_s = 30.0
    languages: tuple[str, ...] = ("en",)

    def __init__(self, folder: Path) -> None:
        """`folder` holds `domain.lm.bin` and `domain.dict`."""
        try:
            import pocketsphinx
        except ImportError as error:
            raise MissingExtra("pocketsphinx", "sphinx") from error
        for file in (LANGUAGE, DICTIONARY):
            if not (folder / file).is_file():
                raise ModelCorrupt(
                    f"{folder} is no model for sphinx: {file} is missing",
                    "in a checkout, make it with: python -m models.train.sphinx",
                )
        try:
            self._decoder: Any = pocketsphinx.Decoder(
                lm=str(folder / LANGUAGE),
                dict=str(folder / DICTIONARY),
                loglevel="FATAL",
                **BEAMS,
            )
            # A dictionary with nothing but lines that make no sense is loaded without complaint.
            first = (folder / DICTIONARY).read_text(encoding="utf-8").split(maxsplit=1)
            if not first or self._decoder.lookup_word(first[0]) is None:
                raise RuntimeError(f"{DICTIONARY} holds no pronunciations")
        except (RuntimeError, UnicodeDecodeError) as error:
            raise ModelCorrupt(
                f"the model in {folder} cannot be loaded: {error}",
                "in a checkout, make it again with: python -m models.train.sphinx",
            ) from error

    def transcribe(
        self,
        pcm: Pcm,
        *,
        final: bool,
        timed: bool = False,
        language: str | None = None,
        settled: Sequence[str] = (),
    ) -> Sequence[Word]:
        """Words of a window at 16 kHz; see `engines.Asr`. All are decoded and timed alike."""
        del final, timed, language, settled
        peak = float(np.abs(pcm).max(initial=0.0))
        if peak < QUIETEST:
            return ()
        noise = DITHER * np.random.default_rng(0).standard_normal(len(pcm), np.float32)
        audio = to_pcm16(((pcm / peak + noise) / 2).astype(np.float32))
        decoder = self._decoder
        decoder.start_utt()
        # The whole window at once: its mean is taken from it and not from what was heard before.
        decoder.process_raw(audio.tobytes(), full_utt=True)
        decoder.end_utt()
        if decoder.hyp() is None:
            return ()
        logmath, end = decoder.logmath, len(pcm) / SPEECH_RATE
        return [
            Word(
                segment.word.partition("(")[0],
                segment.start_frame * FRAME_S,
                min(end, (segment.end_frame + 1) * FRAME_S),
                min(1.0, logmath.exp(segment.prob)),
            )
            for segment in decoder.seg()
            if not segment.word.startswith(FILLERS)
        ]

    def detect_language(self, pcm: Pcm) -> tuple[str, float]:
        """See `engines.Asr`; it is always English."""
        del pcm
        return "en", 1.0


def sphinx(config: AsrConfig) -> Asr:
    """Entry point of `voiceloop.asr`: `config.model` is `starter` or a folder.

    Raises MissingExtra, ModelNotFound, ModelCorrupt, or ConfigError for a language but English.
    """
    if config.language not in (AUTO, "en"):
        raise ConfigError(
            f"sphinx does not know the language '{config.language}'", "it knows en alone"
        )
    starter = config.model == "starter"
    folder = bundled("models/starter/sphinx") if starter else Path(config.model).expanduser()
    if not folder.is_dir():
        raise ModelNotFound(f"there is no folder {config.model}", "check the path")
    return Sphinx(folder)
