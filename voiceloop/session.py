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
from collections.abc import Callable, Coroutine, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial, singledispatchmethod
from typing import Any

import anyio
from anyio.abc import TaskGroup

from voiceloop.asr.stream import StreamingTranscriber
from voiceloop.audio import SPEECH_RATE, samples
from voiceloop.config import Config, TurnConfig
from voiceloop.devices import Microphone, Speaker
from voiceloop.dialogue.core import Abilities, Core
from voiceloop.dialogue.state import Options, Played, Returned, Settings, Words
from voiceloop.dialogue.vocabulary import (
    Action,
    Answering,
    Begin,
    BringResults,
    Cancel,
    Change,
    Closed,
    Commit,
    Count,
    Drop,
    EndAfter,
    Failed,
    Finish,
    Forget,
    Frame,
    Heard,
    Hesitate,
    HoldMicrophone,
    Input,
    JudgeSound,
    LanguageDetected,
    Pause,
    Read,
    ReadWords,
    Recognised,
    Record,
    ReleaseMicrophone,
    Replied,
    Respond,
    Resume,
    Rewrite,
    RewriteHistory,
    Rewritten,
    Show,
    Sounding,
    SoundJudged,
    StartReply,
    Stop,
    Stopped,
    Write,
)
from voiceloop.engines import Conversation, Engines, first
from voiceloop.errors import VoiceloopError
from voiceloop.hearing import Hearing
from voiceloop.languages import Language, language
from voiceloop.player import Player
from voiceloop.reply import EVERYTHING, Overlap, Reply, Stage, Voiced
from voiceloop.runner import FIRST, LATER
from voiceloop.tools import ToolResult, run_tool
from voiceloop.trace import Lane, Mark, Recorder
from voiceloop.turns import (
    Detector,
    SpeechPaused,
    SpeechResumed,
    SpeechStarted,
    TurnDetector,
    TurnEnded,
    TurnEvent,
)
from voiceloop.types import AudioFrame, Clause, Event, Notice, ToolCall, Transcript

logger = logging.getLogger(__name__)

SURE_OF_LANGUAGE = 0.8
"""Probability at which a turn tells the language of all that come: Whisper base took German and
Spanish for other languages at up to 0.64."""
MAX_GUESSES = 6
"""Replies begun before the end of a turn, where that costs nothing but time."""

Job = Callable[[], Coroutine[Any, Any, None]]


@dataclass(slots=True, eq=False)
class Work:
    """What runs for a turn, from its beginning to its end."""

    turn: int
    """Its id."""
    recorder: Recorder
    transcriber: StreamingTranscriber | None
    """None where nobody speaks."""
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    jobs: deque[Job] = field(default_factory=deque[Job])
    """What is to be begun."""
    changed: anyio.Event = field(default_factory=anyio.Event)
    """Set, and replaced, when there is audio, a job or an end to look at."""
    ended: bool = False
    """The user has finished."""
    finished: bool = False
    """The turn is over."""
    newest: Transcript | None = None
    reply: Reply | None = None
    voiced: Voiced = field(default_factory=Voiced)
    """Audio of replies that were dropped."""
    again: bool = False
    """It goes on with a turn whose reply called tools."""

    def wake(self) -> None:
        """Let its tasks look again."""
        self.changed.set()
        self.changed = anyio.Event()

    def urgency(self) -> int:
        """Priority of what is done for the turn: while the user may go on, it is a guess."""
        return FIRST if self.ended else LATER

    @property
    def words(self) -> Words:
        """What the user has said by now."""
        if self.transcriber is None:
            return Words(self.newest)
        return Words(self.newest, self.transcriber.guess, self.transcriber.hypothesis)


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
        detector: Detector | None = None,
        conversation: Conversation | None = None,
        foreign: Callable[[str], bool] = lambda tool: False,
        wall_clock: Callable[[], datetime] = datetime.now,
    ) -> None:
        """`full_duplex` goes on hearing while a reply sounds, so that it can be interrupted.

        `overlap` says what is left out, with the same models and the same endpoint decisions, to
        measure what it is worth. `detector` stands in for one with the configured settings, and
        `conversation` is one to be gone on with; whoever gives it closes it. A tool that is
        `foreign` is called by whoever is shown the call, and `answer_calls` brings its result.
        """
        self._engines = engines
        self._microphone = microphone
        self._config = config
        self._show = show
        self._overlap = overlap
        self._wall_clock = wall_clock
        self._foreign = foreign
        self._own = conversation is None
        self._conversation = conversation or engines.llm.conversation()
        self._tokens_read = self._conversation.tokens_read
        self._player = Player(speaker, on_clause=self._note_clause)
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
        self._heard: Work | None = None
        """The turn that is being heard."""
        self._silence_ms: int | None = None
        """What ends it."""
        self._told: deque[Input] = deque()
        self._deciding = False
        self._answering: int | None = None
        """The turn that a client's last request was about."""
        self._timers = 0
        self._called: Sequence[tuple[ToolCall, str | None]] = ()
        """The calls that the last reply ended with, and the results that there are."""
        self._called_after = 0
        """Tokens of the last reply: where it called a foreign tool, those before the rest of it."""
        self._stage: Stage | None = None
        self._tasks: TaskGroup | None = None

    async def run(self) -> None:
        """Converse until the microphone has finished and every turn is over."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            self._stage = Stage(
                self._engines,
                self._conversation,
                self._player,
                self._show,
                self._call_tool,
                self._overlap,
            )
            tasks.start_soon(self._player.run)
            async with aclosing(self._microphone.frames()) as frames:
                async for frame in frames:
                    self._hear(frame)
                    if self._microphone.finished and self._heard is None:
                        break
            while self._work:
                await next(reversed(self._work.values())).changed.wait()
            if self._timers:
                self._show(Notice(f"{self._timers} timer(s) end with this session"))
            tasks.cancel_scope.cancel()
        if self._own:
            self._conversation.close()

    # ---- what others than the user's voice ask for, while the session runs

    def conduct(self, options: Options, *, answers: bool, interruptible: bool) -> None:
        """From now on replies are as `options` say, a turn is answered when it ends or only when
        `respond` asks for it, and a sound of the user's may interrupt or not."""
        self._set(reply=options, answers=answers, interruptible=interruptible)

    @property
    def language(self) -> Language:
        """What the user speaks, from the next turn on; `AUTO` until a turn of theirs tells."""
        return self._core.settings.language

    @language.setter
    def language(self, spoken: Language) -> None:
        self._set(language=spoken)

    def listen(self, detector: Detector, policy: TurnConfig) -> None:
        """Find turns in another way from now on; a turn that is being heard is forgotten."""
        self._tell(Forget())
        self._hearing.listen(detector, policy)
        self._set(policy=policy)

    def forget(self) -> None:
        """The turn that is being heard has never been, and no other has what was heard so far."""
        self._tell(Forget())
        self._hearing.forget()

    def end_turn(self, ended: TurnEnded) -> bool:
        """The turn that is being heard is over; False where there is none."""
        if self._heard is None:
            return False
        self._note_voice(ended, anyio.current_time())
        return True

    def write(self, text: str, options: Options | None = None) -> int | None:
        """The user has written `text`: a turn of its own. Returns its number."""
        return self._request(Write(text, options))

    def answer_calls(
        self, returned: Sequence[Returned], options: Options | None = None
    ) -> int | None:
        """Foreign tools have returned what one reply called them for: go on with its turn."""
        given = {call.call_id: result for call, result in returned}
        if given.keys() <= {call.call_id for call, _ in self._called}:
            # Tools of ours that were called beside them have returned already.
            whole = [(call, given.get(call.call_id, result)) for call, result in self._called]
            returned = [(call, result) for call, result in whole if result is not None]
        return self._request(BringResults(tuple(returned), options))

    def respond(self, options: Options | None = None) -> int | None:
        """Answer the newest turn that is over: its number, if it has not been answered."""
        return self._request(Respond(options))

    def cancel(self) -> int | None:
        """End the reply that is being thought or heard: the number of its turn, if there is one."""
        return self._request(Cancel())

    def rewrite(self, rewritten: Callable[[], None]) -> None:
        """Before anything else is read, do to the conversation what `rewritten` does."""
        self._tell(Rewrite(rewritten))

    def _request(self, told: Input) -> int | None:
        self._answering = None
        self._tell(told)
        return self._answering

    def _set(self, **changed: Any) -> None:
        self._tell(Change(replace(self._core.settings, **changed)))

    # ---- hearing: everything here is synchronous, so no frame is ever late

    def _hear(self, frame: AudioFrame) -> None:
        now = anyio.current_time()
        if self._heard is not None and self._heard.transcriber is not None:
            self._heard.transcriber.feed(frame)
        for event in self._hearing.feed(frame, now, lambda: self._silence_ms):
            self._note_voice(event, now)
        if self._heard is not None:
            self._tell(Frame(frame.end))
        if self._heard is not None:
            self._heard.wake()

    def _note_voice(self, event: TurnEvent, now: float) -> None:
        """The detector has found something; the recogniser learns of it first."""
        if isinstance(event, SpeechStarted):
            self._tell(Heard(event, self._hearing.when(event.speech_start)))
            return
        work = self._heard
        assert work is not None, "the detector begins a turn before anything happens in it"
        if work.finished:  # it has failed while it was heard
            self._heard = None if isinstance(event, TurnEnded) else work
            self._tell(Heard(event, now))
            return
        transcriber, recorder = work.transcriber, work.recorder
        assert transcriber is not None, "it is heard"
        match event:
            case SpeechResumed():
                turn = self._core.turn(work.turn)
                dismissed, detects = (turn.dismissed, turn.detects) if turn else (False, False)
                transcriber.resume(event, anew=dismissed, whole=detects)
                recorder.retract(Mark.PAUSE, Mark.SPEECH_END)
                at = now
            case SpeechPaused():
                transcriber.pause(event)
                at = self._hearing.when(event.speech_end)
                recorder.retract(Mark.PAUSE, Mark.SPEECH_END)
                recorder.mark(Mark.SPEECH_END, at)
                recorder.mark(Mark.PAUSE, now)
            case TurnEnded():
                work.ended = True
                at = self._hearing.when(event.speech_end)
                recorder.retract(Mark.SPEECH_END)  # a pause tells it before all is known
                recorder.mark(Mark.SPEECH_END, at)
                recorder.mark(Mark.ENDPOINT, now)
                recorder.speech_end = event.speech_end
                if final := transcriber.end(event):
                    self._note_transcript(work, final)
                self._heard = None
        self._tell(Heard(event, at, work.words))
        work.wake()

    def _note_transcript(self, work: Work, transcript: Transcript) -> None:
        """Take down a transcript; whoever decides is told of it by the caller."""
        now = anyio.current_time()
        work.newest = transcript
        if transcript.text:
            work.recorder.mark(Mark.FIRST_PARTIAL, now)
        if transcript.final:
            work.recorder.mark(Mark.TRANSCRIPT_FINAL, now)
            if work.transcriber is not None:
                work.recorder.count("retracted_words", work.transcriber.retracted)

    def _note_clause(self, clause: Clause) -> None:
        self._show(clause)
        for work in self._work.values():
            if work.reply is not None and work.recorder is self._player.recorder:
                self._tell(Sounding(work.turn))

    # ---- deciding: what is reported goes to the core, and what it answers with is done

    def _tell(self, told: Input) -> None:
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
        finally:
            self._deciding = False

    def _played(self) -> Played:
        work = next(
            (one for one in self._work.values() if one.recorder is self._player.recorder), None
        )
        return Played(
            work.turn if work else -1,
            self._player.heard().words,
            self._player.recorder.at(Mark.FIRST_SOUND),
            self._player.said_a_clause,
        )

    @singledispatchmethod
    def _act(self, action: Action) -> None:
        """Do one of the things that the core asks for."""
        raise NotImplementedError(action)

    @_act.register
    def _(self, action: Begin) -> None:
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
            self._heard, self._silence_ms = work, None
        else:
            work.ended = True
            for mark in (Mark.ENDPOINT, Mark.TRANSCRIPT_FINAL):  # nobody spoke: no SPEECH_END
                recorder.mark(mark, now)
        self._work[action.turn] = work
        assert self._tasks is not None, "the session runs"
        self._tasks.start_soon(self._run, work)

    @_act.register
    def _(self, action: EndAfter) -> None:
        self._silence_ms = action.silence_ms
        if self._heard is not None and self._heard.turn == action.turn:
            # The silence that there is may be enough by now.
            for event in self._hearing.between(action.silence_ms):
                self._note_voice(event, anyio.current_time())

    @_act.register
    def _(self, action: JudgeSound) -> None:
        model, work, recent = self._engines.turn, self._work[action.turn], self._hearing.recent
        assert model is not None and work.transcriber is not None, "there is an ear, and a voice"
        start = max(work.transcriber.start, recent.end - samples(1000 * model.window_s))
        pcm = recent.read(max(start, recent.start), recent.end)
        self._begin(work, partial(self._judge_sound, work, action.since, pcm))

    @_act.register
    def _(self, action: ReadWords) -> None:
        work = self._work[action.turn]
        self._begin(work, partial(self._read, work, action.text))

    @_act.register
    def _(self, action: RewriteHistory) -> None:
        work = self._work[action.turn]
        self._begin(work, partial(self._rewrite, action.rewrite))

    @_act.register
    def _(self, action: StartReply) -> None:
        work, options = self._work[action.turn], action.options
        assert self._stage is not None
        work.again = bool(action.returned)
        work.reply = Reply(
            action.text,
            work.recorder,
            self._stage,
            work.voiced,
            work.urgency,
            anew=action.revises,
            returned=action.returned,
            spoken=options.spoken,
            voice=options.voice,
            most=options.most_tokens,
            read=partial(self._note_read, work, action.text, anyio.current_time()),
        )
        self._begin(work, partial(self._reply, work, work.reply))

    @_act.register
    def _(self, action: Commit) -> None:
        self._reply_of(action.turn).commit()

    @_act.register
    def _(self, action: Drop) -> None:
        self._reply_of(action.turn).cancel()

    @_act.register
    def _(self, action: Hesitate) -> None:
        self._reply_of(action.turn).hesitate(action.seconds)

    @_act.register
    def _(self, action: Pause) -> None:
        self._player.pause()
        self._reply_of(action.turn).suspend()

    @_act.register
    def _(self, action: Resume) -> None:
        self._reply_of(action.turn).resume()
        self._player.resume()

    @_act.register
    def _(self, action: Stop) -> None:
        # First: a reply that is stopped would take itself for played.
        self._work[action.turn].scope.cancel()
        if action.heard:
            self._player.stop()

    @_act.register
    def _(self, action: Finish) -> None:
        work = self._work.pop(action.turn)
        work.finished = True
        outcome, heard = action.outcome, ""
        if (reply := work.reply) is not None:
            if reply.instead is not None:
                if outcome == "done":
                    outcome, heard = "silent", reply.instead
                if not (reply.called or work.again):
                    self._conversation.heard(0)  # the model has said nothing of it
            elif outcome == "done" and not reply.too_long:
                heard = reply.said.strip()
            else:
                whole = reply.committed and (outcome == "done" or not reply.spoken)
                tokens = reply.tokens if whole else self._player.stop().tokens
                if work.again and tokens:
                    tokens += self._called_after
                heard = self._conversation.heard(0 if action.forgotten else tokens).strip()
                if outcome == "failed":
                    heard = f"{heard} {reply.apology}".strip()
            self._called_after, self._called = reply.tokens, reply.called
        read, self._tokens_read = self._tokens_read, self._conversation.tokens_read
        if self._tokens_read > read:
            work.recorder.count("tokens_read", self._tokens_read - read)
        work.recorder.seed = self._conversation.seed
        work.scope.cancel()  # nobody waits for what the ear makes of it
        work.wake()
        self._show(work.recorder.trace(outcome, heard))
        self._told.append(Closed(action.turn))

    @_act.register
    def _(self, action: Show) -> None:
        self._show(action.event)

    @_act.register
    def _(self, action: Record) -> None:
        now = anyio.current_time()
        recorder = self._work[action.turn].recorder
        recorder.span(Lane.VAD, action.name, action.since, now, **action.facts)

    @_act.register
    def _(self, action: Count) -> None:
        self._work[action.turn].recorder.count(action.counter)

    @_act.register
    def _(self, action: Answering) -> None:
        self._answering = action.number

    @_act.register
    def _(self, action: HoldMicrophone) -> None:
        self._microphone.hold()

    @_act.register
    def _(self, action: ReleaseMicrophone) -> None:
        self._microphone.release()

    def _reply_of(self, turn: int) -> Reply:
        reply = self._work[turn].reply
        assert reply is not None, "it has been begun"
        return reply

    def _begin(self, work: Work, job: Job) -> None:
        work.jobs.append(job)
        work.wake()

    # ---- the work of a turn

    async def _run(self, work: Work) -> None:
        """Do what is to be done for a turn, until it is over or called off."""
        with work.scope:
            try:
                async with anyio.create_task_group() as tasks:
                    if work.transcriber is not None:
                        tasks.start_soon(self._recognise, work, work.transcriber)
                    while not work.finished:
                        changed = work.changed
                        while work.jobs:
                            tasks.start_soon(work.jobs.popleft())
                        await changed.wait()
                    tasks.cancel_scope.cancel()
            except Exception as error:
                # A stage that fails ends its turn, never the session.
                while isinstance(error, ExceptionGroup):
                    error = error.exceptions[0]
                if isinstance(error, VoiceloopError):
                    reason = error.message
                    logger.warning("turn %d failed: %s", work.recorder.turn, reason)
                else:
                    reason = repr(error)
                    logger.error("turn %d failed", work.recorder.turn, exc_info=error)
                self._show(Notice(f"the reply failed: {reason}"))
                self._tell(Failed(work.turn))
        if not work.finished:
            self._tell(Stopped(work.turn))

    async def _recognise(self, work: Work, transcriber: StreamingTranscriber) -> None:
        """Decode what the user says until every sample before the endpoint has been decoded."""
        asr, runner = self._engines.asr, self._engines.asr_runner
        while not (work.newest and work.newest.final):
            changed = work.changed
            job = transcriber.next_job() if work.ended or self._overlap.stages else None
            turn = self._core.turn(work.turn)
            if job is None or turn is None:
                await changed.wait()
                continue
            begun = anyio.current_time()
            urgency = first if job.final else work.urgency
            sure = False
            if turn.detects:
                code, probability = await runner.call(
                    partial(asr.detect_language, job.pcm), priority=urgency
                )
                sure = probability >= SURE_OF_LANGUAGE
                self._tell(LanguageDetected(work.turn, code))
                turn = self._core.turn(work.turn) or turn
            words = await runner.call(
                partial(
                    asr.transcribe,
                    job.pcm,
                    final=job.final,
                    timed=job.timed,
                    language=turn.language.code,
                ),
                priority=urgency,
            )
            name = "final" if job.final else "partial"
            text = " ".join(word.text for word in words)
            now, until_s = anyio.current_time(), job.end / SPEECH_RATE
            work.recorder.span(
                Lane.ASR, name, begun, now, words=len(words), text=text, until_s=until_s
            )
            self._note_transcript(work, transcriber.accept(job, words))
            self._tell(Recognised(work.turn, work.words, sure and bool(words) and job.final))

    async def _judge_sound(self, work: Work, since: int, pcm: Any) -> None:
        """Have a silence judged by the sound of the voice before it."""
        model, runner = self._engines.turn, self._engines.turn_runner
        assert model is not None and runner is not None, "there is an ear"
        begun = anyio.current_time()
        probability = await runner.call(
            partial(model.end_of_turn_probability, pcm), priority=work.urgency
        )
        now = anyio.current_time()
        work.recorder.span(Lane.VAD, "end by its sound?", begun, now, probability=probability)
        self._tell(SoundJudged(work.turn, since, probability))

    async def _read(self, work: Work, text: str) -> None:
        """Have the language model read what the user says."""
        begun = anyio.current_time()
        if text:
            work.recorder.mark(Mark.PREFILL_START, begun)
        steps = self._conversation.prefill(text, work.recorder.turn)
        runner = self._engines.llm_runner
        async with aclosing(runner.stream(steps, priority=work.urgency)) as chunks:
            async for _ in chunks:
                pass
        work.recorder.span(Lane.PREFILL, "prefill", begun, anyio.current_time(), text=text)
        self._note_read(work, text, begun)

    def _note_read(self, work: Work, text: str, begun: float) -> None:
        conversation = self._conversation
        probability = conversation.end_of_turn_probability()
        self._tell(Read(work.turn, text, probability, begun, conversation.exchanges))

    async def _rewrite(self, rewrite: Any) -> None:
        await self._engines.llm_runner.call(rewrite)
        self._tell(Rewritten(rewrite))

    async def _reply(self, work: Work, reply: Reply) -> None:
        said = await reply.run()
        self._tell(Replied(work.turn, dropped=not said))

    # ---- tools

    def _call_tool(self, call: ToolCall) -> str | None:
        if call.problem:
            self._show(Notice(f"the model wrote a call that cannot be read: {call.problem}"))
            return json.dumps({"error": f"the call cannot be read: {call.problem}"})
        if self._foreign(call.name):
            return None
        assert self._tasks is not None
        result = run_tool(call.name, call.arguments, self._wall_clock())
        if result.rings_after:
            self._tasks.start_soon(self._ring, result)
        return result.text

    async def _ring(self, result: ToolResult) -> None:
        """Tell the user when a timer is over."""
        self._timers += 1
        await anyio.sleep(result.rings_after)
        self._timers -= 1
        self._show(Notice(result.rings))
