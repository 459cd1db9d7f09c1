"""What runs for one turn, from its beginning to its end: its recogniser, its record, its jobs."""

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
    """What runs for one turn."""

    turn: int
    """Its id."""
    recorder: Recorder
    known: Turn | None
    """The turn as the core has it by now; none once it is over."""
    priority: Priority
    """Of what is done for it but its reply: while the user may go on, that is a guess."""
    transcriber: AsrSession | None = None
    """None where nobody speaks."""
    reply: Reply | None = None
    voiced: Voiced = field(default_factory=Voiced)
    """Audio of replies that were dropped."""
    ended: bool = False
    """The user has finished: what is done from now on is no guess."""
    newest: Transcript | None = None
    changed: anyio.Event = field(default_factory=anyio.Event)
    """Set, and replaced, when there is audio, a job or an end to look at."""
    _scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    _jobs: deque[Job] = field(default_factory=deque[Job])

    async def run(self) -> None:
        """Do what is begun, all at once, until the turn is over or called off."""
        with self._scope:
            async with anyio.create_task_group() as tasks:
                while not self.over:
                    changed = self.changed
                    while self._jobs:
                        tasks.start_soon(self._jobs.popleft())
                    await changed.wait()
                tasks.cancel_scope.cancel()  # nobody waits for what the turn model finds

    def begin(self, job: Job) -> None:
        """Begin something."""
        self._jobs.append(job)
        self.wake()

    def call_off(self) -> None:
        """End all that runs."""
        self._scope.cancel()

    def wake(self) -> None:
        """Let its jobs look again."""
        self.changed.set()
        self.changed = anyio.Event()

    @property
    def over(self) -> bool:
        """The turn has been answered, or will not be."""
        return self.known is None

    @property
    def words(self) -> TurnWords:
        """What the user has said by now."""
        if self.transcriber is None:
            return TurnWords(self.newest)
        return TurnWords(self.newest, self.transcriber.guess, self.transcriber.hypothesis)

    def hear(self, event: TurnEvent, at: float, now: float) -> None:
        """The user pauses, goes on or has ended, `at` the sample that tells."""
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
                recorder.retract(Mark.SPEECH_END)  # a pause tells it before all is known
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
        """What the user has to say is there, and nobody speaks."""
        self.end()
        for mark in (Mark.ENDPOINT, Mark.TRANSCRIPT_FINAL):  # and no SPEECH_END
            self.recorder.mark(mark, now)

    def end(self) -> None:
        """The user has finished."""
        self.ended = True
        self.priority.level = FIRST
        if self.reply is not None:
            self.reply.gate.hurry()

    def take_down(self, transcript: Transcript, now: float) -> None:
        """Keep what was understood."""
        self.newest = transcript
        if transcript.text:
            self.recorder.mark(Mark.FIRST_PARTIAL, now)
        if transcript.final:
            self.recorder.mark(Mark.TRANSCRIPT_FINAL, now)
            if self.transcriber is not None:
                self.recorder.count("retracted_words", self.transcriber.retracted)
