"""A microphone and a speaker that go on working while their devices are unplugged.

While a device is away, the microphone hears silence, so that time goes on. The speaker keeps the
audio that it is given, and plays it later. PortAudio sees new devices only after it begins anew,
and for that all of its streams must be closed. So if one of the two devices is lost, both are
opened again.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import ExitStack, aclosing
from dataclasses import replace
from functools import partial
from typing import Self

import anyio
import anyio.to_thread

from voiceloop.audio.echo import EchoFilter
from voiceloop.audio.filters import DcBlocker, FilteredMicrophone
from voiceloop.audio.frames import FRAME_MS, SPEECH_RATE, SampleBuffer, samples, silence
from voiceloop.audio.portaudio import Opener, begin_anew, open_stream
from voiceloop.audio.soundcard import SoundcardMicrophone, SoundcardSpeaker
from voiceloop.errors import DeviceError
from voiceloop.types import AudioFrame, Pcm

NOT_CANCELLED = (
    "the loudspeaker's echo cannot be removed, so nothing is heard during replies: "
    "turn it down, or use headphones"
)
RETRY_S = 1.0
"""Seconds between two attempts to open the devices again."""
FRAME = samples(FRAME_MS)


class ReconnectingMicrophone:
    """A live microphone that hears silence while its device is away; implements
    `devices.Microphone`."""

    finished = False
    """A live microphone never finishes."""

    def __init__(self, lose: Callable[[DeviceError], None]) -> None:
        """Call `lose` with the error when the device is lost."""
        self.card: SoundcardMicrophone | None = None
        """The open device; None while it is away."""
        self.opened = 0
        """How often a device was opened."""
        self._lose = lose
        self._first = 0
        """Index of the first sample of the present device, in the stream of all devices."""

    async def frames(self) -> AsyncGenerator[AudioFrame, None]:
        """Yield frames of 10 ms at 16 kHz from now on, without end."""
        end = 0
        while True:
            if card := self.card:
                self._first = end
                try:
                    async with aclosing(card.frames()) as frames:
                        async for frame in frames:
                            end = self._first + frame.end
                            yield replace(frame, start=self._first + frame.start)
                except DeviceError as error:
                    if card is self.card:
                        self._lose(error)
            begun, first = anyio.current_time(), end
            while self.card is None or self.card is card:
                yield AudioFrame(silence(FRAME), SPEECH_RATE, end)
                end += FRAME
                await anyio.sleep_until(begun + (end - first) / SPEECH_RATE)

    @property
    def stretch(self) -> tuple[int, int]:
        """Return how often a device was opened, and how often the present one has lost samples."""
        return self.opened, self.card.overflows if self.card else 0

    def recorded_at(self, index: int) -> float | None:
        """Return when the sample with this index was recorded, in seconds of the sound system's
        clock. None while it is not known."""
        return self.card.recorded_at(index - self._first) if self.card else None

    def hold(self) -> None:
        """Discard audio that is recorded from now on."""
        if self.card:
            self.card.hold()

    def release(self) -> None:
        """Hear again."""
        if self.card:
            self.card.release()


class ReconnectingSpeaker:
    """A live speaker that waits while its device is away; implements `devices.Speaker`."""

    def __init__(self, lose: Callable[[DeviceError], None]) -> None:
        """Call `lose` with the error when the device is lost."""
        self.card: SoundcardSpeaker | None = None
        """The open device; None while it is away."""
        self.rate = 0
        """Sample rate in hertz, that of the first device."""
        self.opened = 0
        """How often a device was opened."""
        self._lose = lose
        self._waiting = SampleBuffer()
        """Samples that were written while no device was there."""
        self._before = 0
        """Number of samples that earlier devices have taken."""
        self._back = anyio.Event()

    def plug(self, card: SoundcardSpeaker) -> None:
        """Use the open device `card` from now on, and give it the samples that wait."""
        self.card, self.rate = card, card.rate
        self.opened += 1
        if len(self._waiting):
            card.write(self._waiting.take_all()[1])
        self._back.set()

    def unplug(self) -> None:
        """Stop using the device. The samples that it has not taken wait for the next device."""
        if self.card is not None:
            waiting, taken = self.card.rest()
            self._waiting.append(waiting)
            self._before += taken
        self.card, self._back = None, anyio.Event()

    def due(self) -> float:
        """Return when a sample written now would be played, in seconds of the loop's clock."""
        if self.card:
            return self.card.due()
        return anyio.current_time() + len(self._waiting) / self.rate

    def write(self, pcm: Pcm) -> float:
        """Play `pcm` after all that was written before, and return when that begins."""
        if self.card:
            return self.card.write(pcm)
        due = self.due()
        self._waiting.append(pcm)
        return due

    def overlay(self, pcm: Pcm) -> None:
        """Mix `pcm` at once into the audio that is playing. Without a device, drop `pcm`."""
        if self.card:
            self.card.overlay(pcm)

    def cut(self, fade: int) -> int:
        """Fade out over the next `fade` samples at most, and return how many samples are
        discarded."""
        return (self.card or self._waiting).cut(fade)

    async def room(self) -> None:
        """Wait until a device is there and has room for more audio."""
        while True:
            if self.card is None:
                await self._back.wait()
            card = self.card
            try:
                if card is not None:
                    await card.room()
                    return
            except DeviceError as error:
                if card is self.card:
                    self._lose(error)

    @property
    def stretch(self) -> tuple[int, int]:
        """Return how often a device was opened, and how often the present one has run out of
        samples."""
        return self.opened, self.card.gaps if self.card else 0

    def taken(self) -> Pcm:
        """Return the samples that the device has taken since the last call, silence included."""
        return self.card.taken() if self.card else silence(0)

    def sounding_at(self, time: float) -> float | None:
        """Return the index of the sample that sounds at `time`, in seconds of the sound system's
        clock. The index counts the samples that all devices have taken. None while it is not
        known."""
        place = self.card.sounding_at(time) if self.card else None
        return None if place is None else self._before + place


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
        self.microphone, self.speaker = (
            ReconnectingMicrophone(self._lose),
            ReconnectingSpeaker(self._lose),
        )
        self.name = ""
        """Name of the microphone's device."""
        self._lost_s, self._flaws = 0.0, 0
        self._names = microphone, speaker
        self._opener, self._begin_anew = opener, begin_anew
        self._stack = ExitStack()
        self._lost = anyio.Event()
        self._plug(*self._opened(None))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._unplug()

    def start(self) -> None:
        """Start both devices. It takes a moment, so call it before the session. Raises
        DeviceError."""
        for device in (self.microphone, self.speaker):
            assert device.card is not None, "it has just been opened"
            device.card.start()

    def heard(self, *, headphones: bool) -> FilteredMicrophone:
        """Return the microphone without its constant offset and, unless the user wears
        `headphones`, without the echo of the speaker. `note` is called with problems."""
        silent = f"hearing only silence from '{self.name}': is it muted?"
        heard = FilteredMicrophone(self.microphone, DcBlocker(partial(self.note, silent)))
        if headphones:
            return heard
        deaf = partial(self.note, NOT_CANCELLED)
        return FilteredMicrophone(heard, EchoFilter(self.microphone, self.speaker, deaf))

    def flaws(self) -> tuple[float, int]:
        """Return two totals. The first is the seconds of recorded audio that were lost because the
        machine was too busy. The second is how often a device itself lost samples or ran out of
        them."""
        microphone, speaker = self.microphone.card, self.speaker.card
        if microphone is None or speaker is None:
            return self._lost_s, self._flaws
        return (
            self._lost_s + microphone.lost / microphone.device_rate,
            self._flaws + microphone.overflows + speaker.underflows,
        )

    async def keep(self) -> None:
        """Run until cancelled: open lost devices again as soon as that is possible."""
        while True:
            with anyio.move_on_after(RETRY_S):
                await self._lost.wait()
            for card in (self.microphone.card, self.speaker.card):
                if card is not None and card.ended:
                    self._lose(card.gone())
            if not self._lost.is_set():
                continue
            self._lost = anyio.Event()
            self._unplug()
            while self.microphone.card is None:
                await anyio.sleep(RETRY_S)
                try:
                    cards = await anyio.to_thread.run_sync(self._reopened, abandon_on_cancel=True)
                except DeviceError:
                    continue  # the user has been told that a device is awaited
                self._plug(*cards)
            self.note(f"'{self.name}' is back: the conversation goes on")

    def _lose(self, error: DeviceError) -> None:
        if not self._lost.is_set():
            self.note(f"{error.message}: the conversation goes on when one is connected")
        self._lost.set()

    def _reopened(self) -> tuple[SoundcardMicrophone, SoundcardSpeaker]:
        self._begin_anew()
        cards = self._opened(self.speaker.rate)
        for card in cards:
            card.start()
        return cards

    def _opened(self, rate: int | None) -> tuple[SoundcardMicrophone, SoundcardSpeaker]:
        """Open both devices, the speaker at `rate` (None: its own rate). If one of them fails,
        neither stays open."""
        with ExitStack() as stack:
            microphone = SoundcardMicrophone(self._names[0], opener=self._opener)
            stack.enter_context(microphone)
            speaker = SoundcardSpeaker(self._names[1], rate, opener=self._opener)
            stack.enter_context(speaker)
            self._stack = stack.pop_all()
        return microphone, speaker

    def _plug(self, microphone: SoundcardMicrophone, speaker: SoundcardSpeaker) -> None:
        self.microphone.card, self.name = microphone, microphone.name
        self.microphone.opened += 1
        self.speaker.plug(speaker)

    def _unplug(self) -> None:
        self._lost_s, self._flaws = self.flaws()
        self.speaker.unplug()
        self.microphone.card = None
        self._stack.close()
