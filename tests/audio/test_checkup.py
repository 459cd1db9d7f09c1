"""`voiceloop devices --test`: what is said of a microphone and a speaker in simulated rooms."""

from __future__ import annotations

from dataclasses import replace

import anyio
import numpy as np
import pytest

from lab.echo.room import SCENES, SILENT, Room, RoomCard, Scene
from tests.audio.test_echo import SCENE, speech
from voiceloop.audio.checkup import QUIET_S, SWEEP_S, Checkup, examine, sweep
from voiceloop.audio.echo import Duplex
from voiceloop.audio.frames import SPEECH_RATE, silence
from voiceloop.audio.reconnecting import Soundcard
from voiceloop.types import Pcm

pytestmark = pytest.mark.virtual

SPOKEN = QUIET_S + SWEEP_S + 1.5


async def tried(scene: Scene, voice: Pcm, *, gap: bool = False) -> Checkup:
    """What is found in a room where the user says `voice` when asked to. With `gap`, the speaker
    then runs out of samples."""
    card, told = RoomCard(Room(scene, sweep(SPEECH_RATE))), list[str]()

    async def speak() -> None:
        await anyio.sleep(SPOKEN)
        card.say(voice)
        if gap:
            devices.speaker.gaps += 1

    with Soundcard(None, None, opener=card.open) as devices:
        async with anyio.create_task_group() as tasks:
            for job in (card.run, speak):
                tasks.start_soon(job)
            found = await examine(devices, told.append, lambda level: None)
            tasks.cancel_scope.cancel()
    assert len(told) == 3
    return found


@SCENE
async def test_an_echo_is_measured_and_can_be_removed(scene: Scene) -> None:
    found = await tried(scene, speech(2))
    assert found.duplex is Duplex.FULL
    assert found.delay_ms == pytest.approx(scene.late_ms, abs=3)
    voice, speaker = found.findings()
    assert "heard well" in voice
    assert "you can interrupt it" in speaker


async def test_a_gap_after_the_sweep_changes_nothing() -> None:
    found = await tried(SCENES[0], speech(2), gap=True)
    assert (found.duplex, found.gaps) == (Duplex.FULL, False)
    assert found.delay_ms is not None


async def test_headphones_are_told_from_loudspeakers() -> None:
    *_, speaker = (await tried(SILENT, speech(2))).findings()
    assert "does not hear the speaker" in speaker


async def test_an_echo_that_stays_is_said_to() -> None:
    late = replace(SCENES[2], name="late", late_ms=900)
    *_, speaker = (await tried(late, speech(2))).findings()
    assert "cannot be removed" in speaker


def test_gaps_in_the_sound_are_not_blamed_on_the_room() -> None:
    pcm = speech(1)
    found = Checkup(silence(SPEECH_RATE), pcm, pcm, Duplex.HALF, None, gaps=True)
    *_, speaker = found.findings()
    assert "gaps" in speaker and "cannot" not in speaker


@pytest.mark.slow
@pytest.mark.parametrize(
    ("gain", "words"),
    [(0.0, "no voice"), (0.02, "too quiet"), (1.0, "heard well"), (40, "clipped")],
)
async def test_the_voice_is_judged_in_words(gain: float, words: str) -> None:
    said = np.clip(gain * speech(2), -1, 1).astype(np.float32)
    voice, _ = (await tried(SILENT, said)).findings()
    assert words in voice


def test_a_microphone_that_gives_zeros_is_told_from_one_that_hears_nothing() -> None:
    nothing = silence(SPEECH_RATE)
    (only,) = Checkup(nothing, nothing, nothing, Duplex.TRYING, None).findings()
    assert "only zeros" in only
