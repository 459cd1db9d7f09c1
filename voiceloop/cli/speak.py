"""Speaks a text into a file or on a speaker, for `voiceloop say`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio

from voiceloop.audio.files import WavWriter
from voiceloop.audio.frames import Resampler
from voiceloop.audio.soundcard import SoundcardSpeaker
from voiceloop.engines import Tts
from voiceloop.errors import DeviceError, VoiceloopError
from voiceloop.languages import language
from voiceloop.tts.clauses import cut
from voiceloop.types import Pcm


@contextmanager
def speaker(name: str | None) -> Iterator[SoundcardSpeaker]:
    """Open the speaker called `name`, or the default one, and start it.

    Raises DeviceError if there is none. Its hint mentions `--out`, which needs no speaker.
    """
    try:
        card = SoundcardSpeaker(name)
    except DeviceError as error:
        raise DeviceError(error.message, f"{error.hint}; --out S.wav writes a file") from error
    with card:
        card.start()
        yield card


def write(tts: Tts, text: str, path: Path) -> None:
    """Speak `text` into a wav file. Raises VoiceloopError if nothing in it can be spoken."""
    with WavWriter(path, tts.rate) as file:
        for pcm in _sound(tts, text):
            file.write(pcm)


def play(tts: Tts, text: str, card: SoundcardSpeaker) -> None:
    """Speak `text` aloud, to the end. Raises VoiceloopError if nothing in it can be spoken."""
    anyio.run(_play, _sound(tts, text), Resampler(tts.rate, card.rate), card)


async def _play(sound: Iterable[Pcm], resampler: Resampler, card: SoundcardSpeaker) -> None:
    for pcm in sound:
        card.write(resampler.feed(pcm))
        await card.room()
    card.write(resampler.flush())
    await card.room()
    await anyio.sleep_until(card.due())


def _sound(tts: Tts, text: str) -> Iterator[Pcm]:
    """Cut `text` into clauses, as a reply is cut, and yield its audio chunk by chunk.

    Raises VoiceloopError at the end if there was no audio.
    """
    said = 0
    for clause in cut(text, language(tts.language())):
        for chunk in tts.synthesize(clause):
            if chunk is not None:
                said += len(chunk.pcm)
                yield chunk.pcm
    if not said:
        raise VoiceloopError("the text holds nothing that can be said", "give it words or numbers")
