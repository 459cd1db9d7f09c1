"""Listening: passes a microphone's frames to the stages that need them, and reports what they find.

The speech detector gets each frame, and so does the recogniser of the turn that is being heard.
Nothing here waits, except for the next frame and for a slow voice activity detection.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from functools import partial

import anyio

from voiceloop.asr.turns import (
    Detector,
    SilenceLasts,
    SpeechDetector,
    SpeechPaused,
    SpeechStarted,
    TurnEnded,
    TurnEvent,
)
from voiceloop.asr.vad_stream import Judged, VadStream
from voiceloop.audio.devices import Microphone
from voiceloop.audio.frames import SPEECH_RATE, samples
from voiceloop.dialogue import inputs
from voiceloop.engines import AsrTurn
from voiceloop.runner import run_on
from voiceloop.settings.config import Config, TurnConfig
from voiceloop.trace.record import Mark
from voiceloop.turn.resources import Resources
from voiceloop.turn.tasks import Job, TurnTasks, judge_sound
from voiceloop.types import AudioFrame


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
