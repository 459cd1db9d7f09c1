"""PortAudio, through sounddevice: finds devices, and opens streams of them.

Every fault of PortAudio, the sound server or a device becomes a DeviceError with a remedy.
sounddevice is imported only when a device is opened. On macOS and Windows its wheels carry
PortAudio; elsewhere the system has it. This module does not know what is recorded or played.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple, Protocol

from voiceloop.errors import DeviceError

LATENCY_S = 0.04
"""Seconds of audio that a device should hold. Python's threads can keep a callback waiting for half
of that time."""

INSTALLERS = {
    "apt-get": "sudo apt install libportaudio2",
    "dnf": "sudo dnf install portaudio",
    "pacman": "sudo pacman -S portaudio",
    "brew": "brew install portaudio",
}
"""Commands that install PortAudio, by the program that runs them."""

Kind = Literal["input", "output"]
Callback = Callable[[Any, int, Any, Any], None]
"""A function that PortAudio calls. Its arguments are the samples [frames, channels], the number of
frames, the times of the block and the status flags."""
NAMES: dict[Kind, str] = {"input": "microphone", "output": "speaker"}
SERVER = "pulse"
"""PortAudio's device for all devices of a sound server, PulseAudio or PipeWire."""
SERVED: dict[Kind, tuple[str, str]] = {
    "input": ("sources", "PULSE_SOURCE"),
    "output": ("sinks", "PULSE_SINK"),
}
"""What the sound server calls its devices, and the variable that chooses one of them."""


class PortAudioStream(Protocol):
    """The part of a sounddevice stream that is used here."""

    @property
    def samplerate(self) -> float:
        """Sample rate in hertz."""
        ...

    @property
    def latency(self) -> float:
        """Seconds between a callback and the moment at which its samples are heard, or were
        recorded."""
        ...

    @property
    def time(self) -> float:
        """Present time in seconds of the stream's clock; callbacks get times of the same clock."""
        ...

    def start(self) -> None:
        """Begin to call the callback."""
        ...

    def abort(self) -> None:
        """Drop the audio that the device holds, and end all callbacks."""
        ...

    def close(self) -> None:
        """Give the device back."""
        ...


Opener = Callable[
    [Kind, str | None, Callback, Callable[[], None], int | None], tuple[str, PortAudioStream]
]
"""A function that opens a device by kind and name. It returns the full name of the device and a
stream that has not been started.

The third argument is the stream's callback. The fourth is called when the stream ends, for any
reason. The fifth is the sample rate; None for the device's own.
"""


def open_stream(
    kind: Kind,
    name: str | None,
    callback: Callback,
    finished: Callable[[], None],
    rate: int | None = None,
) -> tuple[str, PortAudioStream]:
    """Open a device, and return its full name and a stream that has not been started. `name` is a
    number of a device or a part of its name; None means the system's default device.

    Raises DeviceError.
    """
    sounddevice = _library(kind)
    device, shown = _find(sounddevice, kind, name)
    make = {"input": sounddevice.InputStream, "output": sounddevice.OutputStream}[kind]
    refusal = ""
    counts = range(1, min(2, device[f"max_{kind}_channels"]) + 1)
    # Input is opened with two channels if possible. If one inverts the other, the sound server
    # would mix both to nothing.
    for channels in reversed(counts) if kind == "input" else counts:
        try:
            with _hushed():
                return shown, make(
                    samplerate=rate or device["default_samplerate"],
                    device=device["index"],
                    channels=channels,
                    dtype="float32",
                    latency=LATENCY_S,
                    callback=callback,
                    finished_callback=finished,
                )
        except sounddevice.PortAudioError as error:  # some devices give two channels but not one
            refusal = str(error).partition(": ")[2].partition(" [PaErrorCode")[0] or str(error)
    raise DeviceError(
        f"the {NAMES[kind]} '{shown}' cannot be opened: {refusal}",
        f"see that the sound server runs and that no other program holds it, "
        f"or choose another with --{kind}",
    )


def begin_anew() -> None:
    """Have PortAudio look for devices again. No stream may be open."""
    import sounddevice

    with _hushed():
        sounddevice._terminate()  # there is no public way
        sounddevice._initialize()


class Device(NamedTuple):
    """A device that can be opened."""

    number: int
    name: str
    channels: int
    rate: int
    """Its own sample rate in hertz."""
    latency_s: tuple[float, float]
    """Least and usual latency of its driver, in seconds."""
    default: bool


def found(kind: Kind) -> list[Device]:
    """Return all devices of one kind. Raises DeviceError, also if there are none."""
    sounddevice = _library(kind)
    default = sounddevice.default.device[0 if kind == "input" else 1]
    devices = [
        Device(
            *(one["index"], one["name"], one[f"max_{kind}_channels"]),
            round(one["default_samplerate"]),
            (one[f"default_low_{kind}_latency"], one[f"default_high_{kind}_latency"]),
            one["index"] == default,
        )
        for one in sounddevice.query_devices()
        if one[f"max_{kind}_channels"] > 0
    ]
    if not devices:
        raise DeviceError(
            f"there is no {NAMES[kind]}",
            "connect one, or start the sound server (ALSA finds it through the package "
            "libasound2-plugins)",
        )
    return devices


def names(kind: Kind) -> list[str]:
    """Return the names of all devices of one kind. Raises DeviceError, also if there are none."""
    return [device.name for device in found(kind)]


def served(kind: Kind) -> dict[str, str]:
    """Return the sound server's devices of one kind: their descriptions by name. Empty if ALSA has
    no way to the server, or without its program `pactl`."""
    if SERVER not in names(kind) or not (pactl := shutil.which("pactl")):
        return {}
    done = subprocess.run(
        [pactl, "--format=json", "list", SERVED[kind][0]],
        env=os.environ | {"LC_ALL": "C.UTF-8"},  # others write numbers that are no JSON
        capture_output=True,
    )
    listed = json.loads(done.stdout) if done.returncode == 0 else []
    found = {one["name"]: one["description"] for one in listed}
    return {name: text for name, text in found.items() if not name.endswith(".monitor")}


def _library(kind: Kind) -> Any:
    """Import sounddevice. Raises DeviceError if PortAudio is missing; its message names the
    `kind`."""
    try:
        with _hushed():
            import sounddevice
    except OSError as error:
        ways = (way for program, way in INSTALLERS.items() if shutil.which(program))
        raise DeviceError(
            f"the {NAMES[kind]} cannot be reached: the library PortAudio is not installed",
            f"install it with: {next(ways, 'the installer of your system')}",
        ) from error
    _hush_alsa()
    return sounddevice


def _find(sounddevice: Any, kind: Kind, name: str | None) -> tuple[Any, str]:
    """Return sounddevice's description of the device with this number or name, or of the default
    one, and the name to show. A device of the sound server is chosen for the whole process."""
    known = ", ".join(f"'{one}'" for one in names(kind))
    try:
        number = int(name) if name and name.isdecimal() else None
        device = sounddevice.query_devices(name if number is None else number, kind)
        return device, device["name"]
    except (ValueError, sounddevice.PortAudioError) as error:
        server = served(kind) if name else {}
        known += "".join(f", '{text}'" for text in server.values())
        fits = [one for one in server if (name or "").lower() in f"{one} {server[one]}".lower()]
        if len(fits) == 1:
            os.environ[SERVED[kind][1]] = fits[0]
            return sounddevice.query_devices(SERVER, kind), server[fits[0]]
        raise DeviceError(
            f"'{name}' is neither the number nor the name of one {NAMES[kind]}"
            if name
            else f"no {NAMES[kind]} is the default one",
            f"choose with --{kind} one of: {known}",
        ) from error


_ALSA_HANDLER = ctypes.CFUNCTYPE(
    None, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p
)


@_ALSA_HANDLER
def _ignore(file: bytes, line: int, function: bytes, code: int, text: bytes) -> None:
    """Ignore a message of ALSA."""


def _hush_alsa() -> None:
    """Keep ALSA from writing messages to the terminal. Most of them are about underruns, which are
    counted anyway."""
    try:
        alsa = ctypes.CDLL("libasound.so.2")
    except OSError:  # another system, or Linux without it
        return
    alsa.snd_lib_error_set_handler(_ignore)


@contextmanager
def _hushed() -> Iterator[None]:
    """Keep drivers from writing to stderr. Faults that matter become errors."""
    kept, nothing = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nothing)
