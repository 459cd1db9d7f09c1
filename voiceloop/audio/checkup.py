"""Checks a microphone and a speaker: records silence, the echo of a test sound, and a voice.

The test sound is called sweep here; it is not the chime of the wake word. `examine` plays the sweep
and records. `Checkup` judges the recordings, in texts for the user.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import aclosing
from dataclasses import dataclass

import anyio
import numpy as np

from voiceloop.audio.devices import OFF, DcBlocker, FilteredMicrophone, Tap
from voiceloop.audio.echo import Duplex, EchoCanceller, EchoFilter
from voiceloop.audio.frames import SPEECH_RATE, dbfs, fade_in, fade_out, samples
from voiceloop.audio.reconnecting import Soundcard
from voiceloop.types import AudioFrame, Pcm

QUIET_S, SWEEP_S, SPEAK_S = 1.5, 3.0, 4.0
"""Seconds that are recorded of silence, of the sweep, and of the user's voice."""
SWEEP_DBFS = -20.0
LOWEST_HZ, OCTAVES, STEP, GLIDE_S = 180.0, 2.0, 1.12, 0.5
"""The sweep is a tone with many harmonics that glides up by `OCTAVES` octaves in `GLIDE_S` seconds,
several times. The first glide begins at `LOWEST_HZ` hertz, and each later one higher by the factor
`STEP`. So no part of the sweep repeats another, and the delay of its echo is clear."""
CLIPPED = 0.98
"""Amplitude from which a sample counts as clipped."""
MOST_CLIPPED = 0.001
"""Share of clipped samples above which a voice counts as clipped."""
TOO_QUIET_DBFS = -45.0
"""Level in dBFS below which a voice is too quiet, measured in its loudest tenth of a second."""
NOISY_DB = 12.0
"""Minimum difference in dB between the levels of a voice and of the noise in the room."""
AUDIBLE_DB = 6.0
"""Minimum difference in dB between the levels of an echo and of silence. A softer echo counts as
none."""


def sweep(rate: int) -> Pcm:
    """Return the sweep at `rate` hertz."""
    count = round(SWEEP_S / GLIDE_S)
    return np.concatenate([_glide(LOWEST_HZ * STEP**number, rate) for number in range(count)])


def _glide(lowest: float, rate: int) -> Pcm:
    share = np.arange(round(GLIDE_S * rate)) / (GLIDE_S * rate)
    # The integral of the frequency, which doubles with each octave.
    phase = lowest * GLIDE_S * (2 ** (OCTAVES * share) - 1) / (OCTAVES * np.log(2))
    tones = [np.sin(2 * np.pi * number * phase) / number for number in range(1, 9)]
    glide = np.sum(tones, axis=0).astype(np.float32)
    gain = np.full(len(glide), 10 ** ((SWEEP_DBFS - dbfs(glide)) / 20), np.float32)
    edge = samples(20, rate)
    return fade_out(fade_in(gain * glide, edge), edge)


@dataclass
class Checkup:
    """The recordings of a check at 16 kHz, and what the echo canceller found."""

    quiet: Pcm
    """Recording while nobody spoke and nothing sounded."""
    echo: Pcm
    """Recording while the sweep sounded."""
    voice: Pcm
    """Recording while the user spoke."""
    duplex: Duplex
    """Whether the echo of the sweep was removed."""
    delay_ms: float | None
    """Milliseconds by which the echo came later than the devices' times say; negative if it came
    earlier. None if no echo was found."""
    gaps: bool = False
    """Whether a device lost samples while the sweep sounded."""

    def findings(self) -> Iterator[str]:
        """Yield the findings as texts for the user, one line each."""
        if max(float(np.abs(pcm).max()) for pcm in (self.quiet, self.echo, self.voice)) <= OFF:
            yield "the microphone gives only zeros: it is muted, or the system keeps it from you"
            return
        quiet, voice = dbfs(self.quiet), _loudest(self.voice)
        if np.mean(np.abs(self.voice) >= CLIPPED) > MOST_CLIPPED:
            yield f"your voice is clipped ({voice:.0f} dBFS): turn the microphone down"
        elif voice < quiet + NOISY_DB and voice < TOO_QUIET_DBFS:
            yield f"no voice was heard above the noise ({quiet:.0f} dBFS)"
        elif voice < TOO_QUIET_DBFS:
            yield f"your voice is too quiet ({voice:.0f} dBFS): turn the microphone up"
        elif voice < quiet + NOISY_DB:
            yield f"the room is loud: your voice is only {voice - quiet:.0f} dB above its noise"
        else:
            yield f"your voice is heard well: {voice:.0f} dBFS, the noise {quiet:.0f} dBFS"
        yield self._of_the_speaker(dbfs(self.echo), quiet)

    def _of_the_speaker(self, echo: float, quiet: float) -> str:
        if self.delay_ms is None and echo < quiet + AUDIBLE_DB:
            return "the microphone does not hear the speaker: headphones, or a speaker that is off"
        heard = f"the microphone hears the speaker at {echo:.0f} dBFS"
        if self.delay_ms is not None:
            heard += f", {abs(self.delay_ms):.0f} ms {'later' if self.delay_ms >= 0 else 'earlier'}"
            heard += " than the devices say"
        if self.duplex is Duplex.FULL:
            return f"{heard}: talk removes that, and you can interrupt it"
        if self.gaps:
            return f"{heard}, but the sound had gaps: end other programs, and try again"
        return f"{heard}, and it cannot be removed: turn the speaker down, or use headphones"


def _loudest(pcm: Pcm) -> float:
    """Return the level of the loudest tenth of a second, in dBFS."""
    size = samples(100)
    return max(dbfs(pcm[at : at + size]) for at in range(0, len(pcm) - size + 1, size))


async def examine(
    card: Soundcard, say: Callable[[str], None], meter: Callable[[float], None]
) -> Checkup:
    """Play the sweep and record, for about ten seconds in all. Call `say` with instructions for the
    user, and `meter` with the level of each frame in dBFS. Raises DeviceError if a device is
    lost."""
    heard = list[Pcm]()

    def take(frame: AudioFrame) -> None:
        heard.append(frame.pcm)
        meter(dbfs(frame.pcm))

    echo_filter = EchoFilter(card.microphone, card.speaker)
    canceller: EchoCanceller = echo_filter.canceller
    free = FilteredMicrophone(card.microphone, DcBlocker(), Tap(take), echo_filter)
    async with anyio.create_task_group() as tasks, aclosing(free.frames()) as frames:

        async def listen(seconds: float) -> Pcm:
            heard.clear()
            async for _ in frames:
                if len(heard) >= seconds * 100:
                    break
            return np.concatenate(heard)

        async def play() -> None:
            for block in np.array_split(sweep(card.speaker.rate), 100):
                await card.speaker.room()
                card.speaker.write(block)

        say("please be silent")
        quiet = (await listen(QUIET_S))[-SPEECH_RATE:]
        say("a sound is played")
        tasks.start_soon(play)
        unbroken = card.microphone.stretch, card.speaker.stretch
        echo = await listen(SWEEP_S)
        await listen(1.0)
        gaps = (card.microphone.stretch, card.speaker.stretch) != unbroken
        # Read both now: after a later gap the canceller would begin anew.
        duplex, delay_ms = canceller.duplex, canceller.alignment.delay_ms
        say("now speak as you will later")
        voice = await listen(SPEAK_S)
    return Checkup(quiet, echo, voice, duplex, delay_ms, gaps)
