"""The microphone of a conversation at the sound card of this machine."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from voiceloop.audio.devices import Centred, Microphone
from voiceloop.audio.echo.microphone import EchoFreeMicrophone
from voiceloop.audio.lasting import Soundcard

NOT_CANCELLED = (
    "the loudspeaker's echo cannot be removed, so nothing is heard during replies: "
    "turn it down, or use headphones"
)


def microphone_beside(
    card: Soundcard, note: Callable[[str], None], *, headphones: bool
) -> Microphone:
    """Return the microphone of `card` without its constant offset and, unless the user wears
    `headphones`, without the echo of the speaker. Call `note` with texts for the user."""
    silent = f"hearing only silence from '{card.name}': is it muted?"
    heard = Centred(card.microphone, partial(note, silent))
    if headphones:
        return heard
    return EchoFreeMicrophone(heard, card.microphone, card.speaker, partial(note, NOT_CANCELLED))
