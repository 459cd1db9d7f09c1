"""Opens the microphone and the speaker of a conversation: the sound card, files, or objects of the
program. A recorded question becomes a conversation of one turn, whose answer is collected.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import anyio.to_thread
import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from voiceloop.api.talk import TalkEvent
from voiceloop.asr.turns import ManualTurnDetector, TurnEvent
from voiceloop.audio.devices import (
    DcBlocker,
    FileMicrophone,
    FilteredMicrophone,
    Microphone,
    NullSpeaker,
    Pace,
    PacedMicrophone,
    PlayedAudio,
    Speaker,
    WavSpeaker,
)
from voiceloop.audio.files import LOUDEST
from voiceloop.audio.frames import SPEECH_RATE, Resampler, check_rate, silence
from voiceloop.audio.reconnecting import Soundcard
from voiceloop.errors import AudioError, ConfigError
from voiceloop.settings.config import TurnConfig
from voiceloop.types import AudioFrame, Notice, Pcm
from voiceloop.view.transcript import TurnOver

MicrophoneChoice = Microphone | Path | str | None
"""A microphone of the program, the `Path` of an audio file, the name or number of a device as text,
or None for the default device."""
SpeakerChoice = Speaker | Path | str | None
"""A speaker of the program, the `Path` of a wav file to write, the name or number of a device as
text, or None for the default device."""


class Places(NamedTuple):
    """The microphone and the speaker of a conversation."""

    microphone: Microphone
    speaker: Speaker
    full_duplex: bool
    """True if the user is heard during replies. False for a file: it waits for a reply's end."""
    beside: Callable[[], Coroutine[Any, Any, None]] | None = None
    """A function whose task must run while the conversation lasts; None if there is none."""


@asynccontextmanager
async def opened_places(
    microphone: MicrophoneChoice,
    speaker: SpeakerChoice,
    rate: int,
    note: Callable[[str], None],
    *,
    headphones: bool,
) -> AsyncGenerator[Places]:
    """Open the microphone and the speaker until the context ends. Objects are used as they are.

    `rate` is the sample rate of replies in hertz, for a file and for replies that are discarded.
    They are discarded if the speaker is None and the microphone is a file or an object. The echo of
    the speaker is removed from the sound card's microphone unless the user wears `headphones`.
    `note` is called with texts for the user.

    Raises AudioError for a file, and DeviceError for a device, that cannot be used. Raises
    ConfigError if only one of the two is a device.
    """
    with ExitStack() as stack:
        if microphone is None or isinstance(microphone, str):
            if not (speaker is None or isinstance(speaker, str)):
                raise ConfigError(
                    "a speaker that is no sound card needs a microphone that is none",
                    "give both, or leave both out for the sound card",
                )
            open_card = partial(_started, microphone, speaker, note)
            card = await anyio.to_thread.run_sync(open_card)
            try:
                heard = card.heard(headphones=headphones)
                yield Places(heard, card.speaker, True, card.keep)
            finally:
                with anyio.CancelScope(shield=True):
                    await anyio.to_thread.run_sync(card.__exit__)
            return
        if isinstance(speaker, str):
            raise ConfigError(
                f"'{speaker}' is the name of a sound card, and the microphone is none",
                "give a speaker object or the Path of a wav file, or leave it out",
            )
        if speaker is None:
            speaker = NullSpeaker(rate)
        elif isinstance(speaker, Path):
            speaker = stack.enter_context(WavSpeaker(speaker, rate))
        if isinstance(microphone, Path):
            file = stack.enter_context(FileMicrophone(microphone))
            heard = FilteredMicrophone(file, DcBlocker())
            yield Places(heard, speaker, full_duplex=False)
        else:
            yield Places(microphone, speaker, full_duplex=True)


def _started(microphone: str | None, speaker: str | None, note: Callable[[str], None]) -> Soundcard:
    card = Soundcard(microphone, speaker, note)
    try:
        card.start()
    except BaseException:
        card.__exit__()
        raise
    return card


MonoSound = npt.NDArray[np.float32 | np.float64 | np.int16]
"""Samples of one audio channel, shape [samples]: floats in [-1, 1], or 16-bit integers."""


@dataclass(frozen=True, slots=True, eq=False)
class AnsweredTurn(TurnOver):
    """A recorded question with its answer and the answer's sound."""

    audio: Pcm
    """The sound of the reply; empty if there was none."""
    rate: int
    """Sample rate of `audio`, in hertz."""
    notes: tuple[str, ...]
    """Lines for the user, such as why the turn failed, or which part of the file was unreadable."""


class WholeRecording(ManualTurnDetector):
    """A speech detector that takes a whole recording as one turn, from first to last sample."""

    def __init__(self, config: TurnConfig, samples: int) -> None:
        super().__init__(replace(config, max_turn_s=config.max_turn_s + 1))
        self._samples = samples

    def feed(self, frame: AudioFrame, probability: float) -> list[TurnEvent]:
        """Begin the turn at the recording's first window, and end it at the last window."""
        if self._seen >= self._samples:
            return []
        events = super().feed(frame, probability)
        return [*events, self.end()] if self._seen >= self._samples else events


class RecordedQuestion:
    """The microphone, the speech detector and the speaker of a conversation about one recording.

    The recording is heard as one turn. The speaker keeps the sound of the reply.
    """

    def __init__(
        self,
        microphone: PacedMicrophone,
        seconds: float,
        rate: int,
        pace: Pace,
        config: TurnConfig,
    ) -> None:
        """`seconds` is the length of the recording; `rate` is the reply's sample rate in hertz.

        Raises AudioError if the recording is longer than `config.max_turn_s`.
        """
        if seconds > config.max_turn_s:
            raise AudioError(
                f"the recording has {seconds:.0f} s, and a turn has {config.max_turn_s:g} at most",
                "cut it, or raise turns.max_turn_s",
            )
        self.microphone = FilteredMicrophone(microphone, DcBlocker())
        self.detector = WholeRecording(config, round(seconds * SPEECH_RATE))
        self.speaker = PlayedAudio(rate, self._take, pace=pace)
        self._recorded = microphone
        self._played = [silence(0)]

    def _take(self, place: int, pcm: Pcm) -> None:
        del place
        self._played.append(pcm)

    def answered(self, events: Sequence[TalkEvent]) -> AnsweredTurn:
        """Return the answered turn. `events` are all events of the conversation, which is over."""
        self.speaker.finish()
        over = next(event for event in events if isinstance(event, TurnOver))
        notes = [event.text for event in events if isinstance(event, Notice)]
        if isinstance(self._recorded, FileMicrophone) and self._recorded.info.warning:
            notes.append(self._recorded.info.warning)
        known = {field.name: getattr(over, field.name) for field in fields(over)}
        audio = np.concatenate(self._played)
        return AnsweredTurn(**known, audio=audio, rate=self.speaker.rate, notes=tuple(notes))


@contextmanager
def question(
    sound: Path | str | MonoSound, rate: int, reply_rate: int, pace: Pace, config: TurnConfig
) -> Generator[RecordedQuestion]:
    """Open the recorded question `sound`: an audio file, or samples at `rate` hertz.

    For a file `rate` is ignored. The reply has the sample rate `reply_rate`, in hertz. Raises
    AudioError if the recording cannot be used or is longer than `config.max_turn_s`.
    """
    with ExitStack() as stack:
        if isinstance(sound, str | Path):
            file = stack.enter_context(FileMicrophone(sound, pace=pace))
            yield RecordedQuestion(file, file.info.seconds, reply_rate, pace, config)
            return
        pcm = _mono(sound, rate)
        microphone = PacedMicrophone([pcm], pace=pace)
        yield RecordedQuestion(microphone, len(pcm) / SPEECH_RATE, reply_rate, pace, config)


def _mono(sound: MonoSound, rate: int) -> Pcm:
    """Convert a program's samples to float32 at 16 kHz. Raises AudioError if they are unusable."""
    samples = np.asarray(sound)
    if samples.ndim != 1 or samples.dtype not in (np.float32, np.float64, np.int16):
        raise AudioError(
            f"the samples are an array of {samples.dtype} with the shape {samples.shape}",
            "give one channel of float32 in [-1, 1], or of int16",
        )
    if not len(samples):
        raise AudioError("the recording holds no samples", "record it again")
    check_rate(rate, "the recording")
    full_scale = 32768 if samples.dtype == np.int16 else 1
    pcm = (samples / full_scale).astype(np.float32)
    if not (np.abs(pcm) < LOUDEST).all():  # false for NaN too
        raise AudioError("the recording holds samples that are no sound", "record it again")
    if rate == SPEECH_RATE:
        return pcm
    resampler = Resampler(rate, SPEECH_RATE)
    return np.concatenate((resampler.feed(pcm), resampler.flush()))
