"""The command `voiceloop talk`."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from time import perf_counter
from typing import Annotated

from voiceloop.assembly.choosing import Choosing, notes, settle
from voiceloop.cli.conversation import conversation
from voiceloop.cli.conversations import opened
from voiceloop.conversations.names import checked
from voiceloop.errors import ConfigError
from voiceloop.outputs import keep
from voiceloop.settings.flags import written
from voiceloop.status import examples


class TalkCommand(Choosing, frozen=True, kw_only=True):
    """Talk at the microphone and be answered aloud, until Ctrl-C or q."""

    uses = (*Choosing.uses, "mcp", "wake")
    examples = ("voiceloop talk", "voiceloop talk --preset laptop --record talks")

    input: Annotated[str | None, written("NAME")] = None
    """The microphone, by its number or a part of its name. `voiceloop devices` lists them."""
    output: Annotated[str | None, written("NAME")] = None
    """The speaker, by its number or a part of its name."""
    headphones: bool = False
    """Leave out the echo canceller. Without headphones you need it to interrupt a reply."""
    push_to_talk: bool = False
    """Be heard only between two presses of the space bar; the second ends your turn."""
    conversation: Annotated[str | None, written("NAME")] = None
    """Keep the conversation, and go on with it later; docs/conversations.md tells more."""
    trace: Annotated[Path | None, written("T.json")] = None
    """Write a trace of every turn for ui.perfetto.dev."""
    figures: bool = False
    """Show how long each answer took, and where the time went."""
    json: bool = False
    """Print one JSON object on one line for each turn."""
    record: Annotated[Path | None, written("DIR")] = None
    """Record all that is said and decided. Each talk is a new folder in DIR, for `voiceloop
    replay`."""


def talk(command: TalkCommand) -> int:
    """Run `voiceloop talk` and return the exit status."""
    from voiceloop.asr.turns import ManualTurnDetector
    from voiceloop.audio.devices import FilteredMicrophone, Mute
    from voiceloop.audio.reconnecting import Soundcard
    from voiceloop.cli.controls import Controls, configured_word, wake_microphone
    from voiceloop.recording.recording import prepare
    from voiceloop.view.keyboard import own_keyboard
    from voiceloop.view.transcript import summary

    wake = command.settings.wake
    if command.push_to_talk and (wake.phrase or wake.model):
        raise ConfigError(
            "--push-to-talk and a wake word exclude each other", "leave one of them out"
        )
    keep([command.config], {"--trace": command.trace})
    if command.record is not None:
        prepare(command.record)
    keyboard = own_keyboard()
    if command.push_to_talk and keyboard is None:
        raise ConfigError(
            "--push-to-talk needs the keys of a terminal, and there is none",
            "leave it out, or run talk in a terminal of Linux or macOS",
        )
    name = checked(command.conversation) if command.conversation is not None else None
    command, notice = settle(command, looks=sys.stderr.isatty())
    word = configured_word(command.settings)
    with (
        opened(name) as going_on,
        Soundcard(command.input, command.output) as card,
        conversation(
            command.settings,
            trace=command.trace,
            as_json=command.json,
            timed=command.json or command.figures,
        ) as terminal,
    ):
        for note in (*notice.all(), *notes(command.settings)):
            terminal.note(note)
        if command.record is not None:
            terminal.note(f"recording what is said and decided in {command.record}")
        card.note = terminal.note
        card.start()
        example = examples(command.settings)[0]
        terminal.note(f"listening to '{card.name}', Ctrl-C ends. Ask for example: {example}")
        mute = Mute(muted=command.push_to_talk)
        heard = FilteredMicrophone(card.heard(headphones=command.headphones), mute)
        waking = None
        if word is not None:
            heard = waking = wake_microphone(word, heard, card.speaker, terminal, command.settings)
        detector = None
        if command.push_to_talk:
            detector = ManualTurnDetector(command.settings.turns, talking=False)
        began = perf_counter()
        with suppress(KeyboardInterrupt):
            terminal.run(
                *(heard, card.speaker),
                full_duplex=True,
                lasts=True,
                controls=Controls(keyboard, mute, detector, waking, figures=command.figures),
                record=command.record,
                beside=card.keep,
                detector=detector,
                kept=going_on,
            )
        lasted_s = perf_counter() - began
        lost_s, flaws = card.flaws()
        if lost_s:
            terminal.note(f"{lost_s:.1f} s of sound were not heard: the machine was too busy")
        if flaws:
            terminal.note(
                f"sound broke off {flaws} time{'s' * (flaws != 1)}: the machine was too busy"
            )
        terminal.note("goodbye")
    if not command.json:
        for line in summary(terminal.traces, lasted_s):
            print(line)
    return 0
