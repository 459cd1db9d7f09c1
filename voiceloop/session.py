"""Session: carries out what the dialogue core decides, and tells it what comes of it.

Every stage yields reports; they go to the core (`dialogue.core`), and what it answers with is done
here, in order: decode, read, reply, pause, stop, cut the history, show. Nothing is decided here,
and nothing passes through here on its way from the microphone to the speaker: what the listener
hears ends in reports, and with what the core makes of them a reply begins. The work of each turn
runs in one task with one cancel scope.

The session knows no device and no model: microphone, speaker, engines and runners are given to it,
and all its waiting goes through anyio, so it runs the same on a virtual clock.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from contextlib import aclosing
from datetime import datetime
from functools import partial
from typing import Any

import anyio
from anyio.abc import TaskGroup

from voiceloop.asr.turns import Detector, TurnEnded
from voiceloop.audio.devices import Microphone, Speaker
from voiceloop.audio.player import Player
from voiceloop.config import Config, TurnConfig
from voiceloop.dialogue import actions, inputs
from voiceloop.dialogue.conversationstate import Abilities, ConversationState
from voiceloop.dialogue.core import receive
from voiceloop.dialogue.inputs import Reports
from voiceloop.dialogue.state import DialogueSettings, Options, ReplyProgress, Returned
from voiceloop.engines import Conversation, Engines
from voiceloop.errors import VoiceloopError
from voiceloop.languages import Language, language
from voiceloop.trace.record import Lane, Mark, Recorder
from voiceloop.turn.gate import Gate
from voiceloop.turn.history import History
from voiceloop.turn.jobs import play, read, recognise, rewrite
from voiceloop.turn.listener import Listener
from voiceloop.turn.observer import Observer
from voiceloop.turn.overlap import EVERYTHING, Overlap
from voiceloop.turn.reply import Reply
from voiceloop.turn.resources import Resources
from voiceloop.turn.skills import Skills, begun, wall_time
from voiceloop.turn.work import TurnTasks
from voiceloop.types import Event, Notice, Outcome, ToolCall

logger = logging.getLogger(__name__)

MAX_GUESSES = 6
"""Replies begun before the end of a turn, where that costs nothing but time."""


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
        skills: Skills | None = None,
        ends: bool = False,
        wall_clock: Callable[[], datetime] | None = None,
    ) -> None:
        """`full_duplex` goes on hearing while a reply sounds, so that it can be interrupted.

        `overlap` says what is left out, with the same models and the same endpoint decisions, to
        measure what it is worth. `detector` stands in for one with the configured settings, and
        `conversation` is one to be gone on with, with its `skills`; whoever gives it closes it.
        Where it `ends`, a goodbye that the user has heard is the end.
        """
        self._wall_clock = wall_clock or partial(wall_time, config.timezone)
        self._own = conversation is None
        conversation = conversation or begun(engines.llm, config, self._wall_clock())
        player = Player(speaker)
        skills = skills or Skills(paced=engines.tts.paces)
        player.gain = skills.voice.gain
        observer = Observer(conversation)
        self._resources = Resources(engines, conversation, observer, player, show, skills, overlap)
        self._ends = ends
        self._history = History(self._resources)
        self._listener = Listener(microphone, self._resources, config, detector)
        guesses = config.turns.max_guesses
        usual = 0 if engines.llm.metered else MAX_GUESSES
        most = usual if guesses == "auto" else guesses
        reply = Options(skills=config.llm.skills != "none")
        self._state = ConversationState(
            DialogueSettings(config.turns, language(config.asr.language), reply=reply),
            Abilities(
                prefills=overlap.prefill,
                recognises=overlap.stages,
                guesses=most if overlap.early_reply else 0,
                full_duplex=full_duplex,
                turn_model_ms=engines.turn.silence_ms if engines.turn else None,
            ),
            engines.llm.calibrations,
        )
        self._work: dict[int, TurnTasks] = {}
        """What runs, by the turn that it is for."""
        self._answering: int | None = None
        """The turn that a client's last request was about."""
        self._tasks: TaskGroup | None = None

    async def run(self) -> None:
        """Converse until the microphone has finished, or somebody has said goodbye, and every turn
        is over."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            tasks.start_soon(self._report, play(self._resources))
            tasks.start_soon(self._report, self._resources.skills.ringing())
            self._tell(inputs.Settled())
            await self._report(self._listener.run())
            while self._work:
                await next(reversed(self._work.values())).changed.wait()
            if lost := len(self._resources.skills.timers):
                self._resources.show(Notice(f"{lost} timer(s) end with this session"))
            tasks.cancel_scope.cancel()
        if self._own:  # what a step that was called off still computes goes before
            resources = self._resources
            await resources.engines.llm_runner.call(resources.conversation.close)

    # ---- what others than the user's voice ask for, while the session runs

    def conduct(
        self, options: Options, *, answers: bool, interruptible: bool, thinks: bool = True
    ) -> None:
        """From now on replies are as `options` say, a turn is answered when it ends or only when
        `respond` asks for it, and a sound of the user's may interrupt or not; or the language model
        `thinks` nothing, and a turn is over with its words."""
        self._tell(inputs.SettingsChanged(None, None, answers, interruptible, thinks, options))

    @property
    def words_heard(self) -> int:
        """How many words have been heard by now of the reply that sounds, as it is spoken."""
        return len(self._resources.player.heard().words)

    @property
    def language(self) -> Language:
        """What the user speaks, from the next turn on; `AUTO` until a turn of theirs tells."""
        return self._state.settings.language

    @language.setter
    def language(self, spoken: Language) -> None:
        self._tell(inputs.SettingsChanged(language=spoken))

    def listen(self, detector: Detector, policy: TurnConfig) -> None:
        """Find turns in another way from now on; a turn that is being heard is forgotten."""
        self._listener.listen(detector, policy)
        self._tell(inputs.Forget())
        self._tell(inputs.SettingsChanged(policy=policy))

    def forget(self) -> None:
        """The turn that is being heard has never been, and no other has what was heard so far."""
        self._listener.forget()
        self._tell(inputs.Forget())

    def end_turn(self, ended: TurnEnded) -> bool:
        """The turn that is being heard is over; False where there is none."""
        if self._listener.work is None:
            return False
        self._tell(self._listener.note(ended, anyio.current_time()))
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

    def cancel(self, turn: int | None = None) -> int | None:
        """End the reply that is being thought or heard, or only if it is that to `turn`: the number
        of its turn, if there is one."""
        return self._request(inputs.Cancel(turn))

    @property
    def idle(self) -> bool:
        """No turn has begun that is not over."""
        return not self._state.turns

    def rewrite(self, rewritten: Callable[[], None]) -> None:
        """Before anything else is read, do to the conversation what `rewritten` does."""
        self._tell(inputs.Rewrite(rewritten))

    def _request(self, told: inputs.Input) -> int | None:
        self._answering = None
        self._tell(told)
        return self._answering

    # ---- deciding: what is reported goes to the core, and what it answers with is done

    def _tell(self, told: inputs.Input) -> None:
        """Report something, do what follows from it, and report what comes of that at once."""
        reports = deque([told])
        while reports:
            for action in self._decide(reports.popleft()):
                if (found := self._act(action)) is not None:
                    reports.append(found)

    def _decide(self, told: inputs.Input) -> Sequence[actions.Action]:
        """What is to be done; what runs of each turn learns what the core makes of it by now."""
        now = anyio.current_time()
        if self._state.contested:
            receive(self._state, self._played(), now)
        asked = receive(self._state, told, now)
        for turn, work in self._work.items():
            work.known = self._state.turn(turn)
        return asked

    def _played(self) -> ReplyProgress:
        player = self._resources.player
        first_sound = player.recorder.at(Mark.FIRST_SOUND)
        return ReplyProgress(player.turn, player.heard().words, first_sound, player.said_a_clause)

    def _act(self, action: actions.Action) -> inputs.Input | None:
        """Do one of the things that the core asks for. Returns what is to be reported of it at
        once, if anything."""
        if isinstance(action, actions.ForTurn):
            return self._act_on_turn(action)
        if isinstance(action, actions.ForModel):
            self._let_model(action)
        elif isinstance(action, actions.ForReply):
            self._reply_of(action.turn).act(action)
        else:
            self._tell_others(action)
        return None

    def _act_on_turn(self, action: actions.ForTurn) -> inputs.Input | None:
        match action:
            case actions.Begin():
                self._begin(action)
            case actions.EndTurn():
                return self._listener.end_turn()
            case actions.JudgeSound():
                work = self._work[action.turn]
                self._do(work, self._listener.judge(work, action.since))
            case actions.CallTool():
                self._call_tool(action.call, self._reply_of(action.turn))
            case actions.Stop():
                # First: a reply that is stopped would take itself for played.
                self._work[action.turn].call_off()
                if action.audible:
                    self._resources.player.stop()
            case actions.Finish():
                self._finish(action)
                return inputs.Settled()
        return None

    def _let_model(self, action: actions.ForModel) -> None:
        """Have the language model do something, or leave it."""
        match action:
            case actions.ReadOpening():
                self._start(self._report, self._history.read(action))
            case actions.LeaveOpening():
                self._history.leave()
            case actions.ReadWords():
                work = self._work[action.turn]
                self._do(work, read(work, self._resources, action))
            case actions.RewriteHistory():
                self._do(self._work[action.turn], rewrite(self._resources, action.rewrite))
            case actions.StartReply():
                self._start_reply(action, self._work[action.turn])

    def _tell_others(self, action: actions.ForOthers) -> None:
        """Tell whoever watches, the record of a turn, a client that has asked, or the
        microphone."""
        match action:
            case actions.Show():
                self._resources.show(action.event)
            case actions.RecordDecision():
                now, recorder = anyio.current_time(), self._work[action.turn].recorder
                recorder.span(Lane.VAD, action.name, action.since, now, **action.facts)
            case actions.Count():
                self._work[action.turn].recorder.count(action.counter)
            case actions.Answering():
                self._answering = action.number
            case actions.HoldMicrophone():
                self._listener.microphone.hold()
            case actions.ReleaseMicrophone():
                self._listener.microphone.release()

    def _begin(self, action: actions.Begin) -> None:
        known, priority = self._state.turn(action.turn), self._history.begin()
        work = TurnTasks(action.turn, Recorder(action.number), known, priority)
        self._work[action.turn] = work
        if action.started is None:  # nobody speaks
            work.write(anyio.current_time())
        else:
            self._listener.begin(work, action.started)
            self._do(work, recognise(work, self._resources))
        self._start(self._run, work)

    def _finish(self, action: actions.Finish) -> None:
        work = self._work.pop(action.turn)
        outcome, heard = self._history.settle(work.reply, action)
        self._note(work.reply, outcome, heard)
        if read := self._history.newly_read():
            work.recorder.count("tokens_read", read)
        work.recorder.seed = self._resources.conversation.seed
        work.wake()
        self._resources.show(work.recorder.trace(outcome, heard))

    def _start_reply(self, action: actions.StartReply, work: TurnTasks) -> None:
        known = self._resources.skills.answer(action, self._wall_clock())
        gate = Gate(urgent=work.ended)
        work.reply = Reply(action, work.recorder, self._resources, gate, known)
        work.reply.begin()
        work.begin(partial(self._reply, work, work.reply))

    def _call_tool(self, call: ToolCall, reply: Reply) -> None:
        if call.problem:
            text = f"the model wrote a call that cannot be read: {call.problem}"
            self._resources.show(Notice(text))
        result = self._resources.skills.call(call, self._wall_clock(), reply.asked.language)
        reply.thinking.returned(call, result)

    def _note(self, reply: Reply | None, outcome: Outcome, heard: str) -> None:
        """Keep what was said, and end where that was goodbye."""
        if reply is None or not reply.gate.committed or outcome == "abandoned":
            return
        known, announced = reply.thinking.answer, reply.asked.announces
        self._resources.skills.note(reply.asked.text, heard, known)
        if announced and outcome == "interrupted" and not heard:
            self._tell(inputs.Rang(announced))
        if self._ends and known and known.ends and outcome == "done":
            self._listener.end()

    def _reply_of(self, turn: int) -> Reply:
        reply = self._work[turn].reply
        assert reply is not None, "it has been begun"
        return reply

    # ---- the work of a turn

    async def _run(self, work: TurnTasks) -> None:
        """Do what is to be done for a turn. A stage that fails ends its turn, never the session."""
        try:
            await work.run()
        except Exception as error:
            while isinstance(error, ExceptionGroup):
                error = error.exceptions[0]
            self._resources.show(Notice(f"the reply failed: {_reason(error, work.recorder.turn)}"))
            self._tell(inputs.Failed(work.turn))
        if not work.over:
            self._tell(inputs.Stopped(work.turn))

    def _start(self, job: Callable[..., Coroutine[Any, Any, None]], argument: object) -> None:
        assert self._tasks is not None, "the session runs"
        self._tasks.start_soon(job, argument)

    def _do(self, work: TurnTasks, job: Reports) -> None:
        work.begin(partial(self._report, job))

    async def _report(self, job: Reports) -> None:
        """Do a job, and tell what it finds."""
        async with aclosing(job) as found:
            async for told in found:
                self._tell(told)

    async def _reply(self, work: TurnTasks, reply: Reply) -> None:
        async with reply.run(work.voiced) as thought:
            await self._report(thought)
        self._tell(inputs.Replied(work.turn, dropped=reply.gate.scope.cancelled_caught))


def _reason(error: Exception, turn: int) -> str:
    """What the user is told of an error; the log has the rest."""
    if isinstance(error, VoiceloopError):
        logger.warning("turn %d failed: %s", turn, error.message)
        return error.message
    logger.error("turn %d failed", turn, exc_info=error)
    return repr(error)
