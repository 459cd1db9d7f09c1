"""Session: carries out the actions of the dialogue core, and passes it the reports of all stages.

Every stage reports by calling the session's `_send`, which it is given. The report goes to the core
(`dialogue.core`), which answers with actions: decode, read, reply, pause, stop, cut the history,
show. The session carries them out in order, and only then does the stage go on. The session
decides nothing, and no frame, word or token passes through it. The work of each turn runs in one
task with one cancel scope.

The session knows no device and no model: it is given the microphone, the speaker, the engines and
their runners. It waits only with anyio, so it runs the same on a virtual clock.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from datetime import datetime
from functools import partial
from typing import Any

import anyio
from anyio.abc import TaskGroup, TaskStatus

from voiceloop.asr.turns import Detector, TurnEnded
from voiceloop.audio.devices import Microphone, Speaker
from voiceloop.audio.player import Player
from voiceloop.dialogue import actions, inputs
from voiceloop.dialogue.conversationstate import Abilities, ConversationState
from voiceloop.dialogue.core import receive
from voiceloop.dialogue.state import DialogueSettings, Options, ReplyProgress, Returned
from voiceloop.engines import Conversation, Engines
from voiceloop.errors import VoiceloopError, first_cause
from voiceloop.languages import Language, language
from voiceloop.settings.config import Config, TurnConfig
from voiceloop.tools.results import ASKED, error
from voiceloop.tools.toolbox import NO_TOOLS, Toolbox
from voiceloop.trace.record import Lane, Mark, Recorder
from voiceloop.turn.history import History, SpokenExchange, finished, sounding
from voiceloop.turn.reply import Reply
from voiceloop.turn.resources import EVERYTHING, Overlap, Resources, load_rules
from voiceloop.turn.skills import Skills, begun, unusable, wall_time
from voiceloop.turn.speech import Gate
from voiceloop.turn.tasks import Listener, TurnTasks, call_tool, play, read, recognise
from voiceloop.types import Event, Notice, Outcome, StageSpan

logger = logging.getLogger(__name__)

MAX_GUESSES = 6
"""Maximum number of replies that are begun before the end of a turn if `turns.max_guesses` is
`auto`. With a metered model it is 0 instead."""


class Session:
    """One conversation. Call `run` once.

    Its attributes are the parts that it connects, and the options of its caller.
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
        skills: Skills | None = None,
        toolbox: Toolbox = NO_TOOLS,
        ends: bool = False,
        wall_clock: Callable[[], datetime] | None = None,
        greeting: str = "",
        kept: Callable[[SpokenExchange], None] | None = None,
        core: Callable[[ConversationState, inputs.Input, float], list[actions.Action]] = receive,
    ) -> None:
        """Prepare the conversation; `show` receives its events.

        With `full_duplex` the user is heard during a reply and can interrupt it. `overlap` can
        leave out parallel and early work, for measurements. `detector` replaces the speech detector
        of the settings. `conversation` continues an earlier conversation, and `skills` are those of
        that conversation; the caller closes it. By default a new one begins. The language model may
        call the tools in `toolbox`. With `ends`, the session ends when a goodbye has been spoken to
        the user. A `greeting` is spoken when the session begins. `kept` is called with each
        exchange that is over, if the conversation is kept for later. `wall_clock` returns the
        present date and time; by default those in `config.timezone`. `core` is `receive`, or a
        function that also records its calls.
        """
        load_rules(config.turns)
        self._core = core
        self._wall_clock = wall_clock or partial(wall_time, config.timezone)
        self._own = conversation is None
        conversation = conversation or begun(engines.llm, config, self._wall_clock(), toolbox)
        player = Player(speaker)
        skills = skills or Skills(paced=engines.tts.paces)
        player.gain = skills.voice.gain
        unfit = unusable(conversation, config, toolbox)
        usable = NO_TOOLS if unfit else toolbox
        self._resources = Resources(
            *(engines, conversation, player, self._send, show),
            skills=skills,
            toolbox=usable,
            overlap=overlap,
        )
        if self._own and unfit:
            show(Notice(unfit))
        self._persona = config.llm.system != "auto" or engines.llm.acts
        """Whether the language model says who it is."""
        self._ends = ends
        self._greeting = greeting
        self._kept = kept
        self._aside: list[StageSpan] = []
        """Work between turns. The record of the next turn to end will contain it."""
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
        """All work in progress, by turn."""
        self._answering: int | None = None
        """The number of the turn that the present request concerns; None if it concerns no turn."""
        self._tasks: TaskGroup | None = None
        self._lasting: TaskGroup | None = None
        """The task group of tools that outlive their reply; None before `run`."""

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Converse until the microphone ends or a goodbye was spoken.

        Then wait until all turns are over and all tools that outlive their reply have returned.
        `task_status` is started once requests can be made.
        """
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            async with anyio.create_task_group() as self._lasting:
                await self._converse(tasks, task_status)
            tasks.cancel_scope.cancel()
        if self._own:  # on the runner, so after any cancelled step that still runs
            resources = self._resources
            await resources.engines.llm_runner.call(resources.conversation.close)

    async def _converse(self, tasks: TaskGroup, task_status: TaskStatus[None]) -> None:
        tasks.start_soon(play, self._resources)
        tasks.start_soon(self._resources.skills.ring, self._send)
        if self._greeting:  # first, so that the model reads the history while it sounds
            self.announce(self._greeting)
        self._send(inputs.Settled())
        task_status.started()
        await self._listener.run()
        while self._work:
            await next(reversed(self._work.values())).changed.wait()
        if timers := len(self._resources.skills.timers):
            fate = "wait until this conversation goes on" if self._kept else "end with this session"
            self._resources.show(Notice(f"{timers} timer(s) {fate}"))

    # ---- requests of clients and programs, while the session runs

    def conduct(
        self, options: Options, *, answers: bool, interruptible: bool, thinks: bool = True
    ) -> None:
        """Change how turns are answered from now on.

        Replies follow `options`. Without `answers`, a turn is answered only after `respond`. With
        `interruptible`, a sound of the user may interrupt a reply. Without `thinks` the language
        model is not used, and a turn is over once its words are known.
        """
        self._send(inputs.SettingsChanged(None, None, answers, interruptible, thinks, options))

    @property
    def words_heard(self) -> int:
        """Return how many words of the sounding reply the user has heard so far."""
        return len(self._resources.player.heard().words)

    @property
    def conversation(self) -> Conversation:
        """Return the conversation of the language model: its token ids and caches."""
        return self._resources.conversation

    @property
    def sounding(self) -> SpokenExchange | None:
        """Return the exchange of the present reply, as far as the user has heard it.

        None if the reply is not committed, and once its turn is over.
        """
        player = self._resources.player
        work = self._work.get(player.turn)
        if work is None or work.reply is None or not work.reply.gate.committed:
            return None
        return sounding(work.reply, player.heard())

    def note_work(self, name: str, since: float, until: float, **facts: float | str) -> None:
        """Record work of the language model that belongs to no turn.

        `since` and `until` are in seconds of the event loop's clock. The work becomes part of the
        record of the next turn that ends.
        """
        self._aside.append(StageSpan(Lane.DECODE, name, since, until, facts))

    @property
    def language(self) -> Language:
        """Return the language of the user from the next turn on; `AUTO` until it is detected."""
        return self._state.settings.language

    @language.setter
    def language(self, spoken: Language) -> None:
        self._send(inputs.SettingsChanged(language=spoken.code))

    def listen(self, detector: Detector, policy: TurnConfig) -> None:
        """Replace the speech detector and the turn settings. The turn being heard is forgotten."""
        self._listener.listen(detector, policy)
        self._send(inputs.Forget())
        self._send(inputs.SettingsChanged(policy=policy))

    def forget(self) -> None:
        """Forget the turn that is being heard, and the audio that was heard so far."""
        self._listener.forget()
        self._send(inputs.Forget())

    @property
    def hears(self) -> bool:
        """Return whether a turn is being heard."""
        return self._listener.work is not None

    def end_turn(self, ended: TurnEnded) -> bool:
        """End the turn that is being heard, as `ended` says. Returns False if there is none."""
        if not self.hears:
            return False
        self._send(self._listener.note(ended, anyio.current_time()))
        return True

    def write(self, text: str, options: Options | None = None) -> int | None:
        """Take `text`, which the user has written, as a turn. Returns the number of the turn."""
        return self._request(inputs.Write(text, options))

    def answer_calls(
        self, returned: Sequence[Returned], options: Options | None = None
    ) -> int | None:
        """Continue a turn with the results of the client's tools that its reply called.

        Returns the number of the turn that is answered, if any.
        """
        returned = self._history.completed(returned)
        return self._request(inputs.BringResults(tuple(returned), options))

    def respond(self, options: Options | None = None) -> int | None:
        """Answer the newest turn that is over. Returns its number, or None if it has a reply."""
        return self._request(inputs.Respond(options))

    def cancel(self, turn: int | None = None) -> int | None:
        """End the current reply; with `turn`, only if it answers that turn.

        Returns the number of the turn that it answered, or None if no reply was ended.
        """
        return self._request(inputs.Cancel(turn))

    def announce(self, text: str) -> int | None:
        """Say `text` as soon as nothing else is being said.

        Returns the number of its turn, or None if the language model is not used (`conduct`).
        """
        return self._request(inputs.Announce(text))

    def repeat(self) -> None:
        """Say again what the user heard of the last reply, if there was one."""
        if heard := self._resources.skills.heard:
            self.announce(heard)

    @property
    def idle(self) -> bool:
        """Return whether no turn is open."""
        return not self._state.turns

    @property
    def expected(self) -> bool:
        """Return whether a turn is open that will be answered if words are found in it."""
        return any(turn.asks and turn.request.made for turn in self._state.turns)

    def rewrite(self, rewritten: Callable[[], None]) -> None:
        """Call `rewritten`, which edits the conversation, before the model reads anything more."""
        self._send(self._history.replace(rewritten))

    def _request(self, report: inputs.Input) -> int | None:
        self._answering = None
        self._send(report)
        return self._answering

    # ---- reports go to the core, and its actions are carried out

    def _send(self, report: inputs.Input) -> None:
        """Pass a report to the core and carry out the actions. Then pass on each report that
        follows from an action, in the same way."""
        reports = deque([report])
        while reports:
            for action in self._decide(reports.popleft()):
                if (found := self._act(action)) is not None:
                    reports.append(found)

    def _decide(self, report: inputs.Input) -> Sequence[actions.Action]:
        """Pass a report to the core and return its actions.

        The work of each turn gets the core's new view of the turn.
        """
        now = anyio.current_time()
        if self._state.contested or isinstance(report, inputs.Detected):
            self._core(self._state, self._played(), now)  # this requests nothing
        requested = self._core(self._state, report, now)
        for turn, work in self._work.items():
            work.known = self._state.turn(turn)
        return requested

    def _played(self) -> ReplyProgress:
        player = self._resources.player
        first_sound = player.recorder.at(Mark.FIRST_SOUND)
        heard = player.heard().words
        return ReplyProgress(
            player.turn, heard, first_sound, player.said_a_clause, player.silent_at
        )

    def _act(self, action: actions.Action) -> inputs.Input | None:
        """Carry out one action. Returns a report that follows from it at once, or None."""
        if isinstance(action, actions.ForTurn):
            return self._act_on_turn(action)
        if isinstance(action, actions.ForModel):
            self._act_on_model(action)
        elif isinstance(action, actions.ForReply):
            self._reply_of(action.turn).act(action)
        else:
            self._act_on_others(action)
        return None

    def _act_on_turn(self, action: actions.ForTurn) -> inputs.Input | None:
        match action:
            case actions.Begin():
                self._begin(action)
            case actions.EndTurn():
                return self._listener.end_turn()
            case actions.JudgeSound():
                work = self._work[action.turn]
                work.begin(self._listener.judge(work, action.since))
            case actions.CallTool():
                self._call_tool(action, self._reply_of(action.turn))
            case actions.Stop():
                # Before the player stops: otherwise the reply would count as played to its end.
                self._work[action.turn].call_off()
                if action.audible:
                    self._resources.player.stop()
            case actions.Finish():
                self._finish(action)
                return inputs.Settled()
        return None

    def _act_on_model(self, action: actions.ForModel) -> None:
        """Carry out an action for the language model."""
        match action:
            case actions.ReadOpening():
                self._start(self._history.read, action)
            case actions.LeaveOpening():
                self._history.leave()
            case actions.ReadWords():
                work = self._work[action.turn]
                work.begin(partial(read, work, self._resources, action))
            case actions.RewriteHistory():
                self._work[action.turn].begin(partial(self._history.rewrite, action))
            case actions.StartReply():
                self._start_reply(action, self._work[action.turn])

    def _act_on_others(self, action: actions.ForOthers) -> None:
        """Carry out an action for the viewer, a turn's record, a client or the microphone."""
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
            work.begin(partial(recognise, work, self._resources))
        self._start(self._run, work)

    def _finish(self, action: actions.Finish) -> None:
        work = self._work.pop(action.turn)
        outcome, heard = self._history.settle(work.reply, action)
        for one in self._aside:
            work.recorder.span(Lane(one.lane), one.name, one.start, one.end, **one.args)
        self._aside.clear()
        self._note(work.reply, outcome, heard)
        if read := self._history.newly_read():
            work.recorder.count("tokens_read", read)
        work.recorder.seed = self._resources.conversation.seed
        work.wake()
        self._resources.show(work.recorder.trace(outcome, heard))

    def _start_reply(self, action: actions.StartReply, work: TurnTasks) -> None:
        known = self._resources.skills.answer(
            action,
            self._wall_clock(),
            self._resources.toolbox.offered if action.options.own_tools else (),
            acts=self._resources.engines.llm.acts,
            persona=self._persona,
        )
        gate = Gate(urgent=work.ended)
        work.reply = Reply(action, work.recorder, self._resources, gate, known)
        work.reply.begin()
        work.begin(partial(self._reply, work, work.reply))

    def _call_tool(self, action: actions.CallTool, reply: Reply) -> None:
        """Run a tool. A tool of the user's own runs beside everything else, until its turn is
        called off. A tool that outlives its reply runs until it returns."""
        call, resources = action.call, self._resources
        if call.problem:
            text = f"the model wrote a call that cannot be read: {call.problem}"
            resources.show(Notice(text))
        own = not call.problem and reply.asked.options.own_tools and call.name in resources.toolbox
        if action.verdict != "run":
            refused = error(ASKED[action.verdict])
            if action.question:
                reply.thinking.question = action.question
            reply.returned(call, refused)
        elif own and resources.toolbox.outlives(call.name):
            assert self._lasting is not None, "the session runs"
            self._lasting.start_soon(call_tool, resources, action)
        elif own:
            self._work[action.turn].begin(partial(call_tool, resources, action))
        else:
            result = resources.skills.call(call, self._wall_clock(), reply.asked.language)
            reply.returned(call, result)

    def _note(self, reply: Reply | None, outcome: Outcome, heard: str) -> None:
        """Keep a finished exchange for the skills. After a goodbye, end the session.

        If a timer's announcement was interrupted before any of it was heard, report the timer
        again.
        """
        if reply is None or not reply.gate.committed or outcome == "abandoned":
            return
        known, announced = reply.thinking.answer, reply.asked.announces
        if announced and announced.text == self._greeting:
            self.rewrite(lambda: None)  # so that the model reads the rest of the history at once
        elif self._kept is not None:
            words = len(self._resources.player.heard().words)
            if exchange := finished(reply, words, heard, outcome):
                self._kept(exchange)
        self._resources.skills.note(reply.asked.text, heard, known)
        if announced and announced.insists and outcome == "interrupted" and not heard:
            self._send(inputs.Rang(announced.text))
        if self._ends and known and known.ends and outcome == "done":
            self._listener.end()

    def _reply_of(self, turn: int) -> Reply:
        reply = self._work[turn].reply
        assert reply is not None, "it has been begun"
        return reply

    # ---- the work of a turn

    async def _run(self, work: TurnTasks) -> None:
        """Run the work of a turn. A stage that fails ends its turn, never the session."""
        try:
            await work.run()
        except Exception as error:
            cause = first_cause(error)
            self._resources.show(Notice(f"the reply failed: {_reason(cause, work.recorder.turn)}"))
            self._send(inputs.Failed(work.turn))
        if not work.over:
            self._send(inputs.Stopped(work.turn))

    def _start(self, job: Callable[..., Coroutine[Any, Any, None]], argument: object) -> None:
        assert self._tasks is not None, "the session runs"
        self._tasks.start_soon(job, argument)

    async def _reply(self, work: TurnTasks, reply: Reply) -> None:
        await reply.run(work.voiced)
        self._send(inputs.Replied(work.turn, dropped=reply.gate.scope.cancelled_caught))


def _reason(error: Exception, turn: int) -> str:
    """Log an error, and return the message for the user."""
    if isinstance(error, VoiceloopError):
        logger.warning("turn %d failed: %s", turn, error.message)
        return error.message
    logger.error("turn %d failed", turn, exc_info=error)
    return repr(error)
