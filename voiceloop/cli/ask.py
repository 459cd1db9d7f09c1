"""The command `voiceloop ask`."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from voiceloop import process
from voiceloop.assembly.choosing import advised, missing_packs
from voiceloop.bundled import STARTER_HEARS
from voiceloop.cli.conversation import conversation, report
from voiceloop.cli.conversations import opened
from voiceloop.conversations.names import checked
from voiceloop.errors import ConfigError, DeviceError
from voiceloop.outputs import keep
from voiceloop.settings.flags import POSITIONAL, Command, written
from voiceloop.terminal import tell

if TYPE_CHECKING:
    from voiceloop.audio.devices import Speaker
    from voiceloop.audio.soundcard import SoundcardSpeaker


SPEAKER_RATE = 24_000
"""Sample rate of the replies if no sound card plays them, in hertz."""


class Ask(Command, frozen=True, kw_only=True):
    """Answer the spoken questions of an audio file, as a conversation."""

    uses = (*Command.uses, "mcp")
    examples = (
        "voiceloop ask question.wav --out reply.wav",
        "voiceloop ask talk.wav --preset cpu --play --trace trace.json",
    )

    file: Annotated[Path, POSITIONAL, written("IN.wav")]
    """The recording: WAV, FLAC, OGG, AIFF or MP3; any rate from 8 to 192 kHz."""
    out: Annotated[Path | None, written("R.wav")] = None
    """Write the sound of the replies to this wav file."""
    play: bool = False
    """Play the replies, if there is a speaker."""
    conversation: Annotated[str | None, written("NAME")] = None
    """Keep the conversation, and go on with it later; docs/conversations.md tells more."""
    trace: Annotated[Path | None, written("T.json")] = None
    """Write a trace of every turn for ui.perfetto.dev."""
    json: bool = False
    """Print one JSON object on one line for each turn."""
    pace: Literal["realtime", "max"] = "realtime"
    """Hear the recording in real time, or as fast as possible; with `max`, latencies are null and
    turns may end at other places."""
    sequential: bool = False
    """Run the stages one after the other; this shows what running them at once gains."""
    full_duplex: bool = False
    """Let the recording go on during replies and interrupt them."""


def ask(command: Ask) -> int:
    """Run `voiceloop ask` and return the exit status."""
    from voiceloop.audio.devices import (
        DcBlocker,
        FileMicrophone,
        FilteredMicrophone,
        NullSpeaker,
        RecordedSpeaker,
        WavSpeaker,
    )
    from voiceloop.turn.resources import EVERYTHING, SEQUENTIAL

    keep([command.file, command.config], {"--out": command.out, "--trace": command.trace})
    timed = command.pace == "realtime"
    name = checked(command.conversation) if command.conversation is not None else None
    with ExitStack() as stack:
        # Open the files first, so that mistakes show before the models are loaded.
        microphone = stack.enter_context(FileMicrophone(command.file, pace=command.pace))
        card, unheard = _card(command, stack)
        speaker: Speaker = card or NullSpeaker(SPEAKER_RATE, pace=command.pace)
        if command.out:
            file = stack.enter_context(WavSpeaker(command.out, speaker.rate, pace=command.pace))
            speaker = RecordedSpeaker(card, file) if card else file
        going_on = stack.enter_context(opened(name))
        prepared = conversation(
            command.settings, trace=command.trace, as_json=command.json, timed=timed
        )
        terminal = stack.enter_context(prepared)
        overlap = SEQUENTIAL if command.sequential else EVERYTHING
        try:
            terminal.run(
                *(FilteredMicrophone(microphone, DcBlocker()), speaker),
                full_duplex=command.full_duplex,
                overlap=overlap,
                kept=going_on,
            )
        except KeyboardInterrupt:
            terminal.note(
                "interrupted: the files hold what had sounded and the turns that were over"
            )
            return process.exit_status()
        if microphone.info.warning:
            terminal.note(microphone.info.warning)
        if all(trace.outcome == "abandoned" for trace in terminal.traces):
            terminal.note(f"no speech was heard in {command.file}")
        if command.settings.asr.hears_no_people:
            terminal.note(advised(STARTER_HEARS, chooses=False))
        for note in missing_packs(command.settings):
            terminal.note(note)
    if timed and not command.json:
        report(terminal.traces)
    if unheard:
        file = f"open {command.out}" if command.out else "add --out reply.wav and open that file"
        why = f"nothing could be played here: {unheard.message}; {unheard.hint}"
        tell(f"voiceloop: {file} to hear the replies; {why}", sys.stderr)
    return 0


def _card(command: Ask, stack: ExitStack) -> tuple[SoundcardSpeaker | None, DeviceError | None]:
    """Return the opened speaker and None; or None and the error, if it cannot be opened.

    Return None twice if replies are not to be played. Raises ConfigError with `--pace max`.
    """
    from voiceloop.audio.soundcard import SoundcardSpeaker

    if not command.play:
        return None, None
    if command.pace == "max":
        raise ConfigError("nothing can be heard at --pace max", "leave out --pace or --play")
    try:
        card = stack.enter_context(SoundcardSpeaker())
        card.start()
    except DeviceError as error:
        return None, error
    return card, None
