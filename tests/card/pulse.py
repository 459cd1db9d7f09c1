"""A virtual sound card: a PulseAudio daemon of the test's own, without hardware.

What `say` plays into one null sink comes out of its monitor, which is remapped to be the default
microphone. The default speaker is a second null sink, whose monitor is recorded from beginning to
end. PortAudio reaches both through ALSA's plugin for PulseAudio; `environment` makes it do so.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from ctypes.util import find_library
from pathlib import Path
from typing import Any

import numpy as np

from tests.conftest import lacking
from voiceloop.types import Pcm

RATE = 16_000
"""Of what is said and what is recorded."""
PLUGIN = "libasound_module_pcm_pulse.so"
ALSA = """
pcm.default {
  type asym
  playback.pcm { type pulse device speaker }
  capture.pcm { type pulse device microphone }
}
"""
MODULES = (
    "module-native-protocol-unix socket={socket} auth-anonymous=1",
    "module-null-sink sink_name=user rate=48000 channels=1",
    "module-null-sink sink_name=speaker rate=48000 channels=1",
    "module-remap-source master=user.monitor source_name=microphone",
)
ECHO = "module-loopback source=speaker.monitor sink=user latency_msec=20"
RAW = ("--raw", f"--rate={RATE}", "--channels=1", "--format=float32le")
STEP = "--latency-msec=20"
PRIORITY = -11
"""Of the daemon, of those who play and record, and of voiceloop: beside other tests they would
leave gaps in the sound, which no sound card does."""


class VirtualCard:
    """The daemon while it runs."""

    def __init__(
        self, environment: dict[str, str], recording: Path, begin: Callable[[], Callable[[], None]]
    ) -> None:
        self.environment = environment
        """For the process that uses the card."""
        self._begin = begin
        self.unplug = begin()
        """End the daemon, and with it the devices."""
        self._recording = recording

    def plug(self) -> None:
        """Begin the daemon again."""
        self.unplug = self._begin()

    def say(self, pcm: Pcm) -> None:
        """Play `pcm`, at 16 kHz, to the microphone; returns about when it has been played."""
        player = ["pacat", "--playback", "--device=user", "--latency-msec=200", *RAW]
        with subprocess.Popen(player, env=self.environment, stdin=subprocess.PIPE) as process:
            hurry(process)
            process.communicate(pcm.tobytes())
        assert process.returncode == 0

    def heard(self) -> Pcm:
        """What the speaker has played so far, at 16 kHz, silence and all."""
        whole = self._recording.read_bytes()
        return np.frombuffer(whole[: len(whole) // 4 * 4], np.float32)


def hurry(process: subprocess.Popen[Any]) -> None:
    """Give a process the priority of a sound server, where we may."""
    with suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, process.pid, PRIORITY)


def require_portaudio() -> None:
    """Skip the test where PortAudio is not installed."""
    if find_library("portaudio") is None:
        lacking("the package libportaudio2 is not installed (make test says how)")


@contextmanager
def virtual_card(
    folder: Path, require_program: Callable[[str], Path], *, echo: bool
) -> Iterator[VirtualCard]:
    """Run a daemon with its files in `folder`; skip the test where something is not installed.

    With `echo` the microphone hears the speaker, as in a room.
    """
    require_portaudio()
    daemon = require_program("pulseaudio")
    require_program("pacat")
    if not any(Path("/usr/lib").glob(f"**/alsa-lib/{PLUGIN}")):
        lacking("the package libasound2-plugins is not installed (make test says how)")
    socket = folder / "socket"
    config = folder / "asound.conf"
    config.write_text(ALSA)
    environment = os.environ | {
        "HOME": str(folder),
        "XDG_RUNTIME_DIR": str(folder),
        "TMPDIR": str(folder),
        "PULSE_SERVER": f"unix:{socket}",
        "ALSA_CONFIG_PATH": str(config),
    }
    folder.chmod(0o700)
    modules = (*MODULES, ECHO) if echo else MODULES
    command = [daemon, "-n", "--daemonize=no", "--exit-idle-time=-1", "--use-pid-file=no"]
    loads = [f"--load={module.format(socket=socket)}" for module in modules]
    with ExitStack() as stack:
        log = stack.enter_context((folder / "log").open("wb"))
        recording = stack.enter_context((folder / "recording").open("ab"))

        def run(argv: list[str | Path], **files: object) -> subprocess.Popen[bytes]:
            process = subprocess.Popen(argv, env=environment, stderr=log, **files)  # pyright: ignore
            hurry(process)
            stack.callback(process.wait)
            stack.callback(process.terminate)
            return process

        def begin() -> Callable[[], None]:
            socket.unlink(missing_ok=True)
            served, before = run([*command, *loads]), recording.tell()

            def wait(reached: Callable[[], bool]) -> None:
                for _ in range(400):
                    if reached() or served.poll() is not None:
                        break
                    time.sleep(0.05)
                assert reached(), (folder / "log").read_text()

            wait(socket.exists)
            # Someone always plays, in small steps: a null sink left alone renders seconds at once,
            # and takes as long to begin.
            for sink in ("user", "speaker"):
                zero = stack.enter_context(Path("/dev/zero").open("rb"))
                run(["pacat", "--playback", f"--device={sink}", STEP, *RAW], stdin=zero)
            run(["parec", "--device=speaker.monitor", STEP, *RAW], stdout=recording)
            wait(lambda: recording.tell() > before)

            def end() -> None:
                served.terminate()
                served.wait()

            return end

        yield VirtualCard(environment, folder / "recording", begin)
