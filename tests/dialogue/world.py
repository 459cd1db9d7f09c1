"""A world around the dialogue core without an event loop: it reports what stages could report, in
any order, and holds every answer of the core against what is promised."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from voiceloop.asr.turns import SilenceLasts, SpeechPaused, SpeechResumed, SpeechStarted, TurnEnded
from voiceloop.dialogue import actions, inputs
from voiceloop.dialogue.conversationstate import Abilities, ConversationState
from voiceloop.dialogue.core import receive
from voiceloop.dialogue.state import DialogueSettings, Options, Phase, ReplyProgress, TurnWords
from voiceloop.dialogue.user import RESUMED_S
from voiceloop.languages import language
from voiceloop.settings.config import TurnConfig
from voiceloop.types import Calibration, FloorChange, ToolCall, Transcript, TurnHeard, Word

TEXTS = ("tell me", "tell me more", "what is it", "and the", "uh-huh", "stop", "", "no wait stop")
CALIBRATION = Calibration(0.5, 0.2, 88)
SPOKEN = (Phase.COMMITTED, Phase.SPEAKING, Phase.CONTESTED)


Receive = Callable[[ConversationState, inputs.Input, float], list[actions.Action]]
TurnWork = actions.ReadWords | actions.RewriteHistory | actions.StartReply


@dataclass
class Live:
    """What the world knows of a turn."""

    number: int
    heard: bool
    announces: bool = False
    text: str = ""
    silent: bool = False
    ended: bool = False
    final: bool = False
    replying: str | None = None
    """The text that is replied to."""
    read: bool = False
    committed: bool = False
    dropped: bool = False
    sounding: bool = False
    paused: bool = False
    stopping: bool = False


def unthinking() -> DialogueSettings:
    """Of a conversation in which words alone are wanted."""
    policy = TurnConfig(endpoint="p-eot")
    return DialogueSettings(policy, language("en"), answers=False, thinks=False)


@dataclass
class World:
    """Tells the core what a `rng` draws of what could happen, and checks what it answers."""

    rng: Random
    settings: DialogueSettings = field(
        default_factory=lambda: DialogueSettings(
            TurnConfig(endpoint="p-eot"), language("en"), reply=Options(skills=True)
        )
    )
    abilities: Abilities = field(default_factory=Abilities)
    told: list[tuple[inputs.Input, float]] = field(default_factory=list)
    answers: list[Sequence[actions.Action]] = field(default_factory=list)
    receive: Receive = receive

    def __post_init__(self) -> None:
        self.state = ConversationState(self.settings, self.abilities, {"en": CALIBRATION})
        self.now, self.sample = 1.0, 16_000
        self.live: dict[int, Live] = {}
        self.over: set[int] = set()
        self.hearing: int | None = None
        self.fell_silent = -math.inf
        """When a turn ended in which something was said to listen to."""
        self.speech_end = 0
        self.lasts: SilenceLasts | None = None
        """The silence that was reported last."""
        self.ending = False
        """The core has ended the turn that is heard."""
        self.model: actions.ModelWork | None = None
        self.ear: actions.JudgeSound | None = None
        self.rewrite: int | None = None
        """The newest history that the model has not taken, by its number."""
        self.rewrites = 0
        self.left = False
        """What is read while nobody says anything is to be left."""
        self.begun = 0
        self.called: list[ToolCall] = []
        self.replied: list[int] = []
        """Numbers of turns whose reply may have called tools."""

    # ---- what may happen

    def step(self) -> None:
        """Something happens."""
        self.now += self.rng.choice((0.0, 0.01, 0.01, 0.1, 0.4))
        self.sample = round(self.now * 16_000)
        moves = [*self._of_user(), *self._of_models(), *self._of_clients()]
        self.rng.choice(moves)()

    def settle(self) -> None:
        """The user falls silent, clients are content, and all work comes to its end."""
        self.tell(inputs.SettingsChanged(answers=True))
        for _ in range(400):
            self.now += 0.1
            self.sample = round(self.now * 16_000)
            if self.hearing is not None:
                live = self.live.get(self.hearing)
                if live is None or live.silent:
                    self._last()
                else:
                    self._pause()
                continue
            moves = [*self._decodes(), *self._of_models(fails=False)]
            if not moves:
                break
            moves[0]()

    def check_settled(self) -> None:
        """No turn hangs that is to be answered, nor any where none is."""
        assert self.state.settings.thinks or not self.state.turns
        assert not [turn.id for turn in self.state.turns if turn.request.made]

    def _of_user(self) -> list[Callable[[], None]]:
        moves: list[Callable[[], None]] = [self._frame, self._frame, *self._decodes()]
        if self.hearing is None:
            return [*moves, self._speak, self._speak]
        live = self.live.get(self.hearing)
        if live is None:
            return [*moves, self._last, self._end]
        if live.silent:
            return [*moves, self._say, self._resume, self._last, self._last, self._end]
        return [*moves, self._say, self._pause, self._end]

    def _decodes(self) -> list[Callable[[], None]]:
        waiting = [
            turn
            for turn, live in self.live.items()
            if live.heard and live.ended and not live.final and not live.stopping
        ]
        return [lambda turn=turn: self._decode(turn) for turn in waiting]

    def _of_models(self, *, fails: bool = True) -> list[Callable[[], None]]:
        moves: list[Callable[[], None]] = []
        for turn, live in self.live.items():
            if live.stopping:
                moves.append(lambda turn=turn: self.tell(inputs.Stopped(turn)))
            elif fails and self.rng.random() < 0.03:
                moves.append(lambda turn=turn: self.tell(inputs.Failed(turn)))
        if self.ear and self.ear.turn in self.live and not self.live[self.ear.turn].stopping:
            moves.append(self._judge)
        if isinstance(self.model, actions.ReadOpening):
            return [*moves, self._opened]
        if self.model and not self.live[self.model.turn].stopping:
            moves += self._of_model(self.model)
        return moves

    def _of_model(self, work: TurnWork) -> list[Callable[[], None]]:
        live = self.live[work.turn]
        if isinstance(work, actions.RewriteHistory):
            return [lambda: self._rewritten(work)]
        if isinstance(work, actions.ReadWords):
            return [lambda: self._done(inputs.Read(work.turn, work.text, self._chance(), self.now))]
        if live.dropped:
            return [lambda: self._done(inputs.Replied(work.turn, dropped=True))]
        if not live.read:
            return [lambda: self._read(live, work)]
        if live.committed and not live.paused:
            if self.rng.random() < 0.1:
                return [lambda: self._call(work)]
            if not live.sounding:
                return [lambda: self._sound(live, work.turn)]
            return [lambda: self._done(inputs.Replied(work.turn))]
        return []

    def _of_clients(self) -> list[Callable[[], None]]:
        if self.rng.random() < 0.8:
            return []
        flipped = inputs.SettingsChanged(
            answers=self.rng.random() < 0.7, interruptible=self.rng.random() < 0.8
        )
        said_unasked = (inputs.Rang, inputs.Announce)[len(self.told) % 2]
        results: list[Callable[[], None]] = []
        if self.replied:
            call = ToolCall(self.rng.choice(self.replied), "call", "look", {})
            results = [lambda: self.tell(inputs.BringResults(((call, "up"),)))]
        return [
            *results,
            lambda: self.tell(inputs.Write(self.rng.choice(TEXTS[:3]))),
            lambda: self.tell(said_unasked("It is over.")),
            lambda: self.tell(inputs.Respond(Options(voice="other"))),
            lambda: self.tell(inputs.Cancel()),
            lambda: self._forget(),
            lambda: self._rewrite(),
            lambda: self.tell(flipped),
        ]

    # ---- what happens

    def _frame(self) -> None:
        self.tell(inputs.Frame(self.sample))

    def _speak(self) -> None:
        self.tell(
            inputs.Detected(SpeechStarted(self.sample, self.sample - 500, self.sample), self.now)
        )
        turn = self.state.turn(self.hearing)
        assert turn and turn.resumes == (self.now - self.fell_silent < RESUMED_S)
        if self.state.settings.interruptible:
            heard = [turn for turn in self.state.turns if turn.phase in SPOKEN]
            assert all(turn.phase is Phase.CONTESTED for turn in heard), "a sound pauses a reply"

    def _say(self) -> None:
        assert self.hearing is not None
        live = self.live[self.hearing]
        live.text = self.rng.choice(TEXTS)
        self.tell(inputs.Recognised(self.hearing, self._words(live)))

    def _pause(self) -> None:
        assert self.hearing is not None
        live = self.live[self.hearing]
        live.silent, self.speech_end = True, self.sample - 500
        paused = SpeechPaused(self.sample, self.speech_end)
        self.tell(inputs.Detected(paused, self.now, self._words(live)))

    def _last(self) -> None:
        """The user is still silent, or there is a sound that may be speech."""
        lasts = SilenceLasts(self.sample, self.speech_end, self.rng.random() < 0.8)
        self.lasts = lasts
        self.tell(inputs.Detected(lasts, self.now))

    def _resume(self) -> None:
        assert self.hearing is not None
        live = self.live[self.hearing]
        live.silent, self.lasts = False, None
        self.tell(
            inputs.Detected(SpeechResumed(self.sample, self.sample), self.now, self._words(live))
        )

    def _end(self) -> None:
        assert self.hearing is not None
        live, self.hearing = self.live.get(self.hearing), None
        self.lasts, self.ending = None, False
        if live is None:
            self.tell(inputs.Detected(TurnEnded(self.sample, self.sample - 500), self.now))
            return
        live.ended = True
        live.final = live.silent and self.rng.random() < 0.5
        words = self._words(live)
        turn = self.state.turn(self.state.listening)
        if turn and turn.uncontested and replace(turn, words=words).text:
            self.fell_silent = self.now
        self.tell(inputs.Detected(TurnEnded(self.sample, self.sample - 500), self.now, words))

    def _decode(self, turn: int) -> None:
        live = self.live[turn]
        live.final = True
        if self.rng.random() < 0.3:
            live.text = self.rng.choice(TEXTS)
        self.tell(inputs.Recognised(turn, self._words(live)))

    def _words(self, live: Live) -> TurnWords:
        said = tuple(Word(word, 0.0, 0.0) for word in live.text.split())
        if live.final:
            return TurnWords(Transcript(live.number, 2, said, final=True), hypothesis=live.text)
        newest = Transcript(live.number, 1, said[:-1], said[-1:])
        guess = Transcript(live.number, 2, said, final=True)
        return TurnWords(newest, guess if live.silent else None, live.text)

    def _chance(self) -> float | None:
        return self.rng.choice((None, 0.01, 0.3, 0.9))

    def _done(self, told: inputs.Input) -> None:
        self.model = None
        self.tell(told)

    def _opened(self) -> None:
        assert isinstance(self.model, actions.ReadOpening)
        rewritten = None if self.left else self.model.rewrite
        if rewritten == self.rewrite:
            self.rewrite = None
        self._done(inputs.OpeningRead(rewritten))

    def _rewritten(self, work: actions.RewriteHistory) -> None:
        if self.rewrite == work.rewrite:
            self.rewrite = None
        self._done(inputs.Rewritten(work.rewrite))

    def _read(self, live: Live, work: actions.StartReply) -> None:
        live.read = True
        self.tell(inputs.Read(work.turn, work.text, self._chance(), self.now))

    def _call(self, work: actions.StartReply) -> None:
        """The model calls a tool of ours, one that needs consent, and one of the client's."""
        ours, theirs = ToolCall(0, "a", "clock", {}), ToolCall(0, "b", "look", {}, client=True)
        asks = ToolCall(0, "c", "unlock", {}, confirm=True)
        self.called = [ours, asks, theirs]
        self.tell(inputs.ToolsCalled(work.turn, (ours, asks, theirs)))
        assert self.called == [theirs], "both of ours are run"
        self.tell(inputs.ToolReturned(work.turn, ours, "noon"))
        assert actions.BringResult(work.turn, ours, "noon") in self.answers[-1], "it is brought"

    def _sound(self, live: Live, turn: int) -> None:
        live.sounding = True
        self.tell(ReplyProgress(turn, ("so", "it", "is"), self.now, self.rng.random() < 0.5))
        self.tell(inputs.Sounding(turn))

    def _judge(self) -> None:
        ear, self.ear = self.ear, None
        assert ear is not None
        self.tell(inputs.SoundJudged(ear.turn, ear.since, self.rng.random()))

    def _forget(self) -> None:
        self.hearing = self.lasts = None
        self.tell(inputs.Forget())

    def _rewrite(self) -> None:
        self.rewrite = self.rewrites = self.rewrites + 1
        self.tell(inputs.Rewrite(self.rewrite))

    # ---- what the core answers with

    def tell(self, told: inputs.Input) -> None:
        """Tell the core, do what it asks for, and check that it may ask for that."""
        self.told.append((told, self.now))
        actions = self.receive(self.state, told, self.now)
        self.answers.append(actions)
        for action in actions:
            self._do(action)
        self._check()
        if self.ending:
            self._end()
        if not self.state.settled:
            self.tell(inputs.Settled())

    def _do(self, action: actions.Action) -> None:
        turn = getattr(action, "turn", None)
        if isinstance(action, actions.Begin):
            self._begin(action)
            return
        if isinstance(action, actions.Show):
            self._shown(action.event)
            return
        assert turn is None or turn in self.live, f"{action} is for a turn that is over"
        match action:
            case actions.ReadWords() | actions.RewriteHistory() | actions.StartReply():
                self._work(action)
            case actions.ReadOpening():
                self._open(action)
            case actions.LeaveOpening():
                assert isinstance(self.model, actions.ReadOpening), "it is being read"
                assert self.model.rewrite != self.rewrite, "it is to be seen"
                self.left = True
            case (
                actions.Commit()
                | actions.Drop()
                | actions.Hesitate()
                | actions.PauseReply()
                | actions.ResumeReply()
                | actions.BringResult()
            ):
                self._of_reply(action, self.live[action.turn])
            case actions.JudgeSound():
                assert self.ear is None, "one silence is judged at a time"
                self.ear = action
            case actions.Stop():
                assert not self.live[action.turn].stopping, "it is stopped once"
                self.live[action.turn].stopping = True
            case actions.Finish():
                stopped = isinstance(self.told[-1][0], inputs.Stopped | inputs.Failed)
                assert stopped or not self.live[action.turn].stopping, "its work still runs"
                self._finish(action)
            case actions.CallTool():
                assert self.live[action.turn].committed, "no guess calls anything"
                self.called.remove(action.call)
                verdict = "later" if action.call.confirm else "run"
                assert action.verdict == verdict, "nobody has agreed to anything"
            case actions.EndTurn():
                self._ended()
            case _:
                pass

    def _begin(self, action: actions.Begin) -> None:
        assert action.turn not in self.live and action.turn not in self.over, "ids are new"
        heard = action.started is not None
        turn = self.state.turn(action.turn)
        announces = turn is not None and bool(turn.announces)
        self.live[action.turn] = Live(
            action.number, heard, announces, ended=not heard, final=not heard
        )
        if heard:
            assert self.hearing is None, "one turn is heard at a time"
            self.hearing = action.turn

    def _ended(self) -> None:
        turn, policy = self.state.turn(self.hearing), self.state.settings.policy
        assert self.hearing is not None and self.lasts, "only a turn that is heard can end"
        assert self.lasts.reaches(policy.complete_ms), "it ends in a silence"
        if turn and turn.resumes:
            assert self.lasts.reaches(policy.hangover_ms), "who has just paused may pause again"
        self.ending = True

    def _open(self, work: actions.ReadOpening) -> None:
        assert self.state.settings.thinks, "it is to do nothing"
        assert self.model is None, "the model does one thing after the other"
        assert not self.live, "nobody says anything"
        assert work.number > self.begun, "it is of the next turn"
        assert work.rewrite == self.rewrite, "the newest history counts"
        assert work.rewrite or not self.over, "results may come for the last reply's calls"
        self.model, self.left = work, False

    def _work(self, work: TurnWork) -> None:
        assert self.state.settings.thinks, "the model is to do nothing"
        assert self.model is None, f"the model does one thing after the other: {self.model}, {work}"
        assert not self.live[work.turn].stopping, "nothing is begun for what is being stopped"
        assert work.turn == self.state.turns[0].id, "turns are answered in order"
        self.model = work
        if isinstance(work, actions.RewriteHistory):
            assert work.rewrite == self.rewrite, "the newest history counts"
        if isinstance(work, actions.StartReply):
            own = work.returned or work.announces
            assert self.rewrite is None or own, "a history is read before a reply"
            live = self.live[work.turn]
            live.replying, live.read, live.committed, live.dropped = work.text, False, False, False

    def _of_reply(
        self,
        action: actions.Commit
        | actions.Drop
        | actions.Hesitate
        | actions.PauseReply
        | actions.ResumeReply
        | actions.BringResult,
        live: Live,
    ) -> None:
        assert live.replying is not None, "there is a reply"
        match action:
            case actions.Commit():
                assert not live.committed and not live.dropped, "a reply is let out once"
                assert live.final, "the user has finished"
                live.committed = True
            case actions.Drop():
                assert not live.committed, "what was let out is not taken back"
                assert not live.dropped, "a guess is dropped once"
                live.dropped = True
            case actions.Hesitate():
                assert not live.committed, "only a guess hesitates"
            case actions.PauseReply():
                assert live.committed and not live.stopping, "only what may be heard is paused"
                assert self.state.settings.interruptible, "the client has not forbidden it"
                live.paused = True
            case actions.ResumeReply():
                assert live.paused and not live.stopping, "what is resumed was paused"
                live.paused = False
            case actions.BringResult():
                assert live.committed and not live.stopping, "it goes on with the result"

    def _finish(self, finish: actions.Finish) -> None:
        turn = finish.turn
        live = self.live.pop(turn)
        failed = isinstance(self.told[-1][0], inputs.Failed)
        lost = finish.outcome == "abandoned" and self.state.settings.thinks
        if lost and live.text and not live.stopping and not failed:
            carried = [other.carried for other in self.state.turns]
            assert any(live.text in text for text in carried), "what was said is lost"
        if live.announces and not failed:
            assert live.replying is not None or live.stopping, "what rings is told"
        self.over.add(turn)
        if live.committed:
            self.replied.append(live.number)
        if not isinstance(self.model, actions.ReadOpening | None) and self.model.turn == turn:
            self.model = None
        if self.ear and self.ear.turn == turn:
            self.ear = None

    def _shown(self, event: object) -> None:
        if isinstance(event, TurnHeard) and not event.over:
            self.begun = event.turn
        if isinstance(event, FloorChange):
            assert event.turn != event.rival, "nobody interrupts themselves"

    def _check(self) -> None:
        """What holds after everything that happens."""
        if isinstance(self.model, actions.ReadOpening):
            newest = self.rewrite is None or self.model.rewrite == self.rewrite
            assert newest or self.left, "what is not to be seen is not read on"
        turns = self.state.turns
        for turn in turns:
            if turn.id == self.hearing and turn.ends_after_ms is not None and self.lasts:
                due = self.lasts.reaches(turn.ends_after_ms)
                assert due == self.ending, "a turn ends as soon as it may"
        assert {turn.id for turn in turns} == self.live.keys(), "a turn is over once it is finished"
        assert sum(turn.phase in SPOKEN for turn in turns) <= 1, "one reply is heard at a time"
        for turn in turns:
            live = self.live[turn.id]
            if turn.phase in SPOKEN:
                assert live.committed and not live.stopping
                assert live.replying == turn.text, "what was said is answered"
            if turn.phase is Phase.GUESSING:
                assert not live.committed and not live.dropped
            contested = turn.phase is Phase.CONTESTED
            assert contested == (live.paused and not live.stopping), "paused means contested"
            if contested:
                by = [
                    other
                    for other in turns
                    if other.contest and other.contest.undecided and other.contest.rival == turn.id
                ]
                assert by, "a reply that is paused waits for a verdict"
