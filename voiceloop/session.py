"""Session: carries out what the dialogue core decides, from a microphone's frames to a speaker's
samples.

Every stage reports to the core (`dialogue.core`), and what it answers with is done here, in order:
decode, read, reply, pause, stop, cut the history, show. Nothing is decided here. The work of each
turn runs in one task with one cancel scope, and what comes back from it are reports.

The session knows no device and no model: microphone, speaker, engines and runners are given to it,
and all its waiting goes through anyio, so it runs the same on a virtual clock.
"""

from __future__ import annotations

import json
import logging
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import aclosing
from datetime import datetime
from functools import partial, singledispatchmethod

import anyio
from anyio.abc import TaskGroup

from voiceloop.asr.hearing import Hearing
from voiceloop.asr.stream import StreamingTranscriber
from voiceloop.asr.turns import (
    Detector,
    SpeechPaused,
    SpeechStarted,
    TurnDetector,
    TurnEnded,
    TurnEvent,
)
from voiceloop.audio.devices import Microphone, Speaker
from voiceloop.audio.frames import samples
from voiceloop.audio.player import Player
from voiceloop.config import Config, TurnConfig
from voiceloop.dialogue import actions, inputs
from voiceloop.dialogue.core import Abilities, Core
from voiceloop.dialogue.state import Options, Played, Returned, Settings
from voiceloop.engines import Conversation, Engines
from voiceloop.errors import VoiceloopError
from voiceloop.languages import Language, language
from voiceloop.trace.record import Lane, Mark, Recorder
from voiceloop.turn.gate import Gate
from voiceloop.turn.history import History
from voiceloop.turn.jobs import Reports, has_read, judge_sound, read, recognise, rewrite
from voiceloop.turn.overlap import EVERYTHING, Overlap
from voiceloop.turn.reply import Reply
from voiceloop.turn.resources import Resources
from voiceloop.turn.thinking import Calls
from voiceloop.turn.tools import ToolResult, run_tool
from voiceloop.turn.work import Work
from voiceloop.types import AudioFrame, Event, Notice, TokenBurst, ToolCall

logger = logging.getLogger(__name__)

MAX_GUESSES = 6
"""Replies begun before the end of a turn, where that costs nothing but time."""


class Session:
    """One conversation. `run` it once.

    Its many attributes are the stages that meet here, one each, and what runs of each turn.
    """

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
        detector: Detector | None = None,
        conversation: Conversation | None = None,
        wall_clock: Callable[[], datetime] = datetime.now,
    ) -> None:
        """`full_duplex` goes on hearing while a reply sounds, so that it can be interrupted.

        `overlap` says what is left out, with the same models and the same endpoint decisions, to
        measure what it is worth. `detector` stands in for one with the configured settings, and
        `conversation` is one to be gone on with; whoever gives it closes it.
        """
        self._engines = engines
        self._microphone = microphone
        self._config = config
        self._show = show
        self._wall_clock = wall_clock
        self._own = conversation is None
        self._conversation = conversation or engines.llm.conversation()
        self._player = Player(speaker)
        self._resources = Resources(engines, self._conversation, self._player, overlap)
        self._history = History(self._conversation, self._player)
        self._hearing = Hearing(
            engines.vad,
            detector or TurnDetector(config.turns),
            config.turns,
            engines.turn.window_s if engines.turn else 0.0,
        )
        guesses = config.turns.max_guesses
        usual = 0 if engines.llm.metered else MAX_GUESSES
        most = usual if guesses == "auto" else guesses
        self._core = Core(
            Settings(config.turns, language(config.asr.language)),
            Abilities(
                prefills=overlap.prefill,
                recognises=overlap.stages,
                guesses=most if overlap.early_reply else 0,
                full_duplex=full_duplex,
                ear_ms=engines.turn.silence_ms if engines.turn else None,
            ),
            engines.llm.calibrations,
        )
        self._work: dict[int, Work] = {}
        """What runs, by the turn that it is for."""
        self._listening: Work | None = None
        """The turn that is being heard."""
        self._told: deque[inputs.Input] = deque()
        self._deciding = False
        self._answering: int | None = None
        """The turn that a client's last request was about."""
        self._timers = 0
        self._tasks: TaskGroup | None = None

    async def run(self) -> None:
        """Converse until the microphone has finished and every turn is over."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            tasks.start_soon(self._play)
            async with aclosing(self._microphone.frames()) as frames:
                async for frame in frames:
                    await self._hear(frame)
                    if self._microphone.finished and self._listening is None:
                        break
            while self._work:
                await next(reversed(self._work.values())).changed.wait()
            if self._timers:
                self._show(Notice(f"{self._timers} timer(s) end with this session"))
            tasks.cancel_scope.cancel()
        if self._own:  # what a step that was called off still computes goes before
            await self._engines.llm_runner.call(self._conversation.close)

    # ---- what others than the user's voice ask for, while the session runs

    def conduct(self, options: Options, *, answers: bool, interruptible: bool) -> None:
        """From now on replies are as `options` say, a turn is answered when it ends or only when
        `respond` asks for it, and a sound of the user's may interrupt or not."""
        self._tell(inputs.Change(reply=options, answers=answers, interruptible=interruptible))

    @property
    def language(self) -> Language:
        """What the user speaks, from the next turn on; `AUTO` until a turn of theirs tells."""
        return self._core.settings.language

    @language.setter
    def language(self, spoken: Language) -> None:
        self._tell(inputs.Change(language=spoken))

    def listen(self, detector: Detector, policy: TurnConfig) -> None:
        """Find turns in another way from now on; a turn that is being heard is forgotten."""
        self._forget()
        self._hearing.listen(detector, policy)
        self._tell(inputs.Change(policy=policy))

    def forget(self) -> None:
        """The turn that is being heard has never been, and no other has what was heard so far."""
        self._forget()
        self._hearing.forget()

    def end_turn(self, ended: TurnEnded) -> bool:
        """The turn that is being heard is over; False where there is none."""
        if self._listening is None:
            return False
        self._tell(self._noted(ended, anyio.current_time()))
        return True

    def write(self, text: str, options: Options | None = None) -> int | None:
        """The user has written `text`: a turn of its own. Returns its number."""
        return self._request(inputs.Write(text, options))

    def answer_calls(
        self, returned: Sequence[Returned], options: Options | None = None
    ) -> int | None:
        """Foreign tools have returned what one reply called them for: go on with its turn."""
        returned = self._history.completed(returned)
        return self._request(inputs.BringResults(tuple(returned), options))

    def respond(self, options: Options | None = None) -> int | None:
        """Answer the newest turn that is over: its number, if it has not been answered."""
        return self._request(inputs.Respond(options))

    def cancel(self) -> int | None:
        """End the reply that is being thought or heard: the number of its turn, if there is one."""
        return self._request(inputs.Cancel())

    def rewrite(self, rewritten: Callable[[], None]) -> None:
        """Before anything else is read, do to the conversation what `rewritten` does."""
        self._tell(inputs.Rewrite(rewritten))

    def _forget(self) -> None:
        self._listening = None
        self._tell(inputs.Forget())

    def _request(self, told: inputs.Input) -> int | None:
        self._answering = None
        self._tell(told)
        return self._answering

    # ---- hearing: only a slow voice activity detection is waited for, and by the next frame alone

    async def _hear(self, frame: AudioFrame) -> None:
        arrived = anyio.current_time()
        runner = self._engines.vad_runner
        if runner is None:
            judged = self._hearing.judge(frame)
        else:
            judged = await runner.call(partial(self._hearing.judge, frame))
        now = anyio.current_time()
        if self._listening is not None and self._listening.transcriber is not None:
            self._listening.transcriber.feed(frame)
        for event in self._hearing.feed(judged, arrived):
            self._tell(self._noted(event, now))
        if self._listening is not None:
            self._tell(inputs.Frame(frame.end))
        if self._listening is not None:
            self._listening.wake()

    def _noted(self, event: TurnEvent, now: float) -> inputs.Detected:
        """What the detector has found; the recogniser has learned of it."""
        if isinstance(event, SpeechStarted):
            return inputs.Detected(event, self._hearing.when(event.speech_start))
        work = self._listening
        assert work is not None, "the detector begins a turn before anything happens in it"
        ended = isinstance(event, TurnEnded)
        if ended:
            self._listening = None
        if work.over:  # it has failed meanwhile
            return inputs.Detected(event, now)
        at = now
        if isinstance(event, SpeechPaused | TurnEnded):
            at = self._hearing.when(event.speech_end)
        turn = self._core.turn(work.turn)
        assert turn is not None, "it is not over"
        work.hear(event, at, now, anew=turn.dismissed, whole=turn.detects)
        return inputs.Detected(event, at, work.words)

    async def _play(self) -> None:
        """Play what is committed, and tell what begins to sound."""
        async with aclosing(self._player.run()) as clauses:
            async for clause in clauses:
                self._show(clause)
                if (turn := self._playing) is not None:
                    self._tell(inputs.Sounding(turn))

    @property
    def _playing(self) -> int | None:
        """The turn whose reply the player has."""
        works = self._work.values()
        return next((one.turn for one in works if one.recorder is self._player.recorder), None)

    # ---- deciding: what is reported goes to the core, and what it answers with is done

    def _tell(self, told: inputs.Input) -> None:
        """Report something, and do what follows from it before anything else is reported."""
        self._told.append(told)
        if self._deciding:
            return
        self._deciding = True
        try:
            while self._told:
                now = anyio.current_time()
                if self._core.contested:
                    self._core.receive(self._played(), now)
                for action in self._core.receive(self._told.popleft(), now):
                    self._act(action)
                if not self._told and not self._core.caught_up:
                    self._told.append(inputs.CaughtUp())
        finally:
            self._deciding = False

    def _played(self) -> Played:
        player, turn = self._player, self._playing
        return Played(
            -1 if turn is None else turn,
            player.heard().words,
            player.recorder.at(Mark.FIRST_SOUND),
            player.said_a_clause,
        )

    @singledispatchmethod
    def _act(self, action: actions.Action) -> None:
        """Do one of the things that the core asks for."""
        raise AssertionError(f"nobody does {action}")

    @_act.register
    def _begin_turn(self, action: actions.Begin) -> None:
        recorder = Recorder(action.number)
        now = anyio.current_time()
        transcriber = None
        if action.started is not None:
            recorder.mark(Mark.SPEECH_START, self._hearing.when(action.started.speech_start))
            transcriber = StreamingTranscriber(
                action.number,
                action.started,
                self._hearing.recent,
                self._config.asr,
                self._engines.asr.max_window_s,
            )
        work = Work(action.turn, recorder, transcriber)
        if action.started is not None:
            self._listening, self._hearing.silence_ms = work, None
        else:
            work.end()
            for mark in (Mark.ENDPOINT, Mark.TRANSCRIPT_FINAL):  # nobody spoke: no SPEECH_END
                recorder.mark(mark, now)
        if transcriber is not None:
            partials, known = self._resources.overlap.stages, partial(self._core.turn, action.turn)
            self._do(work, recognise(work, self._engines, known, partials=partials))
        self._work[action.turn] = work
        assert self._tasks is not None, "the session runs"
        self._tasks.start_soon(self._run, work)

    @_act.register
    def _end_after(self, action: actions.EndAfter) -> None:
        self._hearing.silence_ms = action.silence_ms
        if self._listening is not None and self._listening.turn == action.turn:
            # The silence that there is may be enough by now.
            now = anyio.current_time()
            self._told.extend(self._noted(event, now) for event in self._hearing.between())

    @_act.register
    def _begin_judging(self, action: actions.JudgeSound) -> None:
        model, work, recent = self._engines.turn, self._work[action.turn], self._hearing.recent
        assert model is not None and work.transcriber is not None, "there is an ear, and a voice"
        start = max(work.transcriber.start, recent.end - samples(1000 * model.window_s))
        pcm = recent.read(max(start, recent.start), recent.end)
        self._do(work, judge_sound(work, self._engines, action.since, pcm))

    @_act.register
    def _begin_reading(self, action: actions.ReadWords) -> None:
        work = self._work[action.turn]
        self._do(work, read(work, self._engines, self._conversation, action.text))

    @_act.register
    def _begin_rewriting(self, action: actions.RewriteHistory) -> None:
        work = self._work[action.turn]
        self._do(work, rewrite(self._engines, action.rewrite))

    @_act.register
    def _start_reply(self, action: actions.StartReply) -> None:
        work = self._work[action.turn]
        work.reply = Reply(action, work.recorder, self._resources, Gate(urgent=work.ended))
        work.reply.begin()
        work.begin(partial(self._reply, work, work.reply))

    @_act.register
    def _call_tool(self, action: actions.CallTool) -> None:
        self._reply_of(action.turn).thinking.answer(action.call, self._call(action.call))

    @_act.register
    def _commit(self, action: actions.Commit) -> None:
        self._show_all(self._reply_of(action.turn).commit())

    @_act.register
    def _drop(self, action: actions.Drop) -> None:
        self._reply_of(action.turn).gate.drop()

    @_act.register
    def _hesitate(self, action: actions.Hesitate) -> None:
        self._reply_of(action.turn).gate.hesitate(action.seconds)

    @_act.register
    def _pause(self, action: actions.Pause) -> None:
        self._player.pause()
        self._reply_of(action.turn).gate.suspend()

    @_act.register
    def _resume(self, action: actions.Resume) -> None:
        self._reply_of(action.turn).gate.resume()
        self._player.resume()

    @_act.register
    def _stop(self, action: actions.Stop) -> None:
        # First: a reply that is stopped would take itself for played.
        self._work[action.turn].call_off()
        if action.audible:
            self._player.stop()

    @_act.register
    def _finish(self, action: actions.Finish) -> None:
        work = self._work.pop(action.turn)
        outcome, heard = self._history.settle(work.reply, action)
        if read := self._history.newly_read():
            work.recorder.count("tokens_read", read)
        work.recorder.seed = self._conversation.seed
        work.finish()
        self._show(work.recorder.trace(outcome, heard))

    @_act.register
    def _show_event(self, action: actions.Show) -> None:
        self._show(action.event)

    @_act.register
    def _record(self, action: actions.Record) -> None:
        now = anyio.current_time()
        recorder = self._work[action.turn].recorder
        recorder.span(Lane.VAD, action.name, action.since, now, **action.facts)

    @_act.register
    def _count(self, action: actions.Count) -> None:
        self._work[action.turn].recorder.count(action.counter)

    @_act.register
    def _note_answering(self, action: actions.Answering) -> None:
        self._answering = action.number

    @_act.register
    def _hold_microphone(self, action: actions.HoldMicrophone) -> None:
        self._microphone.hold()

    @_act.register
    def _release_microphone(self, action: actions.ReleaseMicrophone) -> None:
        self._microphone.release()

    def _reply_of(self, turn: int) -> Reply:
        reply = self._work[turn].reply
        assert reply is not None, "it has been begun"
        return reply

    # ---- the work of a turn

    async def _run(self, work: Work) -> None:
        """Do what is to be done for a turn. A stage that fails ends its turn, never the session."""
        try:
            await work.run()
        except Exception as error:
            while isinstance(error, ExceptionGroup):
                error = error.exceptions[0]
            self._show(Notice(f"the reply failed: {_reason(error, work.recorder.turn)}"))
            self._tell(inputs.Failed(work.turn))
        if not work.over:
            self._tell(inputs.Stopped(work.turn))

    def _do(self, work: Work, job: Reports) -> None:
        work.begin(partial(self._report, job))

    async def _report(self, job: Reports) -> None:
        """Do a job, and tell what it finds."""
        async with aclosing(job) as found:
            async for told in found:
                self._tell(told)

    async def _reply(self, work: Work, reply: Reply) -> None:
        said = await reply.run(self._thoughts(work, reply), work.voiced)
        self._tell(inputs.Replied(work.turn, dropped=not said))

    async def _thoughts(self, work: Work, reply: Reply) -> AsyncGenerator[TokenBurst, None]:
        """What is thought in a reply; it is told here on its way to be spoken."""
        begun, first_of_all, thinking = anyio.current_time(), True, reply.thinking
        async with aclosing(thinking.run()) as thoughts:
            async for thought in thoughts:
                if first_of_all:
                    self._tell(has_read(work, self._conversation, reply.asked.text, begun))
                    first_of_all = False
                match thought:
                    case Calls():
                        self._tell(inputs.Called(work.turn, thought.calls))
                    case ToolCall(problem=problem) if problem:
                        pass  # nobody can call that
                    case TokenBurst() | ToolCall():
                        self._show_all(reply.shows(thought))
                if isinstance(thought, TokenBurst):
                    yield thought
        if thinking.instead:
            text = f" {thinking.instead}" if thinking.said else thinking.instead
            self._show_all(reply.shows(TokenBurst(work.recorder.turn, (), text)))

    def _show_all(self, events: Iterable[Event]) -> None:
        for event in events:
            self._show(event)

    # ---- tools

    def _call(self, call: ToolCall) -> str:
        if call.problem:
            self._show(Notice(f"the model wrote a call that cannot be read: {call.problem}"))
            return json.dumps({"error": f"the call cannot be read: {call.problem}"})
        result = run_tool(call.name, call.arguments, self._wall_clock())
        if result.rings_after:
            assert self._tasks is not None, "the session runs"
            self._tasks.start_soon(self._ring, result)
        return result.text

    async def _ring(self, result: ToolResult) -> None:
        """Tell the user when a timer is over."""
        self._timers += 1
        await anyio.sleep(result.rings_after)
        self._timers -= 1
        self._show(Notice(result.rings))


def _reason(error: Exception, turn: int) -> str:
    """What the user is told of an error; the log has the rest."""
    if isinstance(error, VoiceloopError):
        logger.warning("turn %d failed: %s", turn, error.message)
        return error.message
    logger.error("turn %d failed", turn, exc_info=error)
    return repr(error)
