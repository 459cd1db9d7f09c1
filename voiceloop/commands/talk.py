"""The command `voiceloop talk`."""

from __future__ import annotations

import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Annotated

from voiceloop.choosing import Choosing, settle
from voiceloop.commands.conversation import conversation
from voiceloop.errors import ConfigError
from voiceloop.flags import written
from voiceloop.outputs import keep
from voiceloop.status import engine_names, examples, notes
from voiceloop.terminal import tell


class Talk(Choosing, frozen=True, kw_only=True):
    """Talk at the microphone and be answered aloud, until Ctrl-C or q."""

    examples = ("voiceloop talk --preset cpu", "voiceloop talk --preset cpu --headphones")

    input: Annotated[str | None, written("NAME")] = None
    """The microphone by a part of its name, or `list`; without it the system's default."""
    output: Annotated[str | None, written("NAME")] = None
    """The speaker by a part of its name, or `list`; without it the system's default."""
    headphones: bool = False
    """Listen during replies, so that you can interrupt; a loudspeaker would interrupt too."""
    push_to_talk: bool = False
    """Be heard only between two presses of the space bar; the second ends your turn."""
    trace: Annotated[Path | None, written("T.json")] = None
    """Write a trace of every turn for ui.perfetto.dev."""
    json: bool = False
    """Print one JSON object on one line for each turn."""


def talk(command: Talk) -> int:
    """Run `voiceloop talk` and return the exit status."""
    from voiceloop.asr.pushtotalk import PushToTalk
    from voiceloop.audio.devices import Centred
    from voiceloop.audio.soundcard import SoundcardMicrophone, SoundcardSpeaker
    from voiceloop.audio.switched import SwitchedMicrophone
    from voiceloop.commands.controls import Controls
    from voiceloop.view.keyboard import own_keyboard
    from voiceloop.view.summary import summary

    keep([command.config], {"--trace": command.trace})
    if "list" in (command.input, command.output):
        return list_devices()
    keyboard = own_keyboard()
    if command.push_to_talk and keyboard is None:
        raise ConfigError(
            "--push-to-talk needs the keys of a terminal, and there is none",
            "leave it out, or run talk in a terminal of Linux or macOS",
        )
    command, notice = settle(command, looks=sys.stderr.isatty())
    with (
        SoundcardMicrophone(command.input) as microphone,
        SoundcardSpeaker(command.output) as speaker,
        conversation(
            command.settings, trace=command.trace, as_json=command.json, timed=True
        ) as terminal,
    ):
        terminal.note(f"running {engine_names(command.settings)}")
        for note in (*notice.all(), *notes(command.settings)):
            terminal.note(note)
        terminal.note(f"ask for example: {' '.join(examples(command.settings)[:2])}")
        microphone.start()
        speaker.start()
        interruptible = command.headphones or command.push_to_talk
        hint = "" if interruptible else "; with headphones on, --headphones lets you interrupt"
        terminal.note(f"listening to '{microphone.name}', Ctrl-C ends{hint}")
        silent = f"hearing only silence from '{microphone.name}': is it muted?"
        centred = Centred(microphone, partial(terminal.note, silent))
        switched = SwitchedMicrophone(centred, muted=command.push_to_talk)
        detector = PushToTalk(command.settings.turns) if command.push_to_talk else None
        began = perf_counter()
        with suppress(KeyboardInterrupt):
            terminal.run(
                *(switched, speaker),
                lasts=True,
                controls=Controls(keyboard, switched, detector),
                full_duplex=interruptible,
                detector=detector,
            )
        lasted_s = perf_counter() - began
        if lost := microphone.lost / microphone.device_rate:
            terminal.note(f"{lost:.1f} s of sound were not heard: the machine was too busy")
        if flaws := microphone.overflows + speaker.underflows:
            terminal.note(
                f"sound broke off {flaws} time{'s' * (flaws != 1)}: the machine was too busy"
            )
        terminal.note("goodbye")
    if not command.json:
        for line in summary(terminal.traces, lasted_s):
            print(line)
    return 0


def list_devices() -> int:
    """Print the microphones and speakers that `talk` can use. Return the exit status."""
    from voiceloop.audio.portaudio import NAMES, names

    found = {kind: names(kind) for kind in NAMES}
    for kind, title in NAMES.items():
        print(f"--{kind}, a {title}:")
        for name in found[kind]:
            tell(f"  {name}")
    return 0
