"""Records a conversation from outside of its session.

A recording stands between the session and its microphone, speaker, view and core. Everything that
passes through the recording is written by a thread. If the recording fails, the conversation goes
on.
"""

from __future__ import annotations

import platform
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple, Self

import anyio
import anyio.to_thread

import voiceloop
from voiceloop.audio.devices import Microphone, Speaker
from voiceloop.audio.filters import FilteredMicrophone, Tap
from voiceloop.audio.frames import SPEECH_RATE
from voiceloop.audio.recorded import PlayedAudio, RecordedSpeaker
from voiceloop.config import Config, flatten
from voiceloop.dialogue.actions import Action
from voiceloop.dialogue.conversationstate import ConversationState
from voiceloop.dialogue.core import receive
from voiceloop.dialogue.inputs import Input
from voiceloop.recording import format as form
from voiceloop.recording.folder import MOST_BYTES, RecordingFolder
from voiceloop.recording.veiled import veiled
from voiceloop.recording.writer import RecordingWriter
from voiceloop.settingsfile import settings_file
from voiceloop.status import engine_names
from voiceloop.turn.skills import wall_time
from voiceloop.types import AudioFrame, Event, Pcm

Show = Callable[[Event], None]
Core = Callable[[ConversationState, Input, float], list[Action]]


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
        self._append(form.ABOUT, form.encoded(about) + b"\n")
        self._append(form.SETTINGS, text.encode())

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
            self._line(form.REPORTS, _call(now, report, [form.Raised(repr(error))]))
            raise
        self._line(form.REPORTS, _call(now, report, actions))
        return actions

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

    def _append(self, name: str, text: bytes) -> None:
        self._put(lambda folder: folder.append(name, text))

    def _put(self, job: Callable[[RecordingFolder], None]) -> None:
        self._writer.put(job)
        self._check()

    def _check(self) -> None:
        """Tell the user once that the recording has ended too early."""
        if self._writer.failure and not self._told:
            self._told = True
            self._tell(f"the recording of this conversation has ended: {self._writer.failure}")


def _call(now: float, report: Input, actions: list[Action] | list[form.Raised]) -> form.CoreCall:
    return form.CoreCall(now, form.tagged(report), [form.tagged(action) for action in actions])
