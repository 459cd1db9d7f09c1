"""A microphone and a speaker whose devices are opened again when they were unplugged.

PortAudio sees new devices only after it begins anew, and for that all of its streams must be
closed. So if one of the two devices is lost, both are opened again.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Self

import anyio
import anyio.to_thread

from voiceloop.audio.devices import DcBlocker, Filter, FilteredMicrophone
from voiceloop.audio.echo import EchoFilter
from voiceloop.audio.portaudio import Opener, begin_anew, open_stream
from voiceloop.audio.soundcard import SoundcardMicrophone, SoundcardSpeaker
from voiceloop.errors import DeviceError

NOT_CANCELLED = (
    "the loudspeaker's echo cannot be removed, so nothing is heard during replies: "
    "turn it down, or use headphones"
)
RETRY_S = 1.0
"""Seconds between two attempts to open the devices again."""


class Soundcard:
    """A microphone and a speaker that are open until the `with` block ends. Unplugged devices are
    opened again."""

    def __init__(
        self,
        microphone: str | None,
        speaker: str | None,
        note: Callable[[str], None] = lambda text: None,
        *,
        opener: Opener = open_stream,
        begin_anew: Callable[[], None] = begin_anew,
    ) -> None:
        """Open the default devices, or those with these names. Call `note` with a text for the user
        when a device is lost or back. Raises DeviceError."""
        self.note = note
        self._begin_anew = begin_anew
        self._lost = anyio.Event()
        with ExitStack() as stack:
            self.microphone = stack.enter_context(
                SoundcardMicrophone(microphone, opener=opener, lose=self._lose)
            )
            self.speaker = stack.enter_context(
                SoundcardSpeaker(speaker, opener=opener, lose=self._lose)
            )
            self._stack = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    @property
    def name(self) -> str:
        """Name of the microphone's device."""
        return self.microphone.name

    def start(self) -> None:
        """Start both devices. It takes a moment, so call it before the session. Raises
        DeviceError."""
        self.microphone.start()
        self.speaker.start()

    def heard(self, *, headphones: bool) -> FilteredMicrophone:
        """Return the microphone without its constant offset and, unless the user wears
        `headphones`, without the echo of the speaker. `note` is called with problems."""
        silent = f"hearing only silence from '{self.name}': is it muted?"
        filters: list[Filter] = [DcBlocker(partial(self.note, silent))]
        if not headphones:
            deaf = partial(self.note, NOT_CANCELLED)
            filters.append(EchoFilter(self.microphone, self.speaker, deaf))
        return FilteredMicrophone(self.microphone, *filters)

    def flaws(self) -> tuple[float, int]:
        """Return two totals. The first is the seconds of recorded audio that were lost because the
        machine was too busy. The second is how often a device itself lost samples or ran out of
        them."""
        return self.microphone.lost_s, self.microphone.overflows + self.speaker.underflows

    async def keep(self) -> None:
        """Run until cancelled: open lost devices again as soon as that is possible."""
        while True:
            with anyio.move_on_after(RETRY_S):
                await self._lost.wait()
            for device in (self.microphone, self.speaker):
                if device.ended:
                    self._lose(device.gone())
            if not self._lost.is_set():
                continue
            self.microphone.close()
            self.speaker.close()
            while self.microphone.away:
                await anyio.sleep(RETRY_S)
                try:
                    await anyio.to_thread.run_sync(self._open_again, abandon_on_cancel=True)
                except DeviceError:
                    continue  # the user has been told that a device is awaited
                self.microphone.plug()
                self.speaker.plug()
            self._lost = anyio.Event()
            self.note(f"'{self.name}' is back: the conversation goes on")

    def _lose(self, error: DeviceError) -> None:
        if not self._lost.is_set():
            self.note(f"{error.message}: the conversation goes on when one is connected")
        self._lost.set()

    def _open_again(self) -> None:
        """Open and start both devices. If one of them fails, neither stays open."""
        self._begin_anew()
        with ExitStack() as stack:
            for device, rate in ((self.microphone, None), (self.speaker, self.speaker.rate)):
                device.open(rate)
                stack.callback(device.close)
            self.start()
            stack.pop_all()
