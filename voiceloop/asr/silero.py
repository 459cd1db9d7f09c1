"""Voice activity by Silero, window by window, on the ONNX file that faster-whisper carries.

The network sees each window of 512 samples together with the 64 samples before it and keeps the
state of its recurrent layer; without that left context its probabilities are far too low. Fed this
way, a stream gives what the batch use over the whole audio gives. This module knows nothing of
turns and thresholds.
"""

from __future__ import annotations

import math
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from voiceloop.audio.frames import silence
from voiceloop.config import VadConfig
from voiceloop.engines import Vad
from voiceloop.errors import ModelCorrupt, ModelNotFound
from voiceloop.types import Pcm

WINDOW = 512
CONTEXT = 64
STATE = (1, 1, 128)
MUTE = 4 / 32768
"""Loudest sample of a microphone that is off: what dither leaves of silence."""
MUTE_WINDOWS = 8
"""After so many of them the network remembers no speech, and is asked no more until there is sound:
clients that stream silence would cost more than those who speak."""

HEARD = 0.03
"""Peak of sound that the network hears well; speech is far above it. What is softer, and has been
for seconds, is made louder: it misses speech below some -50 dB of full scale, Whisper does not."""
MOST_GAIN = 6.0
ABOVE = 3.0
"""Peak of what is made louder, of that of the softest windows: background is left as it is."""
FALL = 0.989
"""What is left of a loud sound after a window, as the softest one rises: by 3 dB in a second."""


class Silero:
    """A stream's voice activity; implements `engines.Vad`."""

    frame = WINDOW

    def __init__(self) -> None:
        self._session = _session()
        self.reset()

    def probability(self, pcm: Pcm) -> float:
        """Probability that these 512 samples at 16 kHz, next in the stream, are speech."""
        peak = float(np.abs(pcm).max())
        self._muted = self._muted + 1 if peak <= MUTE else 0
        if self._muted == MUTE_WINDOWS:
            self._forget()
        if self._muted >= MUTE_WINDOWS:
            return 0.0
        window = self._gain(peak) * np.concatenate((self._context, pcm))[None]
        output, self._h, self._c = self._session.run(
            None, {"input": window, "h": self._h, "c": self._c}
        )
        self._context = pcm[-CONTEXT:]
        return float(output.item())

    def _gain(self, peak: float) -> np.float32:
        """How much louder a window is made of that peak, the next of the stream."""
        self._loudest = max(peak, self._loudest * FALL, MUTE)
        self._softest = min(max(peak, MUTE), self._softest / FALL)
        if peak < ABOVE * self._softest:
            return np.float32(1.0)
        return np.float32(min(max(HEARD / self._loudest, 1.0), MOST_GAIN))

    def reset(self) -> None:
        """Forget the stream so far."""
        self._muted = 0
        self._forget()

    def _forget(self) -> None:
        self._loudest, self._softest = 0.0, math.inf
        """Peaks of the windows lately."""
        self._context = silence(CONTEXT)
        self._h = np.zeros(STATE, np.float32)
        self._c = np.zeros(STATE, np.float32)


@lru_cache
def _session() -> Any:
    """The network, loaded once and shared by all streams (its `run` is thread-safe)."""
    # Looked up without importing the package, which would load CTranslate2 and more.
    package = find_spec("faster_whisper")
    asset = "assets/silero_vad_v6.onnx"
    path = Path(package.origin).parent / asset if package and package.origin else Path(asset)
    if not path.is_file():
        raise ModelNotFound(
            f"the voice activity model {path} is missing",
            "reinstall it with: pip install --force-reinstall 'faster-whisper>=1.2,<2'",
        )
    options = onnxruntime.SessionOptions()
    # A window takes a fifth of a millisecond: more threads would only wait for each other.
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.enable_cpu_mem_arena = False
    options.log_severity_level = 4
    try:
        return onnxruntime.InferenceSession(
            path, sess_options=options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # onnxruntime's own exception types are private
        raise ModelCorrupt(
            f"the voice activity model {path} cannot be read",
            "reinstall it with: pip install --force-reinstall 'faster-whisper>=1.2,<2'",
        ) from error


def silero(config: VadConfig) -> Vad:
    """Entry point of `voiceloop.vad`: one instance for each stream of audio."""
    del config  # thresholds belong to turn-taking
    return Silero()
