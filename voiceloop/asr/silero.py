"""Runs the voice activity detection (VAD) of Silero, window by window.

The network is an ONNX file in the package faster-whisper. It takes each window of 512 samples
together with the 64 samples before it; without these its probabilities are far too low. `Silero`
keeps these samples and the state of the recurrent layer from window to window. So a window gets the
same probability as in the whole audio. This module knows nothing of turns and thresholds.
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
from voiceloop.engines import Vad
from voiceloop.errors import ModelCorrupt, ModelNotFound
from voiceloop.settings.config import VadConfig
from voiceloop.types import Pcm

REINSTALL = "reinstall it with: pip install --force-reinstall 'faster-whisper>=1.2,<2'"
WINDOW = 512
CONTEXT = 64
STATE = (1, 1, 128)
MUTE = 4 / 32768
"""Maximum amplitude of a microphone that is off: silence with dither."""
MUTE_WINDOWS = 8
"""After this many mute windows in a row the network is reset, and does not run until there is
sound. Otherwise a client that streams silence would cost more computing time than a client whose
user speaks."""

HEARD = 0.03
"""Peak amplitude that the network hears well. Speech is usually far louder. If the loudest peak of
the last seconds is lower, windows are amplified, because the network misses speech below some -50
dBFS. Whisper still recognises speech at that level."""
MOST_GAIN = 6.0
"""Maximum factor by which a window is amplified."""
ABOVE = 3.0
"""A window is amplified only if its peak is at least this many times the peak of the softest recent
window. Otherwise it is background."""
FALL = 0.989
"""In each window, the remembered loudest peak is multiplied by this factor and the softest is
divided by it: 3 dB a second."""


class Silero:
    """The voice activity detection of one stream; implements `engines.Vad`."""

    frame = WINDOW

    def __init__(self) -> None:
        self._session = _session()
        self.reset()

    def probability(self, pcm: Pcm) -> float:
        """Return the probability that the next 512 samples at 16 kHz are speech."""
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
        """Return the factor that amplifies the next window. `peak` is the largest amplitude of that
        window."""
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
        """Loudest and softest peak of recent windows."""
        self._context = silence(CONTEXT)
        self._h = np.zeros(STATE, np.float32)
        self._c = np.zeros(STATE, np.float32)


@lru_cache
def _session() -> Any:
    """Load the network once for all streams; its `run` is thread-safe."""
    # The package is only looked up: importing it would load CTranslate2 and more.
    package = find_spec("faster_whisper")
    asset = "assets/silero_vad_v6.onnx"
    path = Path(package.origin).parent / asset if package and package.origin else Path(asset)
    if not path.is_file():
        raise ModelNotFound(f"the voice activity model {path} is missing", REINSTALL)
    return open_network(path, "voice activity model", REINSTALL)


def open_network(path: Path, name: str, hint: str, *, arena: bool = False) -> Any:
    """Open a network that has inputs and runs on one thread of the CPU. With `arena`, onnxruntime
    keeps memory from run to run. Raises ModelCorrupt, which calls the network `name`."""
    options = onnxruntime.SessionOptions()
    # A run takes so little time that more threads would only wait for each other.
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.enable_cpu_mem_arena = arena
    options.log_severity_level = 4
    corrupt = ModelCorrupt(f"the {name} {path} cannot be read", hint)
    try:
        session = onnxruntime.InferenceSession(
            path, sess_options=options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # onnxruntime's own exception types are private
        raise corrupt from error
    if not session.get_inputs():
        raise corrupt
    return session


def silero(config: VadConfig) -> Vad:
    """Make the VAD of one stream of audio. This is the entry point of `voiceloop.vad`."""
    del config  # thresholds belong to turn-taking
    return Silero()
