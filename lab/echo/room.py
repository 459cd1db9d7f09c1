"""A simulated sound card in a room, whose microphone hears its speaker and a user.

Time is virtual. The seed decides the room's impulse response. It has a direct sound, eight early
reflections, and a tail that falls by 60 dB in `rt60` seconds. The loudspeaker is small: it has no
bass. If it is driven too loud, tanh compresses its signal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace

import anyio
import numpy as np
from scipy.signal import butter, sosfilt

from voiceloop.audio.frames import SPEECH_RATE, SampleBuffer, samples, silence
from voiceloop.audio.portaudio import Callback, Kind
from voiceloop.types import Pcm

BLOCK = samples(10)
LATENCY_S = 0.04
"""Seconds from the callback to the sound, as the driver reports them."""
NEAR_DBFS = -26.0
"""Level of the user's voice at the microphone."""
NOISE_DBFS = -62.0
QUIET = 0.05
"""Minimum level of a block of 10 ms with voice, as a share of the highest level."""


@dataclass(frozen=True)
class Scene:
    """The conditions under which the loudspeaker is heard in the microphone."""

    name: str
    level_db: float = -10.0
    """Level of the echo in dB, relative to the user's voice."""
    late_ms: int = 40
    """Milliseconds by which the echo comes later than the driver's times say."""
    rt60: float = 0.3
    """Seconds in which the sound of the room falls by 60 dB."""
    ppm: float = 0.0
    """By how many millionths the microphone's clock is slower than the loudspeaker's."""
    driven: bool = False
    """Whether the loudspeaker plays too loud."""


SCENES = (
    Scene("-10 dB"),
    Scene("-5 dB and 0.2 s of reverberation", level_db=-5, rt60=0.2),
    Scene("+6 dB", level_db=6),
    Scene("150 ms late", late_ms=150),
    Scene("400 ms late", late_ms=400),
    Scene("0.5 s of reverberation", rt60=0.5),
    Scene("50 ppm of drift", ppm=50),
    Scene("driven loudspeaker", driven=True),
    Scene("all at once", level_db=6, late_ms=400, rt60=0.5, ppm=50, driven=True),
)
"""Scenes with one condition each, and a scene with all conditions at once."""
SILENT = Scene("headphones", level_db=-90)


def voice_level(pcm: Pcm) -> float:
    """Return the root mean square of the blocks of 10 ms that have voice."""
    blocks = pcm[: len(pcm) // BLOCK * BLOCK].reshape(-1, BLOCK)
    levels = np.sqrt(np.mean(blocks**2, axis=1))
    return float(np.sqrt(np.mean(levels[levels > QUIET * levels.max()] ** 2)))


class Room:
    """The echo path from the loudspeaker to the microphone, block by block."""

    def __init__(self, scene: Scene, voice: Pcm, seed: int = 3) -> None:
        """Make the room of `scene`. The level of the echo is set with `voice`, an example of what
        the loudspeaker plays."""
        self._scene, self._peak = scene, float(np.abs(voice).max())
        self._band = np.asarray(butter(2, [200, 7000], "band", fs=SPEECH_RATE, output="sos"))
        self._state = np.zeros((len(self._band), 2))
        response = self._response(np.random.default_rng(seed))
        self._size = 1 << (len(response) + BLOCK - 1).bit_length()
        self._spectrum = np.fft.rfft(response, self._size)
        self._tail = np.zeros(self._size)
        self._echo = SampleBuffer()
        self._echo.append(silence(samples(scene.late_ms) + 3))
        self._at = 1.0
        """Position of the next sample that the microphone hears."""
        self._gain = 1.0
        alone = [self._sound(voice[at : at + BLOCK]) for at in range(0, len(voice) - BLOCK, BLOCK)]
        level = 10 ** ((NEAR_DBFS + scene.level_db) / 20)
        self._gain = level / voice_level(np.concatenate(alone))
        self._tail[:] = 0

    def _response(self, random: np.random.Generator) -> Pcm:
        count = round(1.1 * SPEECH_RATE * self._scene.rt60)
        fall = 10 ** (-3 * np.arange(count) / SPEECH_RATE / self._scene.rt60)
        tail = random.standard_normal(count) * fall
        tail[: samples(4)] = 0
        response = 0.8 * tail / np.sqrt(np.sum(tail**2))
        response[0] += 1.0
        for number in range(8):
            at = random.integers(samples(2), samples(30))
            response[at] += random.choice([-1, 1]) * 0.4 * 10 ** (-number / 10)
        return response.astype(np.float32)

    def heard(self, played: Pcm) -> Pcm:
        """Return a block of the microphone's signal, while the loudspeaker sounds `played`."""
        self._echo.append(self._sound(played))
        places = self._at + np.arange(BLOCK) * (1 + self._scene.ppm * 1e-6)
        self._at = float(places[-1] + 1 + self._scene.ppm * 1e-6)
        whole, part = np.divmod(places, 1.0)
        first = int(whole[0]) - 1
        known = self._echo.read(first, int(whole[-1]) + 3)
        self._echo.drop(first)
        before, here, after, beyond = (known[whole.astype(int) - first + at] for at in range(-1, 3))
        # Catmull and Rom's cubic between two samples.
        bend = 3 * (here - after) + beyond - before
        curve = 2 * before - 5 * here + 4 * after - beyond + part * bend
        heard = here + 0.5 * part * (after - before + part * curve)
        return heard.astype(np.float32)

    def _sound(self, played: Pcm) -> Pcm:
        """Return the next block of the echo."""
        if self._scene.driven:
            played = self._peak * np.tanh(2 * played / self._peak) / np.tanh(2)
        played, self._state = sosfilt(self._band, played, zi=self._state)
        self._tail += np.fft.irfft(np.fft.rfft(played, self._size) * self._spectrum, self._size)
        echo = self._gain * self._tail[:BLOCK]
        self._tail = np.concatenate((self._tail[BLOCK:], np.zeros(BLOCK)))
        return echo.astype(np.float32)


class RoomCard:
    """The microphone and the speaker of a card in a room; `open` is a `portaudio.Opener`."""

    def __init__(self, room: Room, seed: int = 0) -> None:
        self.samplerate, self.latency = float(SPEECH_RATE), LATENCY_S
        self._room = room
        self._random = np.random.default_rng(seed)
        self._callbacks: dict[Kind, Callback] = {}
        self._said = silence(0)
        self._sounding = silence(round(LATENCY_S * SPEECH_RATE))
        """Samples that the card has taken and that do not sound yet."""
        self.recorded: list[Pcm] = []
        """All blocks that the microphone has recorded."""

    def open(
        self,
        kind: Kind,
        name: str | None,
        callback: Callback,
        finished: Callable[[], None],
        rate: int | None = None,
    ) -> tuple[str, RoomCard]:
        """Take the callback of the device of this `kind`. The card is its own stream."""
        self._callbacks[kind] = callback
        return name or f"{kind} of the room", self

    @property
    def time(self) -> float:
        """The stream's clock."""
        return anyio.current_time()

    def start(self) -> None:
        """Do nothing: `run` calls the callbacks."""

    def abort(self) -> None:
        """Do nothing: cancelling `run` ends the callbacks."""

    def close(self) -> None:
        """Do nothing: there is no device to give back."""

    def say(self, pcm: Pcm) -> None:
        """Let the user speak from now on."""
        self._said = pcm

    @property
    def speaking(self) -> bool:
        """Whether the user speaks."""
        return bool(len(self._said))

    async def run(self) -> None:
        """Call the callbacks with each block, in step with the virtual clock."""
        begun, count = anyio.current_time(), 0
        while True:
            now = self.time
            block = np.zeros((BLOCK, 1), np.float32)
            times = SimpleNamespace(currentTime=now, outputBufferDacTime=now + LATENCY_S)
            self._callbacks["output"](block, BLOCK, times, SimpleNamespace(output_underflow=False))
            self._sounding = np.concatenate((self._sounding, block[:, 0]))
            sounding, self._sounding = np.split(self._sounding, [BLOCK])
            count += 1
            await anyio.sleep_until(begun + count * BLOCK / SPEECH_RATE)
            times = SimpleNamespace(currentTime=self.time, inputBufferAdcTime=now)
            heard = self._microphone(sounding)
            self.recorded.append(heard)
            flags = SimpleNamespace(input_overflow=False)
            self._callbacks["input"](heard[:, None], BLOCK, times, flags)

    def _microphone(self, sounding: Pcm) -> Pcm:
        noise = 10 ** (NOISE_DBFS / 20) * self._random.standard_normal(BLOCK)
        heard = self._room.heard(sounding) + noise.astype(np.float32)
        said, self._said = np.split(self._said, [BLOCK]) if self.speaking else (silence(0),) * 2
        heard[: len(said)] += said
        return heard
