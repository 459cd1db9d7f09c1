"""The command `voiceloop say`. Heavy modules are imported only when it runs."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

from voiceloop.outputs import keep
from voiceloop.settings.flags import POSITIONAL, Command, written
from voiceloop.status import loading, tts_name


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
    from voiceloop import process
    from voiceloop.assembly.choosing import missing_packs
    from voiceloop.audio.files import check_wav
    from voiceloop.cli import speak

    for note in missing_packs(command.settings):
        print(f"voiceloop: {note}", file=sys.stderr)
    # Check file and speaker first, so that mistakes show before the voice is loaded.
    if command.out:
        keep([command.config], {"--out": command.out})
        check_wav(command.out)
    with ExitStack() as stack:
        card = None if command.out else stack.enter_context(speak.speaker(command.output))
        with loading(tts_name(command.settings.tts), sys.stderr):
            process.configure(command.settings.threads)
            from voiceloop.assembly.loading import load_tts

            tts = load_tts(command.settings)
        if command.out:
            speak.write(tts, command.text, command.out)
        if card:
            speak.play(tts, command.text, card)
    return 0
