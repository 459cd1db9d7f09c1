"""PortAudio, through sounddevice: which devices there are, and how a stream of one is opened.

Whatever may be wrong with PortAudio, the sound server or a device becomes one DeviceError with a
remedy. sounddevice is imported only when a device is opened; on macOS and Windows its wheels carry
PortAudio, elsewhere the system has it. This module does not know what is recorded or played.
"""

from __future__ import annotations

import ctypes
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal, Protocol

from voiceloop.errors import DeviceError

LATENCY_S = 0.04
"""Audio that a device is to hold: Python's threads can keep a callback waiting for half of it."""

INSTALLERS = {
    "apt-get": "sudo apt install libportaudio2",
    "dnf": "sudo dnf install portaudio",
    "pacman": "sudo pacman -S portaudio",
    "brew": "brew install portaudio",
}
"""What installs PortAudio, by the program that does it."""

Kind = Literal["input", "output"]
Callback = Callable[[Any, int, Any, Any], None]
"""Called with samples of shape [frames, channels], their number, PortAudio's times and flags."""
NAMES: dict[Kind, str] = {"input": "microphone", "output": "speaker"}


class PortAudioStream(Protocol):
    """What is used of a stream of sounddevice."""

    @property
    def samplerate(self) -> float:
        """Hertz."""
        ...

    @property
    def latency(self) -> float:
        """Seconds between a callback and the sound that it is about."""
        ...

    @property
    def time(self) -> float:
        """Now, in seconds of the clock that callbacks are given times of."""
        ...

    def start(self) -> None:
        """Begin to call the callback."""
        ...

    def abort(self) -> None:
        """Drop what the device holds, and call nothing any more."""
        ...

    def close(self) -> None:
        """Give the device back."""
        ...


Opener = Callable[[Kind, str | None, Callback, Callable[[], None]], tuple[str, PortAudioStream]]
"""Opens a device by kind and name: gives its full name and a stream that has not been started.

The third argument is the stream's callback, the fourth is called when it ends, for any reason.
"""


def open_stream(
    kind: Kind, name: str | None, callback: Callback, finished: Callable[[], None]
) -> tuple[str, PortAudioStream]:
    """Open the system's default device, or the one that `name` is a part of the name of.

    Raises DeviceError.
    """
    sounddevice = _library(kind)
    device = _find(sounddevice, kind, name)
    make = {"input": sounddevice.InputStream, "output": sounddevice.OutputStream}[kind]
    refusal = ""
    counts = range(1, min(2, device[f"max_{kind}_channels"]) + 1)
    # Of two that cancel each other a sound server that mixes them leaves nothing.
    for channels in reversed(counts) if kind == "input" else counts:
        try:
            with _hushed():
                return device["name"], make(
                    samplerate=device["default_samplerate"],
                    device=device["index"],
                    channels=channels,
                    dtype="float32",
                    latency=LATENCY_S,
                    callback=callback,
                    finished_callback=finished,
                )
        except sounddevice.PortAudioError as error:  # some give two channels and not one
            refusal = str(error).partition(": ")[2].partition(" [PaErrorCode")[0] or str(error)
    raise DeviceError(
        f"the {NAMES[kind]} '{device['name']}' cannot be opened: {refusal}",
        f"see that the sound server runs and that no other program holds it, "
        f"or choose another with --{kind}",
    )


def names(kind: Kind) -> list[str]:
    """The devices that there are, by name. Raises what `open_stream` does, also where none is."""
    return _names(_library(kind), kind)


def _library(kind: Kind) -> Any:
    """sounddevice, which is wanted for a device of this kind."""
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


def _names(sounddevice: Any, kind: Kind) -> list[str]:
    channels = f"max_{kind}_channels"
    found = [one["name"] for one in sounddevice.query_devices() if one[channels] > 0]
    if not found:
        raise DeviceError(
            f"there is no {NAMES[kind]}",
            "connect one, or start the sound server (ALSA finds it through the package "
            "libasound2-plugins)",
        )
    return found


def _find(sounddevice: Any, kind: Kind, name: str | None) -> Any:
    """What sounddevice says about the device of that name, or about the default one."""
    known = ", ".join(f"'{one}'" for one in _names(sounddevice, kind))
    try:
        return sounddevice.query_devices(name, kind)
    except (ValueError, sounddevice.PortAudioError) as error:
        raise DeviceError(
            f"'{name}' is not the name of one {NAMES[kind]}"
            if name
            else f"no {NAMES[kind]} is the default one",
            f"choose with --{kind} one of: {known}",
        ) from error


_ALSA_HANDLER = ctypes.CFUNCTYPE(
    None, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p
)


@_ALSA_HANDLER
def _ignore(file: bytes, line: int, function: bytes, code: int, text: bytes) -> None:
    """Takes a message of ALSA's and does nothing."""


def _hush_alsa() -> None:
    """Keep ALSA from writing to the terminal, above all of underruns: those are counted."""
    try:
        alsa = ctypes.CDLL("libasound.so.2")
    except OSError:  # another system, or Linux without it
        return
    alsa.snd_lib_error_set_handler(_ignore)


@contextmanager
def _hushed() -> Iterator[None]:
    """Keep from the terminal what drivers write to stderr: what matters of it becomes an error."""
    kept, nothing = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nothing)
