"""The command `voiceloop say`. Heavy modules are imported only when it runs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from voiceloop import process
from voiceloop.assembly.choosing import missing_packs
from voiceloop.errors import DeviceError, VoiceloopError
from voiceloop.outputs import keep
from voiceloop.settings.flags import POSITIONAL, Command, written
from voiceloop.status import loading, tts_name

if TYPE_CHECKING:
    from voiceloop.audio.soundcard import SoundcardSpeaker
    from voiceloop.engines import Tts
    from voiceloop.types import Pcm


class Say(Command, frozen=True, kw_only=True):
    """Speak a text aloud, or into a file."""

    uses = ("tts",)
    examples = (
        'voiceloop say "It is 4:30, and 12.5 % are done." --preset cpu',
        'voiceloop say "Bom dia." --tts.voice pt --out s.wav',
    )

    text: Annotated[str, POSITIONAL, written("TEXT")]
    """The text to speak."""
    out: Annotated[Path | None, written("S.wav")] = None
    """Write the speech into this wav file; without it the speaker plays the speech."""
    output: Annotated[str | None, written("NAME")] = None
    """The speaker, by a part of its name; without it the system's default."""


def say(command: Say) -> int:
    """Run `voiceloop say` and return the exit status."""
    from voiceloop.audio.files import check_wav

    for note in missing_packs(command.settings):
        print(f"voiceloop: {note}", file=sys.stderr)
    # Check file and speaker first, so that mistakes show before the voice is loaded.
    if command.out:
        keep([command.config], {"--out": command.out})
        check_wav(command.out)
    with ExitStack() as stack:
        card = None if command.out else stack.enter_context(_speaker(command.output))
        if card:
            card.start()
        with loading(tts_name(command.settings.tts), sys.stderr):
            process.configure(command.settings.threads)
            from voiceloop.assembly.loading import load_tts

            tts = load_tts(command.settings)
        if command.out:
            write(tts, command.text, command.out)
        if card:
            import anyio

            anyio.run(_play, tts, command.text, card)
    return 0


def _speaker(name: str | None) -> SoundcardSpeaker:
    """Return the speaker called `name`, or the default one.

    Raises DeviceError if there is none. Its hint mentions `--out`, which needs no speaker.
    """
    from voiceloop.audio.soundcard import SoundcardSpeaker

    try:
        return SoundcardSpeaker(name)
    except DeviceError as error:
        raise DeviceError(error.message, f"{error.hint}; --out S.wav writes a file") from error


def write(tts: Tts, text: str, path: Path) -> None:
    """Speak `text` into a wav file. Raises VoiceloopError if nothing in it can be spoken."""
    from voiceloop.audio.files import WavWriter

    with WavWriter(path, tts.rate) as file:
        for pcm in _sound(tts, text):
            file.write(pcm)


async def _play(tts: Tts, text: str, card: SoundcardSpeaker) -> None:
    """Speak `text` aloud, to the end. Raises VoiceloopError if nothing in it can be spoken."""
    import anyio

    from voiceloop.audio.frames import Resampler

    resampler = Resampler(tts.rate, card.rate)
    for pcm in _sound(tts, text):
        card.write(resampler.feed(pcm))
        await card.room()
    card.write(resampler.flush())
    await card.room()
    await anyio.sleep_until(card.due())


def _sound(tts: Tts, text: str) -> Iterator[Pcm]:
    """Cut `text` into clauses, as a reply is cut, and yield its audio chunk by chunk.

    Raises VoiceloopError at the end if there was no audio.
    """
    from voiceloop.languages import language
    from voiceloop.tts.clauses import cut

    said = 0
    for clause in cut(text, language(tts.language())):
        for chunk in tts.synthesize(clause):
            if chunk is not None:
                said += len(chunk.pcm)
                yield chunk.pcm
    if not said:
        raise VoiceloopError("the text holds nothing that can be said", "give it words or numbers")
