"""Session: the conversation loop, from a microphone's frames to a speaker's samples.

Each turn of the user is one task with one cancel scope. While the user talks, it recognises what
has been said so far and prefills the language model with the words that are settled. At the first
silence the final decode and then the reply are begun, on the guess that the user has finished; the
endpoint decision commits the reply, and a user who goes on makes it be dropped and begun again,
unseen. The only things that flow back are back-pressure, cancellation, and how much was heard.

The session knows no device and no model: microphone, speaker, engines and runners are given to it,
and all its waiting goes through anyio, so it runs the same on a virtual clock.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from contextlib import aclosing
from datetime import datetime
from functools import partial

import anyio
from anyio.abc import TaskGroup

from voiceloop.asr.stream import StreamingTranscriber
from voiceloop.audio import SPEECH_RATE, Framer, SampleBuffer
from voiceloop.config import Config
from voiceloop.devices import Microphone, Speaker
from voiceloop.endpoint import bare, hangover_ms
from voiceloop.engines import Engines
from voiceloop.errors import VoiceloopError
from voiceloop.floor import Floor, Turn
from voiceloop.player import Player
from voiceloop.reply import EVERYTHING, Overlap, Reply, Stage
from voiceloop.runner import FIRST, LATER
from voiceloop.tools import ToolResult, run_tool
from voiceloop.trace import Lane, Mark, Recorder
from voiceloop.turns import SpeechPaused, SpeechResumed, SpeechStarted, TurnDetector, TurnEnded
from voiceloop.types import (
    AudioFrame,
    Event,
    Notice,
    Outcome,
    ToolCall,
    Transcript,
)

logger = logging.getLogger(__name__)

RECENT_S = 2.0
"""Audio kept for the beginning of a turn; more than any pre-roll."""


class Session:
    """One conversation. `run` it once."""

    def __init__(
        self,
        engines: Engines,
        microphone: Microphone,
        speaker: Speaker,
        config: Config,
        show: Callable[[Event], None],
        *,
        full_duplex: bool = False,
        overlap: Overlap = EVERYTHING,
        detector: TurnDetector | None = None,
        wall_clock: Callable[[], datetime] = datetime.now,
    ) -> None:
        """`full_duplex` goes on hearing while a reply sounds, so that it can be interrupted.

        `overlap` says what is left out, with the same models and the same endpoint decisions, to
        measure what it is worth. `detector` stands in for one with the configured settings.
        """
        self._engines = engines
        self._microphone = microphone
        self._config = config
        self._show = show
        self._full_duplex = full_duplex
        self._overlap = overlap
        self._wall_clock = wall_clock
        self._player = Player(speaker, on_clause=show)
        self._conversation = engines.llm.conversation(
            system=config.llm.system, seed=config.llm.seed
        )
        self._framer = Framer(size=engines.vad.frame)
        self._detector = detector or TurnDetector(config.turns)
        self._floor = Floor(self._player)
        # What a model makes of a silence has to be calibrated; the bundled one's is.
        self._asks_model = config.turns.endpoint == "p-eot" or (
            config.turns.endpoint == "auto" and config.llm.target == "starter"
        )
        self._recent = SampleBuffer()
        self._arrivals: deque[tuple[int, float]] = deque(maxlen=3000)
        self._heard_turn: Turn | None = None
        """The turn that is being heard."""
        self._last_turn: Turn | None = None
        """The newest turn of all; turns run one after the other."""
        self._turns = 0
        self._timers = 0

    async def run(self) -> None:
        """Converse until the microphone has finished and every turn is over."""
        async with anyio.create_task_group() as tasks:
            stage = Stage(
                self._engines,
                self._conversation,
                self._player,
                self._show,
                partial(self._call_tool, tasks),
                self._overlap,
            )
            tasks.start_soon(self._player.run)
            async with aclosing(self._microphone.frames()) as frames:
                async for frame in frames:
                    self._hear(frame, stage, tasks)
                    if self._microphone.finished and self._heard_turn is None:
                        break
            while self._last_turn is not None and not self._last_turn.over.is_set():
                await self._last_turn.over.wait()
            if self._timers:
                self._show(Notice(f"{self._timers} timer(s) end with this session"))
            tasks.cancel_scope.cancel()
        self._conversation.close()

    # ---- hearing: everything here is synchronous, so no frame is ever late

    def _hear(self, frame: AudioFrame, stage: Stage, tasks: TaskGroup) -> None:
        now = anyio.current_time()
        self._arrivals.append((frame.end, now))
        self._recent.append(frame.pcm)
        if self._heard_turn is not None:
            self._heard_turn.transcriber.feed(frame)
        for window in self._framer.feed(frame.pcm):
            turn = self._heard_turn
            hangover_ms = turn.hangover_ms if turn else None
            probability = self._engines.vad.probability(window.pcm)
            for event in self._detector.feed(window, probability, hangover_ms):
                match event:
                    case SpeechStarted():
                        self._begin_turn(event, stage, tasks)
                    case SpeechPaused() | SpeechResumed() | TurnEnded():
                        self._turn_event(event, now)
        if self._heard_turn is not None:
            self._heard_turn.wake()
            self._weigh(self._heard_turn)
        self._recent.drop(frame.end - round(RECENT_S * SPEECH_RATE))

    def _begin_turn(self, event: SpeechStarted, stage: Stage, tasks: TaskGroup) -> None:
        previous = self._last_turn
        self._turns += 1
        recorder = Recorder(self._turns)
        recorder.mark(Mark.SPEECH_START, self._when(event.speech_start))
        transcriber = StreamingTranscriber(
            self._turns, event, self._recent, self._config.asr, self._engines.asr.max_window_s
        )
        guesses = self._config.turns.max_guesses if self._overlap.early_reply else 0
        turn = Turn(self._turns, recorder, transcriber, guesses)
        self._heard_turn = self._last_turn = turn
        rival = previous
        if previous is not None and previous.rival is not None and not previous.rival.over.is_set():
            rival = previous.rival  # it is not decided yet what the last sound was
        if rival is not None and rival.answered and not rival.over.is_set():
            self._floor.contest(turn, rival)
        tasks.start_soon(self._take_turn, turn, previous, stage)

    def _turn_event(self, event: SpeechPaused | SpeechResumed | TurnEnded, now: float) -> None:
        turn = self._heard_turn
        assert turn is not None, "the detector begins a turn before anything happens in it"
        if turn.over.is_set():  # it has failed while it was heard
            self._heard_turn = None if isinstance(event, TurnEnded) else turn
            return
        match event:
            case SpeechResumed():
                turn.speaking = True
                turn.judged = turn.hangover_ms = None
                if turn.dismissed and turn.rival is not None and not turn.rival.over.is_set():
                    self._floor.contest(turn, turn.rival)
                turn.dismissed = False
                turn.transcriber.resume(event)
                turn.recorder.retract(Mark.PAUSE, Mark.SPEECH_END)
                turn.wake()
            case SpeechPaused():
                turn.speaking = False
                turn.transcriber.pause(event)
                turn.recorder.mark(Mark.SPEECH_END, self._when(event.speech_end))
                turn.recorder.mark(Mark.PAUSE, now)
            case TurnEnded():
                turn.ended, turn.speaking = True, False
                turn.recorder.mark(Mark.SPEECH_END, self._when(event.speech_end))
                turn.recorder.mark(Mark.ENDPOINT, now)
                if final := turn.transcriber.end(event):
                    self._note_transcript(turn, final)
                turn.wake()
                self._weigh(turn)
                self._heard_turn = None
                if not self._full_duplex:
                    self._microphone.hold()

    def _weigh(self, turn: Turn) -> None:
        """Decide who has the floor; a turn that was nothing to listen to ends with its silence."""
        self._floor.weigh(turn)
        if turn.dismissed and turn.ended:
            turn.scope.cancel()
            if self._last_turn is turn:
                self._last_turn = turn.rival

    def _when(self, sample: int) -> float:
        """When a sample was recorded: frames arrive as their last sample is."""
        for end, arrival in self._arrivals:
            if end >= sample:
                return arrival - (end - sample) / SPEECH_RATE
        return anyio.current_time()

    # ---- a turn

    async def _take_turn(self, turn: Turn, previous: Turn | None, stage: Stage) -> None:
        outcome: Outcome = "interrupted"
        heard = ""
        with turn.scope:
            try:
                async with anyio.create_task_group() as work:
                    work.start_soon(self._recognise, turn)
                    if await self._respond(turn, previous, stage):
                        outcome = "done"
                    else:
                        outcome = "abandoned"
            except Exception as error:
                # A stage that fails ends its turn, never the session.
                logger.exception("turn %d failed", turn.number)
                outcome = "failed"
                while isinstance(error, ExceptionGroup):
                    error = error.exceptions[0]
                reason = error.message if isinstance(error, VoiceloopError) else repr(error)
                self._show(Notice(f"the reply failed: {reason}"))
        if turn.dismissed:
            outcome = "abandoned"
        if turn.reply is not None:
            if outcome == "done":
                heard = turn.reply.said.strip()
            else:
                tokens = self._player.stop().tokens
                heard = self._conversation.heard(0 if turn.cut_off else tokens).strip()
        turn.rival = None  # or every turn would keep the one before it
        turn.over.set()
        if not self._full_duplex:
            self._microphone.release()
        self._show(turn.recorder.trace(outcome, heard))

    async def _recognise(self, turn: Turn) -> None:
        """Decode what the user says until every sample before the endpoint has been decoded."""
        while turn.final is None:
            changed = turn.changed
            decode = turn.ended or self._overlap.stages
            job = turn.transcriber.next_job() if decode else None
            if job is None:
                await changed.wait()
                continue
            begun = anyio.current_time()
            words = await self._engines.asr_runner.call(
                partial(self._engines.asr.transcribe, job.pcm, final=job.final),
                priority=FIRST if job.final else LATER,
            )
            name = "final" if job.final else "partial"
            text = " ".join(word.text for word in words)
            now = anyio.current_time()
            turn.recorder.span(Lane.ASR, name, begun, now, words=len(words), text=text)
            self._note_transcript(turn, turn.transcriber.accept(job, words))

    def _note_transcript(self, turn: Turn, transcript: Transcript) -> None:
        now = anyio.current_time()
        if transcript.text:
            turn.recorder.mark(Mark.FIRST_PARTIAL, now)
        if transcript.final:
            turn.final = transcript
            turn.recorder.mark(Mark.TRANSCRIPT_FINAL, now)
            turn.recorder.count("retracted_words", turn.transcriber.retracted)
        turn.heard = transcript
        self._show(transcript)
        turn.wake()
        self._weigh(turn)

    async def _respond(self, turn: Turn, previous: Turn | None, stage: Stage) -> bool:
        """Keep the language model at what the user has said, and answer once that may be all.

        True after an answer; False where there is nothing to answer, or where the user went on in
        a new turn before there was one: then both are one turn.
        """
        for earlier in (previous, turn.rival):
            if earlier is not None:
                await earlier.over.wait()
        prefilled = ""
        while True:
            changed = turn.changed
            if turn.dismissed:
                await changed.wait()
                continue
            text, whole = turn.understood()
            if turn.final is None and whole and text != turn.judged:
                prefilled = await self._judge_end(turn, text, prefilled)
                continue
            if turn.final is not None:
                newer = self._last_turn
                assert newer is not None
                if not text or newer is not turn:
                    if newer is not turn:
                        newer.carried = text
                    if prefilled or turn.reply is not None:
                        await self._prefill(turn, "")
                    return False
                turn.guesses = 1
            if whole and text and turn.guesses:
                turn.guesses -= 1
                if await self._answer(turn, text, stage):
                    return True
                prefilled = ""
            elif text != prefilled and self._overlap.prefill:
                await self._prefill(turn, text)
                prefilled = text
            else:
                await changed.wait()

    async def _judge_end(self, turn: Turn, text: str, prefilled: str) -> str:
        """Find out how long a silence ends the turn after `text`; returns what is prefilled."""
        begun, probability = anyio.current_time(), None
        if self._asks_model and self._overlap.prefill and (words := bare(text)):
            await self._prefill(turn, words)
            prefilled, probability = words, self._conversation.end_of_turn_probability()
        if turn.understood() == (text, True):  # the user may have gone on meanwhile
            turn.judged = text
            turn.hangover_ms = hangover_ms(text, probability, self._config.turns)
        if probability is not None:
            now = anyio.current_time()
            turn.recorder.span(Lane.VAD, "end of turn?", begun, now, probability=probability)
        return prefilled

    async def _prefill(self, turn: Turn, text: str) -> None:
        begun = anyio.current_time()
        if text:
            turn.recorder.mark(Mark.PREFILL_START, begun)
        steps = self._conversation.prefill(text, turn.number)
        runner = self._engines.llm_runner
        async with aclosing(runner.stream(steps, priority=lambda: LATER)) as chunks:
            async for _ in chunks:
                pass
        turn.recorder.span(Lane.PREFILL, "prefill", begun, anyio.current_time(), text=text)

    async def _answer(self, turn: Turn, text: str, stage: Stage) -> bool:
        """Reply to `text`; False where it turned out not to be what the user said."""
        anew = turn.reply is not None
        turn.reply = Reply(text, turn.recorder, stage, turn.voiced, anew=anew)
        if turn.final is not None:
            turn.reply.commit()
        return await turn.reply.run()

    def _call_tool(self, tasks: TaskGroup, call: ToolCall) -> str:
        result = run_tool(call.name, call.arguments, self._wall_clock())
        if result.rings_after:
            tasks.start_soon(self._ring, result)
        return result.text

    async def _ring(self, result: ToolResult) -> None:
        """Tell the user when a timer is over."""
        self._timers += 1
        await anyio.sleep(result.rings_after)
        self._timers -= 1
        self._show(Notice(result.rings))
