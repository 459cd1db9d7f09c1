"""Listening, and the tasks of each turn that is heard: its recogniser, its record, its reply, and
the jobs that run beside the reply. Each job reports to the core what it finds.

`Listener` passes a microphone's frames to the speech detector and to the recogniser of the turn
that is being heard. It never waits, except for the next frame and for a slow voice activity
detection.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import anyio

from voiceloop.asr.turns import (
    Detector,
    SilenceLasts,
    SpeechDetector,
    SpeechPaused,
    SpeechResumed,
    SpeechStarted,
    TurnEnded,
    TurnEvent,
)
from voiceloop.asr.vad_stream import Judged, VadStream
from voiceloop.audio.devices import Microphone
from voiceloop.audio.frames import SPEECH_RATE, samples
from voiceloop.dialogue import actions, inputs
from voiceloop.dialogue.state import Turn, TurnWords
from voiceloop.engines import FIRST, URGENT, AsrSession, AsrTurn, Priority
from voiceloop.runner import run_on, run_through
from voiceloop.settings.config import Config, TurnConfig
from voiceloop.trace.record import Lane, Mark, Recorder
from voiceloop.turn.ahead import look_ahead
from voiceloop.turn.reply import Reply
from voiceloop.turn.resources import Resources, Voiced
from voiceloop.types import AudioFrame, Clause, Pcm, Transcript

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


SURE_OF_LANGUAGE = 0.8
"""Minimum probability of a detected language for which later turns keep it too. Whisper base
mistook German and Spanish for other languages with probabilities of up to 0.64."""


async def recognise(work: TurnTasks, resources: Resources) -> None:
    """Decode the user's speech until every sample before the endpoint has been decoded. If stages
    do not overlap, decode only once the user has finished."""
    engines, transcriber = resources.engines, work.transcriber
    asr, runner, partials = engines.asr, engines.asr_runner, resources.overlap.stages
    assert transcriber is not None, "somebody speaks"
    while not (work.newest and work.newest.final):
        changed = work.changed
        job = transcriber.next_job() if work.ended or partials else None
        known = work.known
        if job is None or known is None:
            await changed.wait()
            continue
        begun = anyio.current_time()
        priority = URGENT if job.final else work.priority
        sure = False
        if known.detects:
            code, probability = await runner.call(
                partial(asr.detect_language, job.pcm), priority=priority
            )
            sure = probability >= SURE_OF_LANGUAGE
            resources.report(inputs.LanguageDetected(work.turn, code))
            known = work.known or known
        words = await runner.call(partial(job.decode, known.language.code), priority=priority)
        name = "final" if job.final else "partial"
        now, until_s = anyio.current_time(), job.end / SPEECH_RATE
        if words is None:
            work.recorder.span(Lane.ASR, f"abandoned {name}", begun, now, until_s=until_s)
            job.abandon()
            continue
        text = " ".join(word.text for word in words)
        work.recorder.span(Lane.ASR, name, begun, now, words=len(words), text=text, until_s=until_s)
        work.take_down(job.accept(words), now)
        sure = sure and bool(words) and job.final
        resources.report(inputs.Recognised(work.turn, work.words, sure))


async def judge_sound(work: TurnTasks, resources: Resources, since: int, pcm: Pcm) -> None:
    """Have the turn model judge from the sound `pcm` whether the turn is over. The silence began at
    sample `since`."""
    model, runner = resources.engines.turn, resources.engines.turn_runner
    assert model is not None and runner is not None, "there is a turn model"
    begun = anyio.current_time()
    probability = await runner.call(
        partial(model.end_of_turn_probability, pcm), priority=work.priority
    )
    now = anyio.current_time()
    work.recorder.span(Lane.VAD, "end by its sound?", begun, now, probability=probability)
    resources.report(inputs.SoundJudged(work.turn, since, probability))


async def read(work: TurnTasks, resources: Resources, request: actions.ReadWords) -> None:
    """Have the language model read the user's words, and report the end probability. Then, except
    in the first turn, begin replies to what the user may say next."""
    conversation, text, begun = resources.conversation, request.text, anyio.current_time()
    if text:
        work.recorder.mark(Mark.PREFILL_START, begun)
    steps = conversation.prefill(text, work.recorder.turn)
    await run_through(resources.engines.llm_runner, steps, priority=work.priority)
    work.recorder.span(Lane.PREFILL, "prefill", begun, anyio.current_time(), text=text)
    found = conversation.standing
    resources.report(inputs.Read(work.turn, text, found.end_probability, begun, found.exchanges))
    if text and work.recorder.turn > 1:  # a first question cannot be predicted
        await look_ahead(resources, work.recorder, text, work.recorder.turn)


async def call_tool(resources: Resources, action: actions.CallTool) -> None:
    """Run one of the user's own tools, and report its result."""
    result = await resources.toolbox.call(action.call)
    resources.report(inputs.ToolReturned(action.turn, action.call, result))


class Listener:
    """The listener of one microphone. Call `run` once."""

    def __init__(
        self,
        microphone: Microphone,
        resources: Resources,
        config: Config,
        detector: Detector | None,
    ) -> None:
        """Listen to `microphone`. If `detector` is None, use a speech detector with the configured
        settings."""
        self.microphone = microphone
        self.work: TurnTasks | None = None
        """Tasks of the turn that is being heard; None between turns."""
        self._resources = resources
        self._ended = False
        self._config = config.asr
        engines, turns = resources.engines, config.turns
        self._stream = VadStream(
            engines.vad,
            detector or SpeechDetector(turns),
            turns,
            engines.turn.window_s if engines.turn else 0.0,
        )

    async def run(self) -> None:
        """Report what the user does, until the microphone has finished or `end` was called, and no
        turn is being heard."""
        async with aclosing(self.microphone.frames()) as frames:
            async for frame in frames:
                arrived = anyio.current_time()
                judge = partial(self._stream.judge, frame)
                windows = await run_on(self._resources.engines.vad_runner, judge)
                self._hear(frame, windows, arrived)
                if (self.microphone.finished or self._ended) and self.work is None:
                    break

    def end(self) -> None:
        """Stop listening after the turn that is being heard."""
        self._ended = True

    def begin(self, work: TurnTasks, started: SpeechStarted) -> None:
        """Begin the turn of `work`, and give it all audio from `started.start` on."""
        work.recorder.mark(Mark.SPEECH_START, self._stream.when(started.speech_start))
        recent = self._stream.recent
        audio = AudioFrame(recent.read(started.start, recent.end), SPEECH_RATE, started.start)
        turn = AsrTurn(work.recorder.turn, audio, started.speech_start)
        work.transcriber = self._resources.engines.asr.session(turn, self._config)
        self.work = work

    def end_turn(self) -> inputs.Detected:
        """End the turn that is being heard, in the present silence, and return the report."""
        return self.note(self._stream.end(), anyio.current_time())

    def judge(self, work: TurnTasks, since: int) -> Job:
        """Return the job that has the turn model judge the sound before the silence that began at
        sample `since`."""
        model, recent = self._resources.engines.turn, self._stream.recent
        assert model is not None and work.transcriber is not None, (
            "there is a turn model, and a voice"
        )
        start = max(work.transcriber.start, recent.end - samples(1000 * model.window_s))
        pcm = recent.read(max(start, recent.start), recent.end)
        return partial(judge_sound, work, self._resources, since, pcm)

    def listen(self, detector: Detector, policy: TurnConfig) -> None:
        """Use another detector and other settings from now on. A turn that is being heard is
        discarded."""
        self.work = None
        self._stream.listen(detector, policy)

    def forget(self) -> None:
        """Discard the turn that is being heard. No later turn begins in the audio so far."""
        self.work = None
        self._stream.forget()

    def note(self, event: TurnEvent, now: float) -> inputs.Detected:
        """Pass an event of the detector to the recogniser, and return the report of the event.
        `now` is the present time in seconds of the loop's clock."""
        if isinstance(event, SpeechStarted):
            return inputs.Detected(event, self._stream.when(event.speech_start))
        work = self.work
        assert work is not None, "the detector begins a turn before anything happens in it"
        if isinstance(event, TurnEnded):
            self.work = None
        if work.over or isinstance(event, SilenceLasts):
            return inputs.Detected(event, now)
        at = now
        if isinstance(event, SpeechPaused | TurnEnded):
            at = self._stream.when(event.speech_end)
        work.hear(event, at, now)
        return inputs.Detected(event, at, work.words)

    def _hear(self, frame: AudioFrame, windows: Sequence[Judged], arrived: float) -> None:
        now, report = anyio.current_time(), self._resources.report
        if self.work is not None and self.work.transcriber is not None:
            self.work.transcriber.feed(frame)
        for event in self._stream.feed(frame, windows, arrived):
            report(self.note(event, now))
        if self.work is not None:
            report(inputs.Frame(frame.end))
        if self.work is not None:
            self.work.wake()


async def play(resources: Resources) -> None:
    """Play replies for as long as the session lasts, and report each clause that begins to
    sound."""

    def sounds(clause: Clause) -> None:
        resources.show(clause)
        resources.report(inputs.Sounding(resources.player.turn))

    await resources.player.run(sounds)
