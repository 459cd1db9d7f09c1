"""The command `voiceloop devices`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

from voiceloop.settings.flags import Command, written
from voiceloop.terminal import tell

if TYPE_CHECKING:
    from voiceloop.audio.portaudio import Device


BARS = " ▁▂▃▄▅▆▇█"
LOWEST_DBFS = -72.0
"""Level at which the meter of the microphone is empty. It is full at 0 dBFS."""


class Devices(Command, frozen=True, kw_only=True):
    """List microphones and speakers, or try two of them."""

    examples = ("voiceloop devices", "voiceloop devices --test --input 2")
    docs = "docs/talk.md"

    test: bool = False
    """Listen, play a sound, and say in words whether one can talk with these devices."""
    input: Annotated[str | None, written("NAME")] = None
    """The microphone to try, by its number or a part of its name."""
    output: Annotated[str | None, written("NAME")] = None
    """The speaker to try, by its number or a part of its name."""


def devices(command: Devices) -> int:
    """Run `voiceloop devices` and return the exit status."""
    if command.test:
        return _test(command)
    from voiceloop.audio.portaudio import NAMES, found, served

    for kind, title in NAMES.items():
        tell(f"{title}s, for --{kind}:")
        for device in found(kind):
            tell(line(device))
        for text in served(kind).values():
            tell(f"       {text}  (of the sound server)")
    tell("* is the default. voiceloop devices --test tries the two")
    return 0


def line(device: Device) -> str:
    """Return the line that describes `device` in the list; `*` marks the default device."""
    mark = "*" if device.default else " "
    low, high = (round(1000 * seconds) for seconds in device.latency_s)
    facts = f"{device.rate} Hz, {device.channels} channel{'s' * (device.channels > 1)}"
    return f"{mark} {device.number:>3}  {device.name}  ({facts}, latency {low} to {high} ms)"


def _test(command: Devices) -> int:
    import anyio

    from voiceloop.audio.checkup import examine
    from voiceloop.audio.reconnecting import Soundcard

    live = sys.stdout.isatty()

    def meter(level: float) -> None:
        if live:
            share = min(1.0, max(0.0, 1 - level / LOWEST_DBFS))
            print(
                f"\r{BARS[round(share * (len(BARS) - 1))]} {level:6.1f} dBFS ", end="", flush=True
            )

    def say(text: str) -> None:
        tell(f"\r{text} …" if live else f"{text} …")

    with Soundcard(command.input, command.output) as card:
        card.start()
        tell(f"trying '{card.name}'")
        found = anyio.run(examine, card, say, meter)
    if live:
        print("\r" + " " * 20 + "\r", end="")
    for text in found.findings():
        tell(text)
    return 0
