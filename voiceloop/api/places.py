"""Opens the microphone and the speaker of a conversation: the sound card, files, or objects of the
program."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import anyio.to_thread

from voiceloop.audio.devices import FileMicrophone, Microphone, NullSpeaker, Speaker
from voiceloop.audio.filters import DcBlocker, FilteredMicrophone
from voiceloop.audio.lasting import Soundcard
from voiceloop.audio.recorded import WavSpeaker
from voiceloop.errors import ConfigError

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
