"""Finds a wake word by a small network that knows its sound, microWakeWord.

The package and its models are from Home Assistant. It takes a third of a percent of a core, and
hears its word whatever the language of the recogniser is.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from voiceloop.audio.frames import SampleBuffer, dbfs, samples, to_pcm16
from voiceloop.errors import ConfigError, EngineError, MissingExtra, ModelCorrupt, ModelNotFound
from voiceloop.schema import suggestion
from voiceloop.types import AudioFrame

if TYPE_CHECKING:
    from pymicro_wakeword import MicroWakeWord

LATE_MS = 200
"""Milliseconds after the word in which it is found, so that what follows it may have begun."""
GAP_MS = 20
"""Length of the quietest stretch in that time, where the word ends."""
GAP_DB = 15.0
"""Decibels by which that stretch is softer than the loudest one. Otherwise the word may not be over
yet, and what has been said counts as a part of it."""


class SoundedWord:
    """Finds a wake word by its sound; implements `microphone.WakeWord`."""

    def __init__(self, network: MicroWakeWord) -> None:
        from pymicro_wakeword import MicroWakeWordFeatures

        self.name = str(network.wake_word).lower()
        self._network, self._features = network, MicroWakeWordFeatures()
        self._recent: SampleBuffer | None = None
        """The samples of the last `LATE_MS`; None before the first."""

    def reset(self) -> None:
        """Forget the stream so far."""
        self._network.reset()
        self._features.reset()
        self._recent = None

    @property
    def needed(self) -> int:
        """Return the first sample that is still wanted, should the word be found later."""
        return self._recent.start if self._recent else 0

    async def feed(self, frame: AudioFrame) -> int | None:
        """Take the next frame. Return the sample from which on the user is to be heard, if the word
        has been said."""
        if self._recent is None:
            self._recent = SampleBuffer(frame.start)
        self._recent.append(frame.pcm)
        self._recent.drop(frame.end - samples(LATE_MS))
        found = False
        for features in self._features.process_streaming(to_pcm16(frame.pcm).tobytes()):
            found = bool(self._network.process_streaming(features)) or found
        return _end_of_word(self._recent) if found else None


def _end_of_word(recent: SampleBuffer) -> int:
    """Return where the word probably ends: in the quietest stretch, if there is one."""
    size = samples(GAP_MS)
    places = range(recent.start, recent.end - size + 1, size // 2)
    levels = [dbfs(recent.read(at, at + size)) for at in places]
    quietest = min(levels, default=0.0)
    if not levels or quietest > max(levels) - GAP_DB:
        return recent.end
    return places[levels.index(quietest)] + size // 2


def sounded_word(model: str) -> SoundedWord:
    """Load the wake word `model`: one that comes with the package, or a file.

    Raises MissingExtra without the package, EngineError if this machine cannot run it, ConfigError
    for an unknown name, and ModelNotFound or ModelCorrupt for a file that cannot be used.
    """
    try:
        from pymicro_wakeword import MicroWakeWord, Model

        library = MicroWakeWord.from_builtin(Model.OKAY_NABU).lib
    except ImportError as error:
        raise MissingExtra("pymicro-wakeword, which wake.model needs,", "wake") from error
    except (OSError, ValueError) as error:
        raise EngineError(
            f"pymicro-wakeword does not work here: {error}", "wake.phrase does not need it"
        ) from error
    known = {one.value: one for one in Model}
    if model in known:
        return SoundedWord(MicroWakeWord.from_builtin(known[model]))
    about = Path(model).with_suffix(".json")
    if Path(model).suffix not in (".json", ".tflite"):
        raise ConfigError(f"there is no wake word called '{model}'", suggestion(model, known))
    # The library ends the process if it is to run a damaged network, so it is asked for it first.
    network = _network(about)
    read = library.TfLiteModelCreateFromFile(str(network).encode())
    if not read:
        raise _corrupt(network)
    library.TfLiteModelDelete(read)
    try:
        return SoundedWord(MicroWakeWord.from_config(about))
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise _corrupt(about) from error


def _network(about: Path) -> Path:
    """Return the network that a file describes. Raise ModelNotFound or ModelCorrupt if there is
    none."""
    try:
        described = json.loads(about.read_text(encoding="utf-8"))
        network = (about.parent / described["model"]).resolve()
        network.open("rb").close()
    except FileNotFoundError as error:
        raise ModelNotFound(
            f"there is no {error.filename}",
            "a wake word is NAME.tflite, and NAME.json of microWakeWord beside it",
        ) from error
    except OSError as error:
        raise ModelNotFound(
            f"{error.filename} cannot be read: {error.strerror}", "check its permissions"
        ) from error
    except (KeyError, TypeError, ValueError) as error:
        raise _corrupt(about) from error
    return network


def _corrupt(path: Path) -> ModelCorrupt:
    return ModelCorrupt(f"{path} is not a wake word of microWakeWord", "fetch it anew")
