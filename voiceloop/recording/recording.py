"""Records a conversation from outside of its session.

A recording stands between the session and its microphone, speaker, view and core. Everything that
passes through the recording is written by a thread, so that a slow disk delays no conversation. If
the recording fails, the conversation goes on.

Only its owner may read the folder of a recording. Writes are not buffered, so a recording that is
cut off can be read up to that point: all complete lines of a text file, and all samples after the
header of a sound file, which says that the length is unknown.
"""

from __future__ import annotations

import errno
import logging
import os
import platform
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from io import FileIO
from itertools import count
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import NamedTuple, Self, cast

import anyio
import anyio.to_thread

import voiceloop
from voiceloop.audio.devices import (
    FilteredMicrophone,
    Microphone,
    PlayedAudio,
    RecordedSpeaker,
    Speaker,
    Tap,
)
from voiceloop.audio.files import UNKNOWN, WAV_HEADER, wav_header
from voiceloop.audio.frames import SPEECH_RATE, to_pcm16
from voiceloop.dialogue.actions import Action
from voiceloop.dialogue.conversationstate import ConversationState
from voiceloop.dialogue.core import receive
from voiceloop.dialogue.inputs import Input
from voiceloop.errors import VoiceloopError
from voiceloop.recording import format as form
from voiceloop.recording.format import veiled
from voiceloop.settings.config import Config, flatten
from voiceloop.settings.files import settings_file
from voiceloop.status import engine_names
from voiceloop.turn.skills import wall_time
from voiceloop.types import AudioFrame, Event, Pcm

MOST_BYTES = 1_000_000_000
"""Maximum size of a recording in bytes. This is enough for about two hours."""
MOST_WAITING = 8192
"""Maximum number of jobs that wait to be written. About twenty seconds of a conversation make so
many."""
CLOSING_S = 5.0
"""Maximum seconds for which the end of a conversation waits for the disk."""
TOO_SLOW = "the disk is too slow"

logger = logging.getLogger(__name__)

Show = Callable[[Event], None]
Core = Callable[[ConversationState, Input, float], list[Action]]


class FullRecording(Exception):
    """Raised when a recording has reached its maximum size."""


def prepare(folder: Path) -> None:
    """Make the folder for recordings, readable by its owner alone, unless it exists. Raises
    VoiceloopError if nothing can be written to the folder."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        why = "" if os.access(folder, os.W_OK | os.X_OK) else os.strerror(errno.EACCES)
    except OSError as error:
        why = error.strerror or str(error)
    if why:
        raise VoiceloopError(
            f"nothing can be recorded in {folder}: {why}",
            "name a folder that you may write to, or one that does not exist yet",
        )


class GrowingWav:
    """A mono wav file of unknown length; places that are never written are silent."""

    def __init__(self, file: FileIO, rate: int, *, floats: bool) -> None:
        """Write to `file`, as exact 32-bit floats with `floats`, otherwise as 16-bit integers."""
        self._file = file
        self._floats = floats
        self._width = 4 if floats else 2
        self._header = partial(wav_header, rate, floats=floats)
        _write(file, self._header(UNKNOWN))

    def write(self, place: int, pcm: Pcm) -> int:
        """Write samples, beginning with index `place`. Returns the size of the file in bytes up to
        the end of these samples."""
        data = pcm.astype("<f4") if self._floats else to_pcm16(pcm).astype("<i2")
        self._file.seek(WAV_HEADER + place * self._width)
        _write(self._file, data.tobytes())
        return self._file.tell()

    def finish(self) -> None:
        """Write the length of the sound into the header."""
        size = self._file.seek(0, os.SEEK_END) - WAV_HEADER
        self._file.seek(0)
        _write(self._file, self._header(size - size % self._width))


class RecordingFolder:
    """A new folder for one recording. Used as a context manager, it closes its files."""

    def __init__(self, parent: Path, name: str, most_bytes: int = MOST_BYTES) -> None:
        """Make the folder in `parent`. If `name` exists there, a number is added, as in `name-2`.

        `most_bytes` is the maximum size of all files together.
        """
        self.path = _new_folder(parent, name)
        self._most_bytes = most_bytes
        self._sizes: dict[str, int] = {}
        self._texts: dict[str, FileIO] = {}
        self._sounds: dict[str, GrowingWav] = {}
        self._closing = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._closing.close()

    def append(self, name: str, text: bytes) -> None:
        """Append to the text file `name`. Raises FullRecording beyond the maximum size."""
        if name not in self._texts:
            self._texts[name] = self._create(name)
        self._grow(name, self._sizes.get(name, 0) + len(text))
        _write(self._texts[name], text)

    def put(self, name: str, rate: int, place: int, pcm: Pcm, *, floats: bool = False) -> None:
        """Write samples to the wav file `name`, beginning with index `place`. Raises FullRecording
        beyond the maximum size."""
        if name not in self._sounds:
            sound = GrowingWav(self._create(name), rate, floats=floats)
            self._closing.callback(sound.finish)
            self._sounds[name] = sound
        self._grow(name, self._sounds[name].write(place, pcm))

    def _create(self, name: str) -> FileIO:
        private: Callable[[str, int], int] = partial(os.open, mode=0o600)
        file = open(self.path / name, "xb", buffering=0, opener=private)
        return self._closing.enter_context(cast("FileIO", file))

    def _grow(self, name: str, size: int) -> None:
        self._sizes[name] = size
        if sum(self._sizes.values()) > self._most_bytes:
            raise FullRecording


def _new_folder(parent: Path, name: str) -> Path:
    for number in count(1):
        path = parent / (name if number == 1 else f"{name}-{number}")
        with suppress(FileExistsError):
            path.mkdir(mode=0o700)
            return path
    raise AssertionError("there are more numbers than folders")


def _write(file: FileIO, data: bytes) -> None:
    """Write all of `data`. Raises OSError if the disk takes only a part of it, because it is
    full."""
    if file.write(data) != len(data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


Job = Callable[[RecordingFolder], None]


class RecordingWriter:
    """A thread that writes one recording. Jobs that are put before `start` wait."""

    def __init__(self, parent: Path, name: str, most_bytes: int = MOST_BYTES) -> None:
        """Write to a new folder in `parent`, which is made when the thread starts."""
        self.failure = ""
        """Why the recording ended before its conversation; empty if it did not. After a failure
        nothing is written any more."""
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._make = lambda: RecordingFolder(parent, name, most_bytes)
        self._thread = Thread(target=self._run, name="recording", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def put(self, job: Job) -> None:
        """Have the thread call `job` with the folder, after all earlier jobs. Never blocks. After a
        failure the job is dropped."""
        if self._jobs.qsize() >= MOST_WAITING:
            self.failure = self.failure or TOO_SLOW
        if not self.failure:
            self._jobs.put(job)

    def finish(self) -> None:
        """Write all that waits, and close the files. Blocks for `CLOSING_S` at most."""
        self._jobs.put(None)
        self._thread.join(CLOSING_S)
        if self._thread.is_alive():
            self.failure = self.failure or TOO_SLOW

    def _run(self) -> None:
        try:
            with self._make() as folder:
                while (job := self._jobs.get()) and not self.failure:
                    job(folder)
        except FullRecording:
            self.failure = "it has reached its maximum size"
        except OSError as error:
            self.failure = f"it cannot be written: {error.strerror}"
        except Exception as error:
            logger.exception("a recording has failed")
            self.failure = repr(error)


class Surroundings(NamedTuple):
    """The microphone, speaker, view and core that a session is connected to."""

    microphone: Microphone
    speaker: Speaker
    show: Show
    core: Core = receive


class Recording:
    """A recording of one conversation. Used as a context manager, it is written while the context
    lasts."""

    def __init__(
        self,
        parent: Path,
        settings: Config,
        tell: Callable[[str], None],
        *,
        full_duplex: bool,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        """Record to a new folder in `parent`. `tell` is called with a notice if the recording ends
        before its conversation."""
        now = wall_time(settings.timezone)
        self._writer = RecordingWriter(parent, f"{now:%Y-%m-%dT%H-%M-%S}", most_bytes)
        self._tell = tell
        self._told = self._begun = False
        self._played: PlayedAudio | None = None
        about = form.RecordingOrigin(
            *(form.FORMAT, voiceloop.__version__, platform.python_version(), platform.platform()),
            *(now.isoformat(timespec="seconds"), engine_names(settings), full_duplex),
        )
        kept = veiled(settings)
        text = settings_file(kept, dict.fromkeys(flatten(kept), "recording"))
        self._line(form.ABOUT, about)
        self._put(lambda folder: folder.append(form.SETTINGS, text.encode()))

    def around(self, inner: Surroundings) -> Surroundings:
        """Return surroundings for a session. They pass everything on between the session and
        `inner`, and record it. Call this when the conversation begins."""
        speaker, since = inner.speaker, anyio.current_time()
        self._played = PlayedAudio(speaker.rate, partial(self._play, speaker.rate), since=since)
        return Surroundings(
            FilteredMicrophone(inner.microphone, Tap(self._hear)),
            RecordedSpeaker(speaker, self._played),
            partial(self._show, inner.show),
            partial(self._core, inner.core),
        )

    async def __aenter__(self) -> Self:
        self._writer.start()
        return self

    async def __aexit__(self, *error: object) -> None:
        if self._played is not None:
            self._played.finish()
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(self._writer.finish)
        self._check()

    def _core(
        self, core: Core, state: ConversationState, report: Input, now: float
    ) -> list[Action]:
        if not self._begun:
            self._begun = True
            self._line(form.REPORTS, form.start_of(state))
        try:
            actions = core(state, report, now)
        except Exception as error:
            self._called(now, report, form.Raised(repr(error)))
            raise
        self._called(now, report, *actions)
        return actions

    def _called(self, now: float, report: Input, *decided: Action | form.Raised) -> None:
        plain = [form.tagged(one) for one in decided]
        self._line(form.REPORTS, form.CoreCall(now, form.tagged(report), plain))

    def _show(self, show: Show, event: Event) -> None:
        self._line(form.EVENTS, form.ShownEvent(anyio.current_time(), form.tagged(event)))
        show(event)

    def _hear(self, frame: AudioFrame) -> None:
        name, place, pcm = form.MICROPHONE, frame.start, frame.pcm
        self._put(lambda folder: folder.put(name, SPEECH_RATE, place, pcm, floats=True))

    def _play(self, rate: int, place: int, pcm: Pcm) -> None:
        self._put(lambda folder: folder.put(form.SPEAKER, rate, place, pcm))

    def _line(self, name: str, value: object) -> None:
        self._put(lambda folder: folder.append(name, form.encoded(value) + b"\n"))

    def _put(self, job: Job) -> None:
        self._writer.put(job)
        self._check()

    def _check(self) -> None:
        """Tell the user once that the recording has ended too early."""
        if self._writer.failure and not self._told:
            self._told = True
            self._tell(f"the recording of this conversation has ended: {self._writer.failure}")
