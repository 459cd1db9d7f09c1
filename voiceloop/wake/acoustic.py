"""Finds a wake word by its sound, with the small network microWakeWord.

The package pymicro-wakeword and its models are from Home Assistant. The network takes 0.3 % of a
core, and does not depend on the recogniser or its language.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from voiceloop.audio.frames import SILENCE_DBFS, SampleBuffer, levels, samples, to_pcm16
from voiceloop.errors import ConfigError, EngineError, MissingExtra, ModelCorrupt, ModelNotFound
from voiceloop.foreign import parsed
from voiceloop.settings.schema import suggestion
from voiceloop.types import AudioFrame

if TYPE_CHECKING:
    from pymicro_wakeword import MicroWakeWord

LATE_MS = 150
"""Milliseconds from the end of the word until the network usually finds it."""
WAIT_MS = 150
"""Milliseconds to wait after the word was found. The sound of this time shows whether the user goes
on."""
SILENT_DB = 10.0
"""The user counts as silent if all sound of the time `WAIT_MS` is at least this many decibels
softer than the loudest sound before it."""
STEP_MS = 10
"""Milliseconds over which one level is measured."""


class SoundedWord:
    """Finds a wake word by its sound; implements `microphone.WakeWord`."""

    def __init__(self, network: MicroWakeWord) -> None:
        from pymicro_wakeword import MicroWakeWordFeatures

        self.name = str(network.wake_word).lower()
        self._network, self._features = network, MicroWakeWordFeatures()
        self._recent = SampleBuffer()
        """Newest samples. They begin at the earliest sample that may still be passed on."""
        self._found: int | None = None
        """Sample at which the word was found; None before that."""

    def reset(self) -> None:
        """Forget the stream so far."""
        self._network.reset()
        self._features.reset()
        self._recent, self._found = SampleBuffer(), None

    @property
    def needed(self) -> int:
        """Return the earliest sample that may be passed on if the word is found later."""
        return self._recent.start

    async def feed(self, frame: AudioFrame) -> int | None:
        """Take the next frame. `WAIT_MS` after the word was found, return the first sample to pass
        on; before that, None."""
        if not self._recent.end:
            self._recent = SampleBuffer(frame.start)
        self._recent.append(frame.pcm)
        self._recent.drop(frame.end - samples(LATE_MS + WAIT_MS))
        if self._found is None:
            for features in self._features.process_streaming(to_pcm16(frame.pcm).tobytes()):
                if self._network.process_streaming(features):
                    self._found = frame.end
        elif frame.end - self._found >= samples(WAIT_MS):
            return self._begin(self._found)
        return None

    def _begin(self, found: int) -> int:
        """Return the first sample to pass on, if the word was found at sample `found`.

        If the user goes on at once, it is the sample at which the word probably ended. If the user
        is silent, it is the next sample to come. Otherwise the speech detector might take the end
        of the word for speech.
        """
        recent, step = self._recent, samples(STEP_MS)
        before = levels(recent.read(recent.start, found), step)
        after = levels(recent.read(found, recent.end), step)
        silent = after.max(initial=SILENCE_DBFS) < before.max(initial=SILENCE_DBFS) - SILENT_DB
        return recent.end if silent else max(recent.start, found - samples(LATE_MS))


def sounded_word(model: str) -> SoundedWord:
    """Load the wake word `model`: one that comes with the package, or a file.

    Raises MissingExtra without the package pymicro-wakeword, EngineError if this machine cannot run
    it, ConfigError for an unknown name, and ModelNotFound or ModelCorrupt for a file that cannot be
    used.
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
    # A damaged network would make the library end the process, so the file is checked first.
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
    """Return the path of the network that the file `about` names. Raises ModelNotFound or
    ModelCorrupt if there is no usable one."""
    try:
        described = parsed(about.read_text(encoding="utf-8"))
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
