"""The tasks of one turn, from its beginning to its end: its recogniser, its record, its jobs and
its reply."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

import anyio

from voiceloop.asr.turns import (
    SilenceLasts,
    SpeechPaused,
    SpeechResumed,
    SpeechStarted,
    TurnEnded,
    TurnEvent,
)
from voiceloop.dialogue.state import Turn, TurnWords
from voiceloop.engines import FIRST, AsrSession, Priority
from voiceloop.trace.record import Mark, Recorder
from voiceloop.turn.reply import Reply
from voiceloop.turn.resources import Voiced
from voiceloop.types import Transcript

Job = Callable[[], Coroutine[Any, Any, None]]


@dataclass(slots=True, eq=False)
class TurnTasks:
    """Everything that runs for one turn: its recogniser, its record, its jobs and its reply."""

    turn: int
    """Id of the turn."""
    recorder: Recorder
    known: Turn | None
    """The turn as the core knows it at present; None once it is over."""
    priority: Priority
    """Priority of the turn's work except its reply. It is low until the user has finished."""
    transcriber: AsrSession | None = None
    """Session of the recogniser; None if nobody speaks in the turn."""
    reply: Reply | None = None
    voiced: Voiced = field(default_factory=Voiced)
    """Audio of replies that were dropped, for use in later ones."""
    ended: bool = False
    """Whether the user has finished. Until then all work is a guess."""
    newest: Transcript | None = None
    changed: anyio.Event = field(default_factory=anyio.Event)
    """Event that is set, and replaced by a new one, when there is new audio or a new job, or when
    the turn ends."""
    _scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    _jobs: deque[Job] = field(default_factory=deque[Job])

    async def run(self) -> None:
        """Run all jobs at the same time, until the turn is over or called off."""
        with self._scope:
            async with anyio.create_task_group() as tasks:
                while not self.over:
                    changed = self.changed
                    while self._jobs:
                        tasks.start_soon(self._jobs.popleft())
                    await changed.wait()
                tasks.cancel_scope.cancel()  # the turn model may still run, but is not needed

    def begin(self, job: Job) -> None:
        """Queue a job, which `run` starts."""
        self._jobs.append(job)
        self.wake()

    def call_off(self) -> None:
        """Cancel all jobs."""
        self._scope.cancel()

    def wake(self) -> None:
        """Wake the jobs that wait for a change."""
        self.changed.set()
        self.changed = anyio.Event()

    @property
    def over(self) -> bool:
        """Whether the turn is over: it has been answered, or never will be."""
        return self.known is None

    @property
    def words(self) -> TurnWords:
        """The words that the user has said so far."""
        if self.transcriber is None:
            return TurnWords(self.newest)
        return TurnWords(self.newest, self.transcriber.guess, self.transcriber.hypothesis)

    def hear(self, event: TurnEvent, at: float, now: float) -> None:
        """Take an event: the user pauses, goes on or has finished. `now` is the present time, and
        `at` is when the speech ended, both in seconds of the loop's clock."""
        transcriber, recorder, known = self.transcriber, self.recorder, self.known
        assert transcriber is not None and known is not None, "it is heard"
        match event:
            case SpeechPaused():
                transcriber.pause(event.sample, event.speech_end)
                recorder.retract(Mark.PAUSE, Mark.SPEECH_END)
                recorder.mark(Mark.SPEECH_END, at)
                recorder.mark(Mark.PAUSE, now)
            case SpeechResumed():
                transcriber.resume(event.speech_start, anew=known.dismissed, whole=known.detects)
                recorder.retract(Mark.PAUSE, Mark.SPEECH_END)
            case TurnEnded():
                self.end()
                recorder.retract(Mark.SPEECH_END)  # the mark of a pause is preliminary
                recorder.mark(Mark.SPEECH_END, at)
                recorder.mark(Mark.ENDPOINT, now)
                recorder.speech_end = event.speech_end
                speech_end = event.sample if event.forced else event.speech_end
                if final := transcriber.end(event.sample, speech_end):
                    self.take_down(final, now)
            case SpeechStarted() | SilenceLasts():
                raise AssertionError("it begins once, and a silence tells nothing new")
        self.wake()

    def write(self, now: float) -> None:
        """Note that the words of a written turn are complete. A written turn has no speech."""
        self.end()
        for mark in (Mark.ENDPOINT, Mark.TRANSCRIPT_FINAL):  # there is no SPEECH_END
            self.recorder.mark(mark, now)

    def end(self) -> None:
        """Note that the user has finished."""
        self.ended = True
        self.priority.level = FIRST
        if self.reply is not None:
            self.reply.gate.hurry()

    def take_down(self, transcript: Transcript, now: float) -> None:
        """Keep a transcript as the newest, and mark in the turn's record when it came."""
        self.newest = transcript
        if transcript.text:
            self.recorder.mark(Mark.FIRST_PARTIAL, now)
        if transcript.final:
            self.recorder.mark(Mark.TRANSCRIPT_FINAL, now)
            if self.transcriber is not None:
                self.recorder.count("retracted_words", self.transcriber.retracted)
